use super::*;
use crate::lease::{Owner, RecordState};
use crate::store::MemoryStore;

const LONG: Duration = Duration::from_secs(60);

fn lease(key: &str) -> Lease {
    Lease::new(key, Owner::random(), LONG)
}

async fn is_held(store: &FaultStore<MemoryStore>, key: &str) -> bool {
    let record = store.inner().inspect(key).await.unwrap();
    record.is_some_and(|record| matches!(record.state, RecordState::Held { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_has_an_effect_and_a_lost_request_has_none() {
    let store = FaultStore::new(MemoryStore::new());
    store.faults().once(Verb::Acquire, Fault::LoseAnswer);
    store.faults().once(Verb::Acquire, Fault::LoseRequest);
    store.faults().once(Verb::Acquire, Fault::Refuse);
    assert!(store.acquire(&lease("a")).await.unwrap_err().is_unknown());
    assert!(store.acquire(&lease("b")).await.unwrap_err().is_unknown());
    assert!(!store.acquire(&lease("c")).await.unwrap_err().is_unknown());
    assert!(matches!(store.acquire(&lease("d")).await, Ok(Acquired::Granted { .. })));
    for (key, held) in [("a", true), ("b", false), ("c", false), ("d", true)] {
        assert_eq!(is_held(&store, key).await, held, "{key}");
    }
    assert_eq!(store.faults().calls(Verb::Acquire), 4);
}

#[tokio::test(start_paused = true)]
async fn a_late_request_lands_although_its_caller_has_gone() {
    let store = FaultStore::new(MemoryStore::new());
    store.faults().once(Verb::Acquire, Fault::LateRequest(LONG));
    let lease = lease("a");
    assert!(tokio::time::timeout(LONG / 2, store.acquire(&lease)).await.is_err());
    assert!(!is_held(&store, "a").await);
    tokio::time::sleep(LONG).await;
    assert!(is_held(&store, "a").await);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_follows_an_effect_at_once() {
    let store = FaultStore::new(MemoryStore::new());
    store.faults().once(Verb::Acquire, Fault::LateAnswer(LONG));
    let started = tokio::time::Instant::now();
    let lease = lease("a");
    let mut asking = Box::pin(store.acquire(&lease));
    assert!(tokio::time::timeout(LONG / 2, &mut asking).await.is_err());
    assert!(is_held(&store, "a").await);
    assert!(matches!(asking.await, Ok(Acquired::Granted { .. })));
    assert_eq!(started.elapsed(), LONG);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_release_lands_on_whoever_holds_it_then() {
    let store = FaultStore::new(MemoryStore::new());
    let (first, second) = (lease("a"), lease("a"));
    store.acquire(&first).await.unwrap();
    store.faults().once(Verb::Release, Fault::Repeat(LONG / 2));
    assert_eq!(store.release(&first, None).await.unwrap(), Released::Released);
    store.acquire(&second).await.unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(store.faults().calls(Verb::Release), 1);
    assert!(is_held(&store, "a").await);
}

#[tokio::test(start_paused = true)]
async fn a_cut_goes_before_all_else_and_ends_with_heal() {
    let store = FaultStore::new(MemoryStore::new());
    store.faults().always(Verb::Renew, Fault::Refuse);
    store.faults().cut();
    let lease = lease("a");
    assert!(store.acquire(&lease).await.unwrap_err().is_unknown());
    assert!(store.renew(&lease).await.unwrap_err().is_unknown());
    assert!(store.audit().await.is_err() && store.collect(LONG, 1).await.is_err());
    store.faults().heal();
    assert!(store.acquire(&lease).await.is_ok());
    assert!(matches!(store.renew(&lease).await, Ok(Renewed::Renewed { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_never_lands() {
    let store = FaultStore::new(MemoryStore::new());
    store.faults().cut_with(Fault::Hang);
    let lease = lease("a");
    assert!(tokio::time::timeout(LONG, store.acquire(&lease)).await.is_err());
    assert!(!is_held(&store, "a").await);
}

#[tokio::test(start_paused = true)]
async fn without_an_atomic_step_each_key_is_a_request() {
    let store = FaultStore::new(MemoryStore::new());
    let leases = [lease("a"), lease("b"), lease("c")];
    store.acquire_many(&leases).await.unwrap();
    store.release_many(&leases, None).await.unwrap();
    assert_eq!((store.faults().calls(Verb::Acquire), store.faults().calls(Verb::Release)), (1, 1));

    store.faults().hide(Feature::AtomicMany);
    store.faults().times(Verb::Acquire, 2, Fault::LateAnswer(Duration::ZERO));
    store.faults().once(Verb::Acquire, Fault::LoseRequest);
    let leases = [lease("a"), lease("b"), lease("c")];
    assert!(store.acquire_many(&leases).await.unwrap_err().is_unknown());
    assert!(is_held(&store, "a").await && is_held(&store, "b").await && !is_held(&store, "c").await);
    store.release_many(&leases, None).await.unwrap();
    assert_eq!((store.faults().calls(Verb::Acquire), store.faults().calls(Verb::Release)), (4, 4));
    assert!(!is_held(&store, "a").await && !is_held(&store, "b").await);
}

#[test]
fn what_is_plain_is_passed_on() {
    let store = FaultStore::new(MemoryStore::new());
    assert_eq!((store.name(), store.default_prefix()), ("memory", ""));
    assert_eq!(store.ttl_range(), MemoryStore::new().ttl_range());
    assert!(store.watch().is_some() && store.supports(Feature::Watch));
    store.faults().hide(Feature::Watch);
    assert!(store.watch().is_none() && !store.supports(Feature::Watch));
}
