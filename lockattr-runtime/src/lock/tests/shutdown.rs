//! Ending in order: nobody gets a lock from a locker that ends, and nothing is left on its way.

use super::*;
use crate::store::{Fault, FaultStore, Verb};

#[tokio::test(start_paused = true)]
async fn those_in_line_get_nothing_when_the_lock_is_freed_at_the_same_time() {
    let (locker, _) = locker();
    let guard = locker.lock("k").acquire().await.expect("it is free");
    let waiters: Vec<_> =
        (0..3).map(|_| tokio::spawn(locker.lock("k").wait(Wait::Forever).acquire())).collect();
    tokio::time::sleep(SECOND).await;
    let (still_held, ()) = tokio::join!(locker.shutdown(SECOND), async { drop(guard) });
    assert!(still_held.is_empty());
    for waiter in waiters {
        assert!(matches!(waiter.await.expect("no panic"), Err(LockError::ShuttingDown { .. })));
    }
    assert!(!is_taken(&locker, "k").await);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_arrives_after_it_is_given_back_before_shutdown_is_done() {
    let store = FaultStore::new(store());
    let locker = Locker::simulated(store.clone(), &SimMachine::new(1));
    store.faults().once(Verb::Acquire, Fault::LateAnswer(SECOND));
    let asking = tokio::spawn(locker.lock("k").wait(Wait::Forever).acquire());
    tokio::time::sleep(SECOND / 2).await;
    assert!(is_taken(&locker, "k").await);
    assert!(locker.shutdown(Duration::ZERO).await.is_empty());
    assert!(!is_taken(&locker, "k").await, "the process may end now");
    assert!(matches!(asking.await.expect("no panic"), Err(LockError::ShuttingDown { .. })));
}

#[tokio::test(start_paused = true)]
async fn releases_under_way_are_waited_for_but_not_for_ever() {
    let store = FaultStore::new(store());
    let locker = Locker::simulated(store.clone(), &SimMachine::new(1));
    let guards = [locker.lock("a").acquire().await, locker.lock("b").acquire().await];
    store.faults().once(Verb::Release, Fault::LateRequest(SECOND));
    store.faults().once(Verb::Release, Fault::Hang);
    drop(guards);
    let started = tokio::time::Instant::now();
    assert!(locker.shutdown(Duration::ZERO).await.is_empty());
    assert!(started.elapsed() >= SECOND && started.elapsed() <= 6 * SECOND, "{:?}", started.elapsed());
    assert!(!is_taken(&locker, "a").await || !is_taken(&locker, "b").await);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_under_a_body_that_goes_on() {
    let (locker, _) = locker();
    let running = tokio::spawn({
        let locker = locker.clone();
        async move {
            locker.lock("k").expires(10 * SECOND).run(async |_| std::future::pending::<()>().await).await
        }
    });
    tokio::task::yield_now().await;
    assert_eq!(locker.shutdown(2 * SECOND).await.len(), 1);
    assert!(is_taken(&locker, "k").await && !running.is_finished());
    let ended = running.await.expect("no panic");
    assert!(matches!(ended, Err(LockError::Lost { cause: LossCause::ShutDown, .. })), "{ended:?}");
    settled(&locker, "k").await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_a_release_that_is_on_its_way() {
    let machine = SimMachine::new(1);
    let store = FaultStore::new(store());
    let faults = store.faults();
    let locker = Locker::simulated(store, &machine);
    let guard = locker.lock("k").acquire().await.expect("it is free");
    faults.once(Verb::Release, Fault::LateRequest(2 * SECOND));
    let releasing = tokio::spawn(guard.release());
    tokio::task::yield_now().await;
    assert!(locker.shutdown(SECOND).await.is_empty());
    assert!(!is_taken(&locker, "k").await);
    releasing.await.expect("no panic").expect("it was ours");
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_after_a_shutdown_is_given_back() {
    let machine = SimMachine::new(1);
    let store = FaultStore::new(store());
    let faults = store.faults();
    let locker = Locker::simulated(store, &machine);
    faults.once(Verb::Acquire, Fault::LateAnswer(SECOND / 2));
    let waiting = tokio::spawn(locker.lock("k").wait(Wait::Forever).acquire());
    tokio::task::yield_now().await;
    assert!(locker.shutdown(Duration::ZERO).await.is_empty());
    let refused = waiting.await.expect("no panic");
    assert!(matches!(refused, Err(LockError::ShuttingDown { .. })), "{refused:?}");
    settled(&locker, "k").await;
}
