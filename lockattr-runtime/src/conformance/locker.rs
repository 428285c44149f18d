//! The core on this store: what a locker promises whatever happens to its futures, guards and answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use super::bench::{Bench, PATIENCE, PAUSE, eventually};
use super::cancel::{at_every_poll, polled};
use crate::lease::{Forced, RecordState};
use crate::store::{Fault, FaultStore, Faults, Store, Verb};
use crate::time::Moment;
use crate::{LockError, Locker};

const LONG: Duration = Duration::from_secs(600);

async fn locker<S: Store>(bench: &Bench<S>) -> Locker {
    Locker::new(bench.another().await).prefix(&bench.prefix).unwrap()
}

async fn faulty<S: Store>(bench: &Bench<S>) -> (Locker, Faults) {
    let store = FaultStore::new(bench.another().await);
    let faults = store.faults();
    (Locker::new(store).prefix(&bench.prefix).unwrap(), faults)
}

/// Becomes free long before its lease would end, without anybody waiting for it.
async fn becomes_free(observer: &Locker, key: &str) {
    eventually("nothing to be held", async || {
        let record = observer.inspect(key).await.unwrap();
        record.is_none_or(|record| record.state == RecordState::Free).then_some(())
    })
    .await;
}

pub(super) async fn a_guard_excludes_and_its_token_grows<S: Store>(bench: &Bench<S>) {
    let (one, other) = (locker(bench).await, locker(bench).await);
    let mut last = None;
    for _ in 0..5 {
        let guard = one.lock("k").expires(LONG).acquire().await.unwrap();
        assert!(guard.is_held() && guard.check().is_ok() && guard.remaining() > LONG / 2);
        assert!(other.lock("k").try_acquire().await.unwrap().is_none());
        assert!(Some(guard.token()) > last);
        last = Some(guard.token());
        guard.release().await.unwrap();
    }
}

pub(super) async fn a_dropped_guard_frees_its_key<S: Store>(bench: &Bench<S>) {
    let (one, other) = (locker(bench).await, locker(bench).await);
    drop(one.lock("k").expires(LONG).acquire().await.unwrap());
    becomes_free(&other, "k").await;
    assert!(other.lock("k").try_acquire().await.unwrap().is_some());
}

pub(super) async fn an_acquire_dropped_at_every_await_leaves_nothing_held<S: Store>(bench: &Bench<S>) {
    let observer = locker(bench).await;
    for late in [None, Some(Fault::LateRequest(PAUSE)), Some(Fault::LateAnswer(PAUSE))] {
        let (locker, faults) = faulty(bench).await;
        if let Some(fault) = late {
            faults.always(Verb::Acquire, fault);
        }
        at_every_poll(async |polls| {
            let key = format!("{late:?}{polls}");
            let ended = polled(locker.lock(&key).expires(LONG).acquire(), polls).await;
            let ended = ended.map(|guard| guard.map(drop).unwrap());
            // A request that is still on its way must not land unseen.
            tokio::time::sleep(PAUSE * 2).await;
            becomes_free(&observer, &key).await;
            ended
        })
        .await;
    }
}

pub(super) async fn a_waiter_dropped_anywhere_does_not_stand_in_the_way<S: Store>(bench: &Bench<S>) {
    let (one, other) = (locker(bench).await, locker(bench).await);
    let guard = one.lock("k").expires(LONG).acquire().await.unwrap();
    for polls in 0..6 {
        let waiting = other.lock("k").expires(LONG).wait(PATIENCE).acquire();
        assert!(polled(waiting, polls).await.is_none());
    }
    let next = tokio::join!(other.lock("k").wait(PATIENCE).acquire(), async {
        tokio::time::sleep(PAUSE).await;
        guard.release().await
    });
    assert!(next.0.unwrap().is_held() && next.1.is_ok());
}

