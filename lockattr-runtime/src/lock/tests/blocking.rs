//! Locks for code that is not async. On the real clock, since threads have no other.

use std::sync::mpsc;

use super::*;

#[test]
fn threads_take_turns_without_a_runtime() {
    let locker = Locker::new(MemoryStore::new());
    let inside = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let ran = locker.blocking().run(locker.lock("k").wait(Wait::Forever), |held| {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        assert!(held.is_held());
                        inside.fetch_sub(1, Ordering::SeqCst);
                    });
                    ran.expect("it waits");
                }
            });
        }
    });
    assert!(locker.held().is_empty());
}

#[test]
fn what_is_taken_is_busy_and_a_guard_gives_it_back() {
    let locker = Locker::new(MemoryStore::new());
    let locks = locker.blocking();
    let guard = locks.acquire(locker.lock("k")).expect("it is free");
    assert!(locks.try_acquire(locker.lock("k")).expect("the store answers").is_none());
    assert!(locks.acquire(locker.lock("k").wait(SECOND / 10)).expect_err("it is held").is_busy());
    locks.release(guard).expect("it was ours");
    drop(locks.try_acquire(locker.lock("k")).expect("the store answers").expect("it is free"));
}

#[test]
fn a_body_cannot_wait_for_itself_and_may_enter_again() {
    let locker = Locker::new(MemoryStore::new());
    let locks = locker.blocking();
    let ran = locks.run(locker.lock("k"), |held| {
        let error = locks.acquire(locker.lock("k").wait(Wait::Forever)).expect_err("it holds it");
        assert!(matches!(error, LockError::WouldDeadlock { .. }), "{error}");
        assert!(crate::holds("k") && crate::current().is_some());
        let again = locks.acquire(locker.lock("k").reentrant(true)).expect("it is held");
        assert_eq!(again.token(), held.token());
    });
    ran.expect("it is free");
    assert!(!crate::holds("k"));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        locks.run(locker.lock("p"), |_| panic!("in the body"))
    }));
    assert!(panicked.is_err());
    locks.run(locker.lock("p").wait(10 * SECOND), |_| ()).expect("it was given back");
}

#[test]
fn the_keepers_own_thread_is_refused() {
    let locker = Locker::new(MemoryStore::new());
    let (tell, told) = mpsc::channel();
    let inside = locker.clone();
    locker.shared.env.spawn(Box::pin(async move {
        let _ = tell.send(inside.blocking().acquire(inside.lock("k")).map(drop));
    }));
    let answer = told.recv_timeout(10 * SECOND).expect("it does not block for ever");
    assert!(matches!(answer, Err(LockError::Setup { .. })), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_simulated_locker_is_refused() {
    let (locker, _) = locker();
    let error = locker.blocking().acquire(locker.lock("k")).expect_err("there is no keeper");
    assert!(matches!(error, LockError::Setup { .. }), "{error}");
}

#[tokio::test]
async fn in_a_runtime_it_goes_under_spawn_blocking() {
    let locker = Locker::new(MemoryStore::new());
    let blocking = locker.clone();
    let work =
        tokio::task::spawn_blocking(move || blocking.blocking().run(blocking.lock("k"), |held| held.token()));
    let token = work.await.expect("no panic").expect("it is free");
    assert!(locker.lock("k").acquire().await.expect("it is free").token() > token);
}
