//! Several keys as one, in a store that takes them one by one.

use super::*;
use crate::store::{Fault, FaultStore, Verb};

fn one_by_one() -> (Locker, FaultStore<MemoryStore>) {
    let store = FaultStore::new(store());
    store.faults().hide(Feature::AtomicMany);
    (Locker::simulated(store.clone(), &SimMachine::new(1)), store)
}

#[tokio::test(start_paused = true)]
async fn a_late_undo_of_an_earlier_attempt_does_not_free_what_a_later_one_got() {
    let (locker, store) = one_by_one();
    let other = locker.lock("b").acquire().await.expect("it is free");
    // `a` is got, `b` is not, and giving `a` back takes longer than anybody waits for it.
    store.faults().once(Verb::Release, Fault::LateRequest(20 * SECOND));
    let waiting = tokio::spawn(locker.lock_many(["a", "b"]).wait(Wait::Forever).acquire());
    tokio::time::sleep(SECOND).await;
    other.release().await.expect("it was ours");
    let both = waiting.await.expect("no panic").expect("it waits");
    for _ in 0..40 {
        tokio::time::sleep(SECOND).await;
        assert!(both.is_held() && is_taken(&locker, "a").await && is_taken(&locker, "b").await);
    }
    both.release().await.expect("it was ours");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_while_it_waits() {
    let (locker, _) = one_by_one();
    let _other = locker.lock("c").acquire().await.expect("it is free");
    let waiting = tokio::spawn(locker.lock_many(["c", "b", "a", "b"]).wait(Wait::Forever).acquire());
    tokio::time::sleep(5 * SECOND).await;
    assert!(!is_taken(&locker, "a").await && !is_taken(&locker, "b").await);
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn opposite_orders_do_not_block_each_other() {
    let (locker, _) = one_by_one();
    let tasks = (0..20).map(|number| {
        let keys = if number % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
        let request = locker.lock_many(keys).wait(Wait::Forever);
        tokio::spawn(async move { request.run(async |_| tokio::time::sleep(SECOND).await).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        let ended = tokio::time::timeout(60 * SECOND, task).await;
        ended.expect("they get there").expect("no panic").expect("it waits");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_given_back_is_not_called_taken() {
    let (locker, store) = one_by_one();
    store.faults().once(Verb::Acquire, Fault::LateAnswer(30 * SECOND));
    store.faults().always(Verb::Release, Fault::LoseRequest);
    let error =
        locker.lock_many(["a", "b"]).wait(6 * SECOND).acquire().await.expect_err("it is in its own way");
    assert!(matches!(error, LockError::Store { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn each_key_has_its_token_and_the_body_may_not_ask_for_any_of_them() {
    let (locker, _) = one_by_one();
    let ran = locker.lock_many(["b", "a"]).run(async |held| {
        assert_eq!(held.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(held.token_of("a").is_some() && held.token_of("b").is_some() && held.token_of("c").is_none());
        for key in ["a", "b"] {
            let again = locker.lock_many(["c", key]).wait(Wait::Forever).acquire().await;
            assert!(matches!(again, Err(LockError::WouldDeadlock { .. })), "{again:?}");
        }
        let free = locker.lock("c").acquire().await.expect("another key is free");
        // A task of its own is not the body: it waits.
        let spawned = tokio::spawn(locker.lock("a").wait(SECOND).acquire());
        assert!(matches!(spawned.await.expect("no panic"), Err(LockError::Busy { .. })));
        free.release().await.expect("it was ours");
    });
    ran.await.expect("they are free");
}
