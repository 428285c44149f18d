//! A renewal moves the expiry of the lease that is there, and does nothing else.

use super::bench::{Bench, eventually, is_held, refuse, rival, take, until_free};
use crate::lease::{Acquired, Lease, Renewed};
use crate::store::Store;
use crate::time::Moment;

pub(super) async fn a_renewal_keeps_the_lease_beyond_its_first_ttl<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let brief = bench.brief("renewed");
    let (started, ttl) = (Moment::now(), brief.ttl);
    take(store, &brief).await;
    let longer = Lease { ttl: bench.lease("").ttl, ..brief };
    let Ok(Renewed::Renewed { remaining }) = store.renew(&longer).await else { panic!("it is live") };
    assert!(remaining > ttl && remaining <= longer.ttl, "{remaining:?}");
    eventually("the first ttl to pass", async || (Moment::now().since(started) > ttl * 3 / 2).then_some(()))
        .await;
    refuse(store, &rival(&longer)).await;
    assert!(matches!(store.renew(&longer).await.unwrap(), Renewed::Renewed { .. }));
}

pub(super) async fn a_renewal_keeps_the_token<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("token");
    let token = take(&*bench.store, &lease).await;
    for _ in 0..3 {
        assert!(matches!(bench.store.renew(&lease).await.unwrap(), Renewed::Renewed { .. }));
    }
    assert_eq!(bench.store.inspect(&lease.key).await.unwrap().map(|record| record.token), Some(token));
    assert_eq!(take(&*bench.store, &lease).await, token);
}

pub(super) async fn a_renewal_never_shortens<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("long");
    take(store, &lease).await;
    let shorter = Lease { ttl: bench.brief("").ttl, ..lease.clone() };
    for _ in 0..2 {
        let Ok(Renewed::Renewed { remaining }) = store.renew(&shorter).await else { panic!("it is live") };
        assert!(remaining > shorter.ttl * 2, "{remaining:?} are left of {:?}", lease.ttl);
    }
    assert!(refuse(store, &rival(&lease)).await > shorter.ttl * 2);
}

pub(super) async fn another_owner_renews_nothing<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.brief("mine");
    take(store, &lease).await;
    let thief = Lease { ttl: bench.lease("").ttl, ..rival(&lease) };
    assert_eq!(store.renew(&thief).await.unwrap(), Renewed::Lost);
    assert!(refuse(store, &rival(&lease)).await <= lease.ttl, "the other's renewal moved the expiry");
    assert_eq!(store.renew(&rival(&lease)).await.unwrap(), Renewed::Lost);
}

pub(super) async fn an_unknown_key_is_not_created<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("unknown");
    assert_eq!(bench.store.renew(&lease).await.unwrap(), Renewed::Lost);
    assert_eq!(bench.store.inspect(&lease.key).await.unwrap(), None);
}

pub(super) async fn a_released_lease_is_not_revived<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("released");
    take(&*bench.store, &lease).await;
    bench.store.release(&lease, None).await.unwrap();
    assert_eq!(bench.store.renew(&lease).await.unwrap(), Renewed::Lost);
    assert!(!is_held(&*bench.store, &lease.key).await);
}

pub(super) async fn an_expired_lease_is_not_revived<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.brief("expired");
    take(store, &lease).await;
    until_free(store, &lease.key).await;
    // Nobody has taken it, and still somebody might have.
    assert_eq!(store.renew(&lease).await.unwrap(), Renewed::Lost);
    assert!(!is_held(store, &lease.key).await);
    assert_eq!(store.acquire(&lease).await.unwrap(), Acquired::Spent);
}
