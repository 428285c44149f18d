//! The core on paused time, over the memory store.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::lease::{Acquired, FencingToken, Forced, Lease, Record, RecordState, Released, Renewed};
use crate::store::{Audit, Feature, MemoryStore, StoreError};
use crate::{LockError, Locker, LossCause, Moment, SimMachine, Wait};

mod again;
mod blocking;
mod cancel;
mod collecting;
#[cfg(feature = "metrics")]
mod counted;
mod forked;
mod loss;
mod many;
mod minimum_hold;
mod observed;
mod shutdown;
mod sizes;
mod threads;
mod waiting;
mod windows;

const SECOND: Duration = Duration::from_secs(1);

/// A memory store on the runtime's paused clock.
fn store() -> MemoryStore {
    let start = tokio::time::Instant::now();
    MemoryStore::with_clock(move || {
        let elapsed = start.elapsed();
        (Moment::from_nanos(1) + elapsed, Duration::from_secs(1_700_000_000) + elapsed)
    })
}

fn locker() -> (Locker, SimMachine) {
    let machine = SimMachine::new(1);
    (Locker::simulated(store(), &machine), machine)
}

#[track_caller]
fn here() -> &'static Location<'static> {
    Location::caller()
}

async fn is_taken(locker: &Locker, key: &str) -> bool {
    let record = locker.inspect(key).await.expect("the store answers");
    record.is_some_and(|record| record.state != RecordState::Free)
}

