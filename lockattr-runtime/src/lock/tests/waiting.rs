//! Lines of waiters: who asks the store, how often, and what ends a wait.

use super::*;
use crate::store::{Fault, FaultStore, Verb};

fn counted() -> (Locker, FaultStore<MemoryStore>) {
    let store = FaultStore::new(store());
    (Locker::simulated(store.clone(), &SimMachine::new(1)), store)
}

fn spawn_waiter(locker: &Locker, key: &str) -> tokio::task::JoinHandle<Result<crate::Guard, LockError>> {
    tokio::spawn(locker.lock(key).wait(Wait::Forever).acquire())
}

/// How many requests for locks are made in a minute.
async fn asked_in_a_minute(store: &FaultStore<MemoryStore>) -> usize {
    let before = store.faults().calls(Verb::Acquire);
    tokio::time::sleep(60 * SECOND).await;
    store.faults().calls(Verb::Acquire) - before
}

#[tokio::test(start_paused = true)]
async fn a_thousand_waiters_ask_no_more_than_one() {
    let (locker, store) = counted();
    let guard = locker.lock("k").acquire().await.expect("it is free");
    let mut waiters = vec![spawn_waiter(&locker, "k")];
    let alone = asked_in_a_minute(&store).await;
    waiters.extend((1..1_000).map(|_| spawn_waiter(&locker, "k")));
    let together = asked_in_a_minute(&store).await;
    assert!(alone > 60 && together < alone + alone / 2, "{alone} alone, {together} together");
    drop(guard);
    for waiter in waiters {
        waiter.await.expect("no panic").expect("it waits").release().await.expect("it was ours");
    }
}

#[tokio::test(start_paused = true)]
async fn one_more_waiter_than_allowed_is_told_so_and_no_limit_touches_those_who_do_not_wait() {
    let (locker, _) = counted();
    let locker = locker.max_waiters(2);
    let _guard = locker.lock("k").acquire().await.expect("it is free");
    let waiters = [spawn_waiter(&locker, "k"), spawn_waiter(&locker, "k")];
    tokio::task::yield_now().await;
    let error = locker.lock("k").wait(SECOND).acquire().await.expect_err("two wait");
    assert!(matches!(error, LockError::QueueFull { waiting: 2, .. }), "{error}");
    assert!(error.is_busy());
    assert!(matches!(locker.lock("k").acquire().await, Err(LockError::Busy { .. })));
    for waiter in waiters {
        waiter.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_it_gives_back_itself_does_not_wake_a_waiter_for_several_keys() {
    let (locker, store) = counted();
    store.faults().hide(Feature::AtomicMany);
    let _guard = locker.lock("b").acquire().await.expect("it is free");
    let both = tokio::spawn(locker.lock_many(["a", "b"]).wait(Wait::Forever).acquire());
    tokio::time::sleep(10 * SECOND).await;
    // Two keys an attempt, and one attempt every half second on average.
    let asked = asked_in_a_minute(&store).await;
    assert!(asked > 60 && asked < 500, "{asked}");
    both.abort();
}

#[tokio::test(start_paused = true)]
async fn answers_that_come_too_late_do_not_wake_their_own_waiter() {
    let (locker, store) = counted();
    store.faults().always(Verb::Acquire, Fault::LateAnswer(Duration::from_millis(60)));
    let waiter =
        tokio::spawn(locker.lock("k").expires(Duration::from_millis(100)).wait(Wait::Forever).acquire());
    tokio::time::sleep(10 * SECOND).await;
    let asked = asked_in_a_minute(&store).await;
    assert!(asked > 60 && asked < 300, "{asked}");
    waiter.abort();
}

#[tokio::test(start_paused = true)]
async fn those_behind_the_head_name_the_key_that_is_taken() {
    let (locker, _) = counted();
    let _guard = locker.lock("b").acquire().await.expect("it is free");
    let both = || locker.lock_many(["a", "b"]);
    let (head, behind) = tokio::join!(both().wait(5 * SECOND).acquire(), both().wait(2 * SECOND).acquire());
    for error in [head.expect_err("b is taken"), behind.expect_err("b is taken")] {
        assert_eq!(error.key(), Some("b"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_passes_its_turn_on() {
    let (locker, _) = counted();
    let guard = locker.lock("k").acquire().await.expect("it is free");
    let (head, next) = (spawn_waiter(&locker, "k"), spawn_waiter(&locker, "k"));
    tokio::time::sleep(SECOND).await;
    head.abort();
    guard.release().await.expect("it was ours");
    let started = tokio::time::Instant::now();
    next.await.expect("no panic").expect("it waits").release().await.expect("it was ours");
    assert!(started.elapsed() < SECOND / 10);
}

#[tokio::test(start_paused = true)]
async fn the_store_is_asked_once_without_a_wait_and_store_failures_are_never_busy() {
    let (locker, store) = counted();
    let guard = locker.lock("k").acquire().await.expect("it is free");
    assert!(locker.lock("k").try_acquire().await.expect("the store answers").is_none());
    assert_eq!(store.faults().calls(Verb::Acquire), 2);
    for fault in [Fault::LoseRequest, Fault::Refuse, Fault::Hang] {
        store.faults().always(Verb::Acquire, fault);
        let error = locker.lock("k").try_acquire().await.expect_err("the store fails");
        assert!(matches!(error, LockError::Store { .. }) && !error.is_busy(), "{fault:?}: {error}");
    }
    store.faults().heal();
    guard.release().await.expect("it was ours");
}

#[tokio::test(start_paused = true)]
async fn behind_a_head_without_an_answer_nobody_is_told_that_it_is_taken() {
    let machine = SimMachine::new(1);
    let store = FaultStore::new(store());
    let faults = store.faults();
    let locker = Locker::simulated(store, &machine);
    faults.cut_with(Fault::Hang);
    let (_, behind) = tokio::join!(
        locker.lock("k").wait(5 * SECOND).acquire(),
        locker.lock("k").wait(SECOND / 2).acquire()
    );
    let behind = behind.expect_err("the store does not answer");
    assert!(matches!(behind, LockError::Store { .. }), "{behind}");
}
