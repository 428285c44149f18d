//! What people see and do from outside: inspect, list, force, audit.

use std::time::Duration;

use super::bench::{Bench, eventually, is_held, rival, state, take, until_free};
use crate::lease::{Acquired, FencingToken, Forced, Lease, RecordState, Released, Renewed};
use crate::store::Store;

pub(super) async fn inspect_shows_what_a_key_is<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("seen");
    assert_eq!(store.inspect(&lease.key).await.unwrap(), None);
    let token = take(store, &lease).await;
    eventually("some age", async || {
        let record = store.inspect(&lease.key).await.unwrap().expect("it is held");
        assert_eq!((&record.key, record.token), (&lease.key, token));
        let RecordState::Held { remaining, age, holder } = record.state else { panic!("{record:?}") };
        assert_eq!(holder, lease.holder);
        assert!(remaining <= lease.ttl && remaining + age + Duration::from_secs(60) > lease.ttl);
        (age > Duration::ZERO && remaining < lease.ttl).then_some(())
    })
    .await;
    store.release(&lease, None).await.unwrap();
    assert!(matches!(state(store, &lease.key).await, None | Some(RecordState::Free)));
}

pub(super) async fn list_shows_what_is_not_free<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let (held, freed, expired) = (bench.lease("held"), bench.lease("freed"), bench.brief("expired"));
    let token = take(store, &held).await;
    take(store, &freed).await;
    take(store, &expired).await;
    store.release(&freed, None).await.unwrap();
    until_free(store, &expired.key).await;
    let listed = store.list(&bench.prefix, None, 10).await.unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0].key, listed[0].token), (&held.key, token));
    assert!(matches!(&listed[0].state, RecordState::Held { holder, .. } if *holder == held.holder));
    assert_eq!(store.list(&bench.prefix, Some(&held.key), 10).await.unwrap(), []);
    assert_eq!(store.list(&bench.key("nothing"), None, 10).await.unwrap(), []);
    assert_eq!(store.list(&bench.prefix, None, 0).await.unwrap(), []);
    // The empty prefix is everything in the storage.
    assert!(store.list("", None, 100_000).await.unwrap().iter().any(|record| record.key == held.key));
}

pub(super) async fn force_needs_the_observed_token<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("stuck");
    let token = take(store, &lease).await;
    for wrong in [token.get() - 1, token.get() + 1, 0] {
        let answer = store.force_release(&lease.key, FencingToken::new(wrong)).await.unwrap();
        assert_eq!(answer, Forced::Changed);
    }
    assert!(is_held(store, &lease.key).await);
    assert_eq!(store.force_release(&lease.key, token).await.unwrap(), Forced::Released);
    assert_eq!(store.force_release(&lease.key, token).await.unwrap(), Forced::Changed);
    let forced = store.inspect(&lease.key).await.unwrap();
    assert!(forced.as_ref().is_none_or(|record| record.token > token), "{forced:?}");
    let next = take(store, &rival(&lease)).await;
    assert!(next > token && forced.is_none_or(|record| next > record.token));
    // What was observed before is no licence to end the next holder's lease.
    assert_eq!(store.force_release(&lease.key, token).await.unwrap(), Forced::Changed);
    assert!(is_held(store, &lease.key).await);
}

pub(super) async fn a_forced_attempt_is_over_for_good<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("forced");
    let token = take(store, &lease).await;
    store.force_release(&lease.key, token).await.unwrap();
    assert_eq!(store.renew(&lease).await.unwrap(), Renewed::Lost);
    assert_eq!(store.acquire(&lease).await.unwrap(), Acquired::Spent);
    assert_ne!(store.release(&lease, None).await.unwrap(), Released::Released);
    assert!(!is_held(store, &lease.key).await);
    assert!(take(store, &Lease { lock_delay: Duration::from_secs(600), ..rival(&lease) }).await > token);
    assert_ne!(store.release(&lease, None).await.unwrap(), Released::Released);
    assert!(is_held(store, &lease.key).await);
}

pub(super) async fn force_of_an_unknown_key_creates_nothing<S: Store>(bench: &Bench<S>) {
    let key = bench.key("unknown");
    assert_eq!(bench.store.force_release(&key, FencingToken::new(0)).await.unwrap(), Forced::Changed);
    assert_eq!(bench.store.force_release(&key, FencingToken::new(1)).await.unwrap(), Forced::Changed);
    assert_eq!(bench.store.inspect(&key).await.unwrap(), None);
}

pub(super) async fn audit_and_bounds_answer<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let audit = store.audit().await.unwrap();
    assert!(audit.findings.iter().all(|finding| !finding.text.is_empty() && finding.level >= audit.level));
    let range = store.ttl_range();
    assert!(range.min < range.max && range.min <= Duration::from_secs(10), "{range:?}");
    let name = store.name();
    assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
}
