//! A fork of a process that holds a lock has neither its threads nor its connections: it must not act on it.
#![expect(unsafe_code, reason = "there is no safe way to fork")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use lockattr::store::MemoryStore;
use lockattr::{LockError, Locker};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `part` in a forked child and returns what it returned, as the child's exit code.
fn in_a_child(part: impl FnOnce() -> u8) -> Option<i32> {
    // SAFETY: the child runs `part` alone, which only uses what this thread can reach without a lock that
    // another thread may hold, and leaves with `_exit`, without destructors of the process.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "it cannot fork");
    if child == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(part)).unwrap_or(u8::MAX);
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(code.into()) }
    }
    let started = Instant::now();
    let mut status = 0;
    // SAFETY: the child is ours and not yet waited for; `status` outlives the call.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if started.elapsed() > PATIENCE {
            // SAFETY: the child is ours and not yet waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

fn once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_child_gets_no_lock_and_does_not_free_its_parents() {
    let store = MemoryStore::new();
    let (locker, other) = (Locker::new(store.clone()), Locker::new(store));
    let guard = locker.lock("k").expires(SECOND).acquire().await.unwrap();
    let held = guard.held();
    let mut copy = Some(guard);
    let code = in_a_child(|| {
        let acquired = once(locker.lock("other").acquire());
        if !matches!(acquired, Poll::Ready(Err(LockError::Forked { .. }))) {
            return 1;
        }
        if held.is_held() || held.check().is_ok() || !held.remaining().is_zero() {
            return 2;
        }
        drop(copy.take());
        0
    });
    assert_eq!(code, Some(0));
    // The parent's own is there, and is renewed beyond several of its expiries.
    let guard = copy.unwrap();
    tokio::time::sleep(3 * SECOND).await;
    guard.check().unwrap();
    assert!(other.lock("k").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_body_does_not_run_on_in_a_child() {
    let locker = Locker::new(MemoryStore::new());
    let mut running = Box::pin(locker.lock("k").run(async |_| {
        tokio::task::yield_now().await;
        1
    }));
    // Its first poll enters the body.
    std::future::poll_fn(|cx| {
        assert!(running.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    let code = in_a_child(|| {
        let polled = once(running.as_mut());
        u8::from(!matches!(polled, Poll::Ready(Err(LockError::Forked { .. }))))
    });
    assert_eq!(code, Some(0));
    assert_eq!(running.await.unwrap(), 1);
}
