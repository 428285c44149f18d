//! A release ends this owner's lease, at once, and nobody else's.

use std::time::Duration;

use super::bench::{Bench, is_held, refuse, rival, take, until_free};
use crate::lease::{Lease, RecordState, Released};
use crate::store::Store;

pub(super) async fn a_released_key_is_free_at_once<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("freed");
    let token = take(&*bench.store, &lease).await;
    assert_eq!(bench.store.release(&lease, None).await.unwrap(), Released::Released);
    if let Some(record) = bench.store.inspect(&lease.key).await.unwrap() {
        assert_eq!((record.token, record.state), (token, RecordState::Free));
    }
    assert!(take(&*bench.store, &rival(&lease)).await > token);
}

pub(super) async fn a_second_release_does_no_harm<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let (first, second) = (bench.lease("twice"), bench.lease("twice"));
    take(store, &first).await;
    store.release(&first, None).await.unwrap();
    assert_ne!(store.release(&first, None).await.unwrap(), Released::Released);
    take(store, &second).await;
    assert_ne!(store.release(&first, None).await.unwrap(), Released::Released);
    refuse(store, &rival(&first)).await;
    assert_eq!(store.release(&second, None).await.unwrap(), Released::Released);
}

pub(super) async fn another_owner_releases_nothing<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("mine");
    take(&*bench.store, &lease).await;
    for keep in [None, Some(Duration::from_secs(1)), Some(lease.ttl)] {
        assert_eq!(bench.store.release(&rival(&lease), keep).await.unwrap(), Released::NotHeld);
    }
    assert!(is_held(&*bench.store, &lease.key).await);
    refuse(&*bench.store, &rival(&lease)).await;
}

pub(super) async fn an_unknown_key_is_not_released_nor_created<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("unknown");
    assert_eq!(bench.store.release(&lease, None).await.unwrap(), Released::NotHeld);
    assert_eq!(bench.store.inspect(&lease.key).await.unwrap(), None);
}

pub(super) async fn an_expired_lease_is_released_without_a_lock_delay<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.brief("late");
    take(store, &lease).await;
    until_free(store, &lease.key).await;
    store.release(&lease, None).await.unwrap();
    // Its holder has said that it is done, so there is nothing to be careful about.
    take(store, &Lease { lock_delay: Duration::from_secs(600), ..rival(&lease) }).await;
}
