//! Futures dropped at any await, answers that are late or lost: nothing stays behind.

use super::*;
use crate::store::{Fault, FaultStore, Verb};

/// What goes wrong with the first requests of a kind.
const TROUBLE: [Option<Fault>; 6] = [
    None,
    Some(Fault::LoseAnswer),
    Some(Fault::LoseRequest),
    Some(Fault::LateAnswer(Duration::from_millis(300))),
    Some(Fault::LateRequest(Duration::from_millis(300))),
    Some(Fault::Repeat(Duration::from_millis(300))),
];

fn faulty(verb: Verb, fault: Option<Fault>) -> (Locker, FaultStore<MemoryStore>) {
    let store = FaultStore::new(store());
    if let Some(fault) = fault {
        store.faults().times(verb, 2, fault);
    }
    (Locker::simulated(store.clone(), &SimMachine::new(1)), store)
}

/// Polls `future` so often, with a little time between, and drops it. Says whether it was ready.
async fn polled<F: Future>(future: F, times: usize) -> bool {
    let mut future = Box::pin(future);
    for _ in 0..times {
        if futures_poll(future.as_mut()).await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(13)).await;
    }
    false
}

/// After this long nothing of a lease of ten seconds may be left, whatever was on its way.
async fn nothing_stays(locker: &Locker, case: &str) {
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    assert!(!is_taken(locker, "k").await, "{case}");
    assert!(locker.held().is_empty(), "{case}");
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_given_up_at_any_await_leaves_nothing() {
    for fault in TROUBLE {
        for polls in 0.. {
            let (locker, _) = faulty(Verb::Acquire, fault);
            let ready = polled(locker.lock("k").expires(10 * SECOND).wait(SECOND).acquire(), polls).await;
            nothing_stays(&locker, &format!("{fault:?}, {polls} polls")).await;
            if ready {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_given_up_at_any_await_goes_on() {
    for fault in TROUBLE {
        for polls in 0.. {
            let (locker, _) = faulty(Verb::Release, fault);
            let guard = locker.lock("k").expires(10 * SECOND).acquire().await.expect("it is free");
            let ready = polled(guard.release(), polls).await;
            nothing_stays(&locker, &format!("{fault:?}, {polls} polls")).await;
            if ready {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn several_keys_given_up_at_any_await_leave_nothing() {
    for (fault, verb) in
        TROUBLE.into_iter().flat_map(|fault| [(fault, Verb::Acquire), (fault, Verb::Release)])
    {
        for polls in 0.. {
            let (locker, store) = faulty(verb, fault);
            store.faults().hide(Feature::AtomicMany);
            let keys = ["k", "l", "m"];
            let work = locker.lock_many(keys).expires(10 * SECOND).wait(SECOND).run(async |_| ());
            let ready = polled(work, polls).await;
            nothing_stays(&locker, &format!("{verb:?} {fault:?}, {polls} polls")).await;
            assert!(
                !is_taken(&locker, "l").await && !is_taken(&locker, "m").await,
                "{fault:?}, {polls} polls"
            );
            if ready {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_by_the_same_owner_and_is_not_busy() {
    for wait in [Duration::ZERO, SECOND] {
        for fault in [Fault::LoseAnswer, Fault::LateAnswer(7 * SECOND), Fault::LateRequest(7 * SECOND)] {
            let (locker, store) = faulty(Verb::Acquire, None);
            store.faults().once(Verb::Acquire, fault);
            let guard = locker.lock("k").expires(30 * SECOND).wait(wait).acquire().await;
            let guard = guard.unwrap_or_else(|error| panic!("{wait:?} {fault:?}: {error}"));
            // The request that is late finds the same owner, and changes nothing.
            tokio::time::sleep(10 * SECOND).await;
            assert!(guard.is_held());
            guard.release().await.expect("it was ours");
            assert!(!is_taken(&locker, "k").await, "{wait:?} {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_store_refused_is_not_given_back() {
    let (locker, store) = faulty(Verb::Acquire, None);
    store.faults().always(Verb::Acquire, Fault::Refuse);
    let error = locker.lock("k").acquire().await.expect_err("the store refuses");
    assert!(matches!(error, LockError::Store { .. }), "{error}");
    tokio::time::sleep(100 * SECOND).await;
    assert_eq!(store.faults().calls(Verb::Release), 0);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_granted_is_given_back_until_it_is_over() {
    let (locker, store) = faulty(Verb::Acquire, None);
    // It lands 20 seconds after everybody has forgotten it.
    store.faults().always(Verb::Acquire, Fault::LateRequest(20 * SECOND));
    let error = locker.lock("k").acquire().await.expect_err("there is no answer");
    assert!(matches!(error, LockError::Store { .. }), "{error}");
    let mut seen = false;
    for _ in 0..1_000 {
        seen |= is_taken(&locker, "k").await;
        tokio::time::sleep(Duration::from_millis(21)).await;
    }
    assert!(seen && !is_taken(&locker, "k").await);
    tokio::time::sleep(60 * SECOND).await;
    let calls = store.faults().calls(Verb::Release);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(store.faults().calls(Verb::Release), calls, "it goes on for ever");
}

#[tokio::test(start_paused = true)]
async fn a_failed_release_never_replaces_the_bodys_result() {
    let (locker, store) = faulty(Verb::Release, None);
    store.faults().always(Verb::Release, Fault::LoseRequest);
    assert_eq!(locker.lock("k").expires(SECOND).run(async |_| 7).await.expect("it is free"), 7);
    assert!(is_taken(&locker, "k").await);
    store.faults().heal();
    settled(&locker, "k").await;
}
