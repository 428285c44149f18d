//! A lease ends by the store's clock: not before its time, and then for good.

use std::time::Duration;

use super::bench::{Bench, eventually, refuse, rival, take, take_over, until_free};
use crate::lease::{Acquired, Lease, Released, Renewed};
use crate::store::Store;
use crate::time::Moment;

pub(super) async fn an_expired_lease_is_taken_over_but_not_before_its_time<S: Store>(bench: &Bench<S>) {
    let lease = bench.brief("crashed");
    let sent = Moment::now();
    let token = take(&*bench.store, &lease).await;
    let next = take_over(&*bench.store, &rival(&lease)).await;
    let waited = Moment::now().since(sent);
    assert!(waited >= lease.ttl * 49 / 50, "taken over after {waited:?} of {:?}", lease.ttl);
    assert!(next > token);
}

pub(super) async fn an_expired_attempt_is_spent<S: Store>(bench: &Bench<S>) {
    let lease = bench.brief("late");
    take(&*bench.store, &lease).await;
    until_free(&*bench.store, &lease.key).await;
    assert_eq!(bench.store.acquire(&lease).await.unwrap(), Acquired::Spent);
    assert_eq!(bench.store.renew(&lease).await.unwrap(), Renewed::Lost);
    take(&*bench.store, &rival(&lease)).await;
}

pub(super) async fn an_expired_holder_does_not_disturb_its_successor<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let (old, new) = (bench.brief("succession"), bench.lease("succession"));
    take(store, &old).await;
    let token = take_over(store, &new).await;
    assert_eq!(store.renew(&old).await.unwrap(), Renewed::Lost);
    assert_ne!(store.release(&old, None).await.unwrap(), Released::Released);
    assert_ne!(store.release(&old, Some(old.ttl)).await.unwrap(), Released::Released);
    assert_eq!(store.acquire(&old).await.unwrap(), Acquired::Spent);
    refuse(store, &rival(&old)).await;
    assert!(matches!(store.renew(&new).await.unwrap(), Renewed::Renewed { .. }));
    assert_eq!(take(store, &new).await, token);
}

pub(super) async fn a_lock_delay_keeps_an_expired_lease_out<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.brief("delayed");
    take(store, &lease).await;
    until_free(store, &lease.key).await;
    let patient = Lease { lock_delay: Duration::from_secs(600), ..rival(&lease) };
    assert!(refuse(store, &patient).await > lease.ttl);
    take(store, &rival(&lease)).await;
}

pub(super) async fn a_lock_delay_does_not_hold_back_a_released_key<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("delayed");
    take(&*bench.store, &lease).await;
    bench.store.release(&lease, None).await.unwrap();
    take(&*bench.store, &Lease { lock_delay: Duration::from_secs(600), ..rival(&lease) }).await;
}

pub(super) async fn what_remains_is_at_most_the_ttl_and_shrinks<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("clock");
    take(&*bench.store, &lease).await;
    let first = refuse(&*bench.store, &rival(&lease)).await;
    assert!(first <= lease.ttl, "{first:?}");
    eventually("time to pass", async || {
        let later = refuse(&*bench.store, &rival(&lease)).await;
        assert!(later <= first, "{later:?} after {first:?}");
        (later < first).then_some(())
    })
    .await;
}