async fn settled(locker: &Locker, key: &str) {
    for _ in 0..1_000 {
        if !is_taken(locker, key).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{key} is still held");
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_held_and_given_back() {
    let (locker, _) = locker();
    let guard = locker.lock("k").acquire().await.expect("it is free");
    assert!(guard.is_held() && is_taken(&locker, "k").await);
    let error = locker.lock("k").acquire().await.expect_err("it is held");
    assert!(matches!(error, LockError::Busy { holder: Some(_), .. }), "{error}");
    guard.release().await.expect("it was ours");
    assert!(!is_taken(&locker, "k").await);
}

#[tokio::test(start_paused = true)]
async fn it_is_renewed_for_as_long_as_it_is_held() {
    let (locker, _) = locker();
    let guard = locker.lock("k").expires(SECOND).acquire().await.expect("it is free");
    tokio::time::sleep(100 * SECOND).await;
    assert!(guard.is_held() && is_taken(&locker, "k").await);
    drop(guard);
    settled(&locker, "k").await;
}

#[tokio::test(start_paused = true)]
async fn without_renewal_it_is_lost_before_others_get_it() {
    let (locker, _) = locker();
    let guard = locker.lock("k").expires(SECOND).renew(false).acquire().await.expect("it is free");
    guard.lost().await;
    assert!(is_taken(&locker, "k").await);
    let error = guard.check().expect_err("it is lost");
    assert!(matches!(error, LockError::Lost { cause: LossCause::Expired, .. }));
    assert!(guard.release().await.expect_err("a lost lock is never released as if it were held").is_lost());
}

#[tokio::test(start_paused = true)]
async fn a_forced_release_is_noticed_and_stops_the_body() {
    let (locker, _) = locker();
    let stopped = locker.lock("k").expires(3 * SECOND).run(async |held| {
        locker.force_release("k", held.token()).await.expect("it is held");
        std::future::pending::<()>().await;
    });
    let error = stopped.await.expect_err("it was forced");
    assert!(matches!(error, LockError::Lost { cause: LossCause::NotOurs, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn waiters_get_it_in_order() {
    let (locker, _) = locker();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let first = locker.lock("k").acquire().await.expect("it is free");
    let mut tasks = Vec::new();
    for number in 0..20 {
        let (locker, order) = (locker.clone(), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let guard = locker.lock("k").wait(Wait::Forever).acquire().await.expect("it waits");
            order.lock().expect("no panic").push(number);
            guard.release().await.expect("it was ours");
        }));
        tokio::task::yield_now().await;
    }
    first.release().await.expect("it was ours");
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(*order.lock().expect("no panic"), (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_deadline() {
    let (locker, machine) = locker();
    let _guard = locker.lock("k").acquire().await.expect("it is free");
    let started = machine.now();
    let (head, behind) = tokio::join!(
        locker.lock("k").wait(5 * SECOND).acquire(),
        locker.lock("k").wait(2 * SECOND).acquire(),
    );
    assert!(head.expect_err("it is held").is_busy() && behind.expect_err("it is held").is_busy());
    let waited = machine.now().since(started);
    assert!(waited >= 5 * SECOND && waited < 5 * SECOND + SECOND / 10, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn locking_again_inside_the_body_is_refused_at_once() {
    let (locker, _) = locker();
    let inner = locker.lock("k").run(async |_| locker.lock("k").wait(Wait::Forever).acquire().await);
    let error = inner.await.expect("the body ran").expect_err("it would wait for itself");
    assert!(matches!(error, LockError::WouldDeadlock { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_future_dropped_at_any_poll_leaves_nothing() {
    for polls in 0..40 {
        let (locker, _) = locker();
        let mut future =
            Box::pin(locker.lock("k").wait(SECOND).run(async |_| tokio::task::yield_now().await));
        let mut done = false;
        for _ in 0..polls {
            done = futures_poll(future.as_mut()).await;
            if done {
                break;
            }
        }
        drop(future);
        settled(&locker, "k").await;
        if done {
            return;
        }
    }
    panic!("it never ended");
}

async fn futures_poll<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

#[tokio::test(start_paused = true)]
async fn a_minimum_hold_keeps_the_key_taken() {
    let (locker, _) = locker();
    let guard = locker.lock("k").min_hold(30 * SECOND).acquire().await.expect("it is free");
    guard.release().await.expect("it was ours");
    tokio::time::sleep(29 * SECOND).await;
    assert!(is_taken(&locker, "k").await);
    tokio::time::sleep(2 * SECOND).await;
    assert!(!is_taken(&locker, "k").await);
}

#[tokio::test(start_paused = true)]
async fn a_maximum_hold_ends_the_body() {
    let (locker, _) = locker();
    let ended =
        locker.lock("k").max_hold(10 * SECOND).run(async |_| std::future::pending::<()>().await).await;
    assert!(matches!(ended, Err(LockError::Lost { cause: LossCause::MaxHold, .. })));
    settled(&locker, "k").await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_bodies_end_and_refuses_new_ones() {
    let (locker, _) = locker();
    let held = locker.lock("long").expires(2 * SECOND).acquire().await.expect("it is free");
    let short = locker.lock("short").acquire().await.expect("it is free");
    let waiting = tokio::spawn({
        let locker = locker.clone();
        async move { locker.lock("long").wait(Wait::Forever).acquire().await }
    });
    tokio::task::yield_now().await;
    let ending = tokio::spawn(async move {
        tokio::time::sleep(SECOND).await;
        drop(short);
    });
    let still_held = locker.shutdown(3 * SECOND).await;
    ending.await.expect("no panic");
    assert_eq!(still_held.iter().map(|held| held.key().to_owned()).collect::<Vec<_>>(), ["long"]);
    assert!(matches!(waiting.await.expect("no panic"), Err(LockError::ShuttingDown { .. })));
    assert!(matches!(locker.lock("new").acquire().await, Err(LockError::ShuttingDown { .. })));
    assert!(!is_taken(&locker, "short").await);
    held.lost().await;
    let cause = held.check().expect_err("it ran out");
    assert!(matches!(cause, LockError::Lost { cause: LossCause::ShutDown, .. }));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_on_one_key_never_overlap() {
    let (locker, _) = locker();
    let inside = Arc::new(AtomicU32::new(0));
    let mut tasks = Vec::new();
    for _ in 0..1_000 {
        let (locker, inside) = (locker.clone(), Arc::clone(&inside));
        tasks.push(tokio::spawn(async move {
            let ran = locker.lock("k").wait(Wait::Forever).run(async |_| {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
            });
            ran.await.expect("it waits");
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
}

fn is_send<T: Send>(future: T) -> T {
    future
}

#[tokio::test]
async fn futures_and_guards_are_send() {
    let locker = Locker::new(MemoryStore::new());
    let guard = is_send(locker.lock("k").acquire()).await.expect("it is free");
    is_send(guard.release()).await.expect("it was ours");
    is_send(locker.lock("k").run(async |_| ())).await.expect("it is free");
    is_send(locker.shutdown(SECOND)).await;
}

#[tokio::test(start_paused = true)]
async fn those_behind_the_head_are_told_what_it_was_told() {
    let machine = SimMachine::new(1);
    let store = crate::store::FaultStore::new(store());
    let faults = store.faults();
    let locker = Locker::simulated(store, &machine);
    let _guard = locker.lock("k").acquire().await.expect("it is free");
    let both = || async {
        tokio::join!(locker.lock("k").wait(5 * SECOND).acquire(), locker.lock("k").wait(2 * SECOND).acquire())
            .1
    };
    let behind = both().await.expect_err("it is held");
    assert!(matches!(behind, LockError::Busy { holder: Some(_), .. }), "{behind}");
    faults.cut();
    let behind = both().await.expect_err("the store is out of reach");
    assert!(matches!(behind, LockError::Store { .. }), "{behind}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_forced_is_never_released_as_if_it_had_been_ours() {
    let (locker, _) = locker();
    let guard = locker.lock("k").acquire().await.expect("it is free");
    locker.force_release("k", guard.token()).await.expect("it is held");
    let error = guard.release().await.expect_err("another ended it");
    assert!(matches!(error, LockError::Lost { cause: LossCause::NotOurs, .. }), "{error}");
}