pub(super) async fn a_guard_is_renewed_beyond_its_ttl<S: Store>(bench: &Bench<S>) {
    let (one, other) = (locker(bench).await, locker(bench).await);
    let ttl = bench.brief("").ttl;
    let guard = one.lock("k").expires(ttl).acquire().await.unwrap();
    let started = Moment::now();
    eventually("three ttls to pass", async || {
        assert!(guard.is_held(), "lost after {:?}", Moment::now().since(started));
        assert!(other.lock("k").try_acquire().await.unwrap().is_none());
        (Moment::now().since(started) > ttl * 3).then_some(())
    })
    .await;
    guard.release().await.unwrap();
}

pub(super) async fn a_forced_guard_is_lost<S: Store>(bench: &Bench<S>) {
    let (one, other) = (locker(bench).await, locker(bench).await);
    let guard = one.lock("k").expires(bench.brief("").ttl * 2).acquire().await.unwrap();
    assert_eq!(other.force_release("k", guard.token()).await.unwrap(), Forced::Released);
    let next = other.lock("k").expires(LONG).acquire().await.unwrap();
    assert!(next.token() > guard.token());
    tokio::time::timeout(PATIENCE, guard.lost()).await.expect("its next renewal tells it");
    assert!(matches!(guard.check(), Err(LockError::Lost { .. })));
    drop(guard);
    tokio::time::sleep(PAUSE * 5).await;
    assert!(next.is_held());
    assert!(one.lock("k").try_acquire().await.unwrap().is_none(), "a lost guard freed the next one's lease");
}

pub(super) async fn a_lost_answer_is_asked_for_again<S: Store>(bench: &Bench<S>) {
    let (locker, faults) = faulty(bench).await;
    faults.once(Verb::Acquire, Fault::LoseAnswer);
    let guard = locker.lock("k").expires(LONG).wait(PATIENCE).acquire().await.unwrap();
    let record = locker.inspect("k").await.unwrap().expect("it is held");
    assert_eq!(record.token, guard.token());
    faults.once(Verb::Release, Fault::LoseAnswer);
    guard.release().await.ok();
    becomes_free(&locker, "k").await;
}

pub(super) async fn an_outcome_that_stays_unknown_is_undone<S: Store>(bench: &Bench<S>) {
    let observer = locker(bench).await;
    let (locker, faults) = faulty(bench).await;
    faults.always(Verb::Acquire, Fault::LoseAnswer);
    match locker.lock("k").expires(LONG).acquire().await {
        Err(error @ LockError::Store { .. }) => assert!(!error.is_busy()),
        other => panic!("a store failure is neither busy nor a lock: {other:?}"),
    }
    becomes_free(&observer, "k").await;
}

pub(super) async fn a_store_out_of_reach_is_never_busy<S: Store>(bench: &Bench<S>) {
    let (locker, faults) = faulty(bench).await;
    faults.cut();
    match locker.lock("k").try_acquire().await {
        Err(error) => assert!(!error.is_busy() && error.is_retryable(), "{error}"),
        Ok(guard) => panic!("{:?}", guard.is_some()),
    }
    faults.heal();
    assert!(locker.lock("k").try_acquire().await.unwrap().is_some());
}

pub(super) async fn lockers_of_many_tasks_never_overlap<S: Store>(bench: &Bench<S>) {
    const TASKS: usize = 20;
    let inside = Arc::new(AtomicUsize::new(0));
    let lockers = [locker(bench).await, locker(bench).await];
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (locker, inside) = (lockers[task % 2].clone(), Arc::clone(&inside));
        tasks.spawn(async move {
            let guard = locker.lock("k").expires(LONG).wait(PATIENCE * 2).acquire().await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two guards at once");
            tokio::time::sleep(PAUSE / 10).await;
            inside.fetch_sub(1, Ordering::SeqCst);
            let token = guard.token();
            guard.release().await.unwrap();
            token
        });
    }
    let mut tokens = tasks.join_all().await;
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), TASKS, "every grant has a token of its own");
}
