//! Whose runtime a request is made on, and whether that one still runs, does not matter.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::bench::{Bench, PAUSE, block_on, rival, take};
use crate::lease::{Acquired, Released, Renewed};
use crate::store::Store;

/// The smallest executor there is.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn parked<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(answer) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return answer;
        }
        thread::park();
    }
}

pub(super) async fn a_handle_outlives_the_runtime_it_was_made_on<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("outlived");
    thread::scope(|scope| {
        let ended = scope.spawn(|| {
            let store = block_on(async {
                let store = bench.another().await;
                take(&store, &lease).await;
                store
            });
            assert!(matches!(block_on(store.renew(&lease)).unwrap(), Renewed::Renewed { .. }));
            assert_eq!(block_on(store.release(&lease, None)).unwrap(), Released::Released);
        });
        ended.join().expect("a handle whose runtime has ended still works");
    });
    take(&*bench.store, &rival(&lease)).await;
}

pub(super) async fn verbs_run_under_any_executor<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("plain");
    thread::scope(|scope| {
        let ended = scope.spawn(|| {
            let store = parked(bench.another());
            parked(take(&store, &lease));
            assert!(matches!(parked(store.renew(&lease)).unwrap(), Renewed::Renewed { .. }));
            assert!(parked(store.inspect(&lease.key)).unwrap().is_some());
            assert_eq!(parked(store.list(&bench.prefix, None, 10)).unwrap().len(), 1);
            parked(store.audit()).unwrap();
            assert_eq!(parked(store.release(&lease, None)).unwrap(), Released::Released);
        });
        ended.join().expect("no runtime is needed");
    });
}

pub(super) async fn threads_with_runtimes_of_their_own_share_a_handle<S: Store>(bench: &Bench<S>) {
    const GRANTS: usize = 10;
    let (inside, tokens) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let contend = || {
        block_on(async {
            let mut grants = 0;
            while grants < GRANTS {
                let lease = bench.lease("threads");
                if let Ok(Acquired::Granted { token, .. }) = bench.store.acquire(&lease).await {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two threads hold it");
                    tokens.lock().unwrap().push(token);
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    bench.store.release(&lease, None).await.unwrap();
                    grants += 1;
                }
                tokio::time::sleep(PAUSE / 10).await;
            }
        });
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(contend)).collect();
        for thread in threads {
            thread.join().expect("it gets its grants");
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), 4 * GRANTS);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}
