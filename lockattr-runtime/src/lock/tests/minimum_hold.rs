//! A minimum hold where the store cannot keep a released key: the keeper renews it until then.

use super::*;
use crate::store::{Fault, FaultStore, Verb};

fn without_keep() -> (Locker, FaultStore<MemoryStore>) {
    let store = FaultStore::new(store());
    store.faults().hide(Feature::Keep);
    (Locker::simulated(store.clone(), &SimMachine::new(1)), store)
}

#[tokio::test(start_paused = true)]
async fn the_keeper_keeps_it_and_nobody_holds_it() {
    for dropped in [false, true] {
        let (locker, _) = without_keep();
        let guard = locker.lock("k").expires(3 * SECOND).min_hold(30 * SECOND).acquire().await;
        let guard = guard.expect("it is free");
        let held = guard.held();
        if dropped {
            drop(guard);
        } else {
            guard.release().await.expect("it was ours");
        }
        let error = held.check().expect_err("it was given back");
        assert!(matches!(error, LockError::Lost { cause: LossCause::GivenBack, .. }), "{error}");
        held.lost().await;
        assert!(!held.is_held() && held.remaining().is_zero());
        tokio::time::sleep(29 * SECOND).await;
        assert!(is_taken(&locker, "k").await);
        tokio::time::sleep(2 * SECOND).await;
        assert!(!is_taken(&locker, "k").await && locker.held().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_lost_before_its_minimum_hold_leaves_the_list() {
    let (locker, _) = without_keep();
    let guard =
        locker.lock("k").expires(3 * SECOND).min_hold(30 * SECOND).acquire().await.expect("it is free");
    locker.force_release("k", guard.token()).await.expect("it is held");
    guard.lost().await;
    drop(guard);
    assert!(locker.held().is_empty());
    assert!(locker.shutdown(30 * SECOND).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_release_at_its_end_is_tried_again() {
    let (locker, store) = without_keep();
    let guard =
        locker.lock("k").expires(10 * SECOND).min_hold(30 * SECOND).acquire().await.expect("it is free");
    guard.release().await.expect("it was ours");
    store.faults().times(Verb::Release, 2, Fault::LoseRequest);
    tokio::time::sleep(31 * SECOND).await;
    assert!(!is_taken(&locker, "k").await, "it waits for its lease to run out");
}

#[tokio::test(start_paused = true)]
async fn it_holds_after_an_error_and_a_panic_too() {
    let (locker, _) = locker();
    let running = tokio::spawn({
        let locker = locker.clone();
        async move {
            let body = async |_| std::panic::resume_unwind(Box::new("body"));
            locker.lock("k").min_hold(10 * SECOND).run(body).await
        }
    });
    let _: Result<Result<(), LockError>, _> = running.await;
    tokio::time::sleep(9 * SECOND).await;
    assert!(is_taken(&locker, "k").await);
    tokio::time::sleep(2 * SECOND).await;
    assert!(!is_taken(&locker, "k").await);
}
