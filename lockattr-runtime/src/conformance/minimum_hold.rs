//! A key released with `keep` stays taken until that long after its grant, by nobody.

use std::time::Duration;

use super::bench::{Bench, eventually, refuse, rival, state, take, take_over, until_free};
use crate::lease::{Acquired, Forced, Lease, RecordState, Released, Renewed};
use crate::store::Store;
use crate::time::Moment;

pub(super) async fn a_kept_key_is_taken_until_its_time_and_then_free<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("kept");
    let keep = bench.brief("").ttl;
    let sent = Moment::now();
    let token = take(store, &lease).await;
    assert_eq!(store.release(&lease, Some(keep)).await.unwrap(), Released::Released);
    let next = take_over(store, &rival(&lease)).await;
    let waited = Moment::now().since(sent);
    assert!(waited >= keep * 49 / 50, "free after {waited:?} of {keep:?}");
    assert!(next > token);
}

pub(super) async fn a_kept_key_has_no_owner<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("kept");
    let token = take(store, &lease).await;
    store.release(&lease, Some(lease.ttl)).await.unwrap();
    assert_eq!(store.renew(&lease).await.unwrap(), Renewed::Lost);
    assert_eq!(store.acquire(&lease).await.unwrap(), Acquired::Spent);
    match store.acquire(&rival(&lease)).await.unwrap() {
        Acquired::Taken { remaining, holder, .. } => {
            assert!(remaining <= lease.ttl && remaining > Duration::ZERO, "{remaining:?}");
            assert_eq!(holder, None, "nobody holds it");
        }
        other => panic!("{other:?}"),
    }
    let record = store.inspect(&lease.key).await.unwrap().expect("it is kept");
    assert_eq!(record.token, token);
    assert!(matches!(record.state, RecordState::Kept { remaining } if remaining <= lease.ttl), "{record:?}");
    let listed = store.list(&bench.prefix, None, 10).await.unwrap();
    assert!(matches!(listed[..], [ref record] if matches!(record.state, RecordState::Kept { .. })));
}

pub(super) async fn a_kept_key_needs_no_lock_delay<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("kept");
    take(store, &lease).await;
    store.release(&lease, Some(bench.brief("").ttl)).await.unwrap();
    take_over(store, &Lease { lock_delay: Duration::from_secs(600), ..rival(&lease) }).await;
}

pub(super) async fn keep_counts_from_the_grant<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("kept");
    let keep = bench.brief("").ttl;
    take(store, &lease).await;
    let granted = Moment::now();
    eventually("the minimum to pass", async || (Moment::now().since(granted) > keep).then_some(())).await;
    store.release(&lease, Some(keep)).await.unwrap();
    take(store, &rival(&lease)).await;
}

pub(super) async fn a_second_release_changes_no_keep<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let (kept, freed) = (bench.lease("kept"), bench.lease("freed"));
    take(store, &kept).await;
    store.release(&kept, Some(kept.ttl)).await.unwrap();
    assert_eq!(store.release(&kept, None).await.unwrap(), Released::AlreadyReleased);
    refuse(store, &rival(&kept)).await;

    take(store, &freed).await;
    store.release(&freed, None).await.unwrap();
    assert_eq!(store.release(&freed, Some(freed.ttl)).await.unwrap(), Released::AlreadyReleased);
    take(store, &rival(&freed)).await;
}

pub(super) async fn a_kept_key_can_be_forced<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("kept");
    let token = take(store, &lease).await;
    store.release(&lease, Some(lease.ttl)).await.unwrap();
    assert_eq!(store.force_release(&lease.key, token).await.unwrap(), Forced::Released);
    assert_ne!(store.acquire(&lease).await.unwrap(), Acquired::Granted { token, remaining: lease.ttl });
    assert!(take(store, &rival(&lease)).await > token);
}

pub(super) async fn a_lost_lease_is_not_kept<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.brief("lost");
    take(store, &lease).await;
    until_free(store, &lease.key).await;
    store.release(&lease, Some(Duration::from_secs(600))).await.unwrap();
    assert!(matches!(state(store, &lease.key).await, None | Some(RecordState::Free)));
    take(store, &rival(&lease)).await;
}
