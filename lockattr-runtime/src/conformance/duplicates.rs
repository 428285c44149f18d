//! One attempt, one lease at most: answers that get lost, and requests that land late or twice.

use std::time::Duration;

use super::bench::{Bench, PATIENCE, eventually, is_held, refuse, rival, take};
use crate::lease::{Acquired, Lease, Released, Renewed};
use crate::store::{Fault, FaultStore, Store, Verb};

const LATE: Duration = Duration::from_millis(300);

async fn faulty<S: Store>(bench: &Bench<S>) -> FaultStore<S> {
    FaultStore::new(bench.another().await)
}

/// Lets the late duplicates land.
async fn later() {
    tokio::time::sleep(LATE * 2).await;
}

pub(super) async fn a_live_owner_gets_its_token_again_and_no_more_time<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.brief("retry");
    let token = take(store, &lease).await;
    let longer = Lease { ttl: bench.lease("").ttl, ..lease.clone() };
    match store.acquire(&longer).await.unwrap() {
        Acquired::Granted { token: again, remaining } => {
            assert_eq!(again, token);
            assert!(remaining <= lease.ttl, "a repeat prolonged the lease to {remaining:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(refuse(store, &rival(&lease)).await <= lease.ttl);
}

pub(super) async fn a_released_attempt_does_not_come_back<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("finished");
    take(&*bench.store, &lease).await;
    bench.store.release(&lease, None).await.unwrap();
    for _ in 0..3 {
        assert_eq!(bench.store.acquire(&lease).await.unwrap(), Acquired::Spent);
    }
    assert!(!is_held(&*bench.store, &lease.key).await);
}

pub(super) async fn a_lost_answer_is_found_again<S: Store>(bench: &Bench<S>) {
    let store = faulty(bench).await;
    store.faults().once(Verb::Acquire, Fault::LoseAnswer);
    let lease = bench.lease("lost");
    assert!(store.acquire(&lease).await.is_err_and(|error| error.is_unknown()));
    let first = bench.store.inspect(&lease.key).await.unwrap().expect("it took effect").token;
    assert_eq!(take(&store, &lease).await, first);

    store.faults().once(Verb::Release, Fault::LoseAnswer);
    assert!(store.release(&lease, None).await.is_err());
    assert_ne!(store.release(&lease, None).await.unwrap(), Released::Released);
    take(&store, &rival(&lease)).await;
}

pub(super) async fn a_late_acquire_of_a_finished_attempt_is_refused<S: Store>(bench: &Bench<S>) {
    let store = faulty(bench).await;
    store.faults().once(Verb::Acquire, Fault::Repeat(LATE));
    let lease = bench.lease("undead");
    take(&store, &lease).await;
    store.release(&lease, None).await.unwrap();
    later().await;
    assert!(!is_held(&*bench.store, &lease.key).await, "a late duplicate brought it back");
}

pub(super) async fn a_late_renewal_revives_nothing<S: Store>(bench: &Bench<S>) {
    let store = faulty(bench).await;
    store.faults().once(Verb::Renew, Fault::Repeat(LATE));
    let lease = bench.lease("undead");
    take(&store, &lease).await;
    store.renew(&lease).await.unwrap();
    store.release(&lease, None).await.unwrap();
    later().await;
    assert!(!is_held(&*bench.store, &lease.key).await);

    // Nor does one that lands in the lease of another.
    let (first, second) = (bench.lease("next"), bench.brief("next"));
    store.faults().once(Verb::Renew, Fault::Repeat(LATE));
    take(&store, &first).await;
    store.renew(&first).await.unwrap();
    store.release(&first, None).await.unwrap();
    take(&store, &second).await;
    later().await;
    match bench.store.acquire(&rival(&second)).await.unwrap() {
        Acquired::Taken { remaining, .. } => assert!(remaining <= second.ttl, "{remaining:?}"),
        // A slow machine: it has run out already.
        Acquired::Granted { .. } => {}
        Acquired::Spent => panic!("it was never granted"),
    }
}

pub(super) async fn a_late_release_frees_nobody_elses_lease<S: Store>(bench: &Bench<S>) {
    let store = faulty(bench).await;
    store.faults().once(Verb::Release, Fault::Repeat(LATE));
    let (first, second) = (bench.lease("handed"), bench.lease("handed"));
    take(&store, &first).await;
    store.release(&first, None).await.unwrap();
    take(&store, &second).await;
    later().await;
    refuse(&*bench.store, &rival(&second)).await;
    assert!(matches!(store.renew(&second).await.unwrap(), Renewed::Renewed { .. }));
}

pub(super) async fn a_shorter_renewal_that_lands_late_shortens_nothing<S: Store>(bench: &Bench<S>) {
    let store = faulty(bench).await;
    let lease = bench.brief("renewed");
    let (short, long) = (lease.clone(), Lease { ttl: bench.lease("").ttl, ..lease.clone() });
    take(&store, &lease).await;
    store.faults().once(Verb::Renew, Fault::LateRequest(LATE));
    let (late, prompt) = tokio::join!(store.renew(&short), async {
        // The late one is asked first, and so gets the fault.
        tokio::task::yield_now().await;
        bench.store.renew(&long).await
    });
    assert!(matches!(prompt.unwrap(), Renewed::Renewed { .. }));
    let Ok(Renewed::Renewed { remaining }) = late else { panic!("it is live") };
    assert!(remaining > lease.ttl * 2, "{remaining:?}");
    assert!(refuse(&*bench.store, &rival(&lease)).await > lease.ttl * 2);
    eventually("the short ttl to pass", async || {
        let left = refuse(&*bench.store, &rival(&lease)).await;
        (left + lease.ttl < long.ttl || left > PATIENCE).then_some(())
    })
    .await;
}
