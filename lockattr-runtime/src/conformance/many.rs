//! Several keys: all or none.

use super::bench::{Bench, is_held, refuse, rival, take};
use crate::lease::{AcquiredMany, FencingToken, Lease, Owner};
use crate::store::Store;

/// One owner's leases of several keys.
fn group<S: Store>(bench: &Bench<S>, names: &[&str]) -> Vec<Lease> {
    let owner = Owner::random();
    names.iter().map(|name| Lease { owner, ..bench.lease(name) }).collect()
}

fn regroup(leases: &[Lease]) -> Vec<Lease> {
    let owner = Owner::random();
    leases.iter().map(|lease| Lease { owner, ..lease.clone() }).collect()
}

async fn take_all<S: Store>(store: &S, leases: &[Lease]) -> Vec<FencingToken> {
    match store.acquire_many(leases).await {
        Ok(AcquiredMany::Granted { tokens, remaining }) => {
            assert!(leases.iter().all(|lease| remaining <= lease.ttl));
            assert_eq!(tokens.len(), leases.len());
            tokens
        }
        other => panic!("all must be granted, but: {other:?}"),
    }
}

pub(super) async fn all_are_granted_with_their_tokens<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let leases = group(bench, &["a", "b", "c"]);
    let tokens = take_all(store, &leases).await;
    for (lease, token) in leases.iter().zip(tokens) {
        assert_eq!(store.inspect(&lease.key).await.unwrap().map(|record| record.token), Some(token));
        refuse(store, &rival(lease)).await;
        assert_eq!(take(store, lease).await, token, "one of them can be asked for alone");
    }
}

pub(super) async fn one_that_is_taken_leaves_none_held<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
        let blocker = bench.lease(name);
        take(store, &blocker).await;
        let leases = group(bench, &["a", "b", "c"]);
        match store.acquire_many(&leases).await.unwrap() {
            AcquiredMany::Taken { index, remaining, holder } => {
                assert_eq!(index, place);
                assert!(remaining <= blocker.ttl);
                assert!(holder.is_none_or(|holder| holder == blocker.holder));
            }
            other => panic!("{other:?}"),
        }
        for (other, lease) in leases.iter().enumerate() {
            assert_eq!(is_held(store, &lease.key).await, other == place, "{}", lease.key);
        }
        store.release(&blocker, None).await.unwrap();
    }
    take_all(store, &group(bench, &["a", "b", "c"])).await;
}

pub(super) async fn one_that_is_spent_leaves_none_held<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    for place in 0..3 {
        let leases = group(bench, &["a", "b", "c"]);
        let tokens = take_all(store, &leases).await;
        store.force_release(&leases[place].key, tokens[place]).await.unwrap();
        match store.acquire_many(&leases).await.unwrap() {
            AcquiredMany::Spent { index } => assert_eq!(index, place),
            other => panic!("{other:?}"),
        }
        for lease in &leases {
            assert!(!is_held(store, &lease.key).await, "{} is still held", lease.key);
        }
    }
}

pub(super) async fn a_repeat_gives_the_same_tokens<S: Store>(bench: &Bench<S>) {
    let leases = group(bench, &["a", "b"]);
    let tokens = take_all(&*bench.store, &leases).await;
    assert_eq!(take_all(&*bench.store, &leases).await, tokens);
}

pub(super) async fn all_are_released_and_once_more_without_harm<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let leases = group(bench, &["a", "b", "c"]);
    take_all(store, &leases).await;
    // One that is gone already must not keep the others.
    store.release(&leases[1], None).await.unwrap();
    assert_eq!(store.release_many(&leases, None).await.unwrap().len(), 3);
    let next = regroup(&leases);
    take_all(store, &next).await;
    store.release_many(&leases, None).await.unwrap();
    for lease in &next {
        assert!(is_held(store, &lease.key).await);
    }
}

pub(super) async fn a_refusal_is_never_seen_by_others<S: Store>(bench: &Bench<S>) {
    let (store, prober) = (&*bench.store, bench.another().await);
    take(store, &bench.lease("taken")).await;
    let refused = async {
        for _ in 0..50 {
            let leases = group(bench, &["free", "taken"]);
            assert!(matches!(store.acquire_many(&leases).await.unwrap(), AcquiredMany::Taken { .. }));
        }
    };
    let probing = async {
        for _ in 0..50 {
            let lease = bench.lease("free");
            take(&prober, &lease).await;
            prober.release(&lease, None).await.unwrap();
        }
    };
    tokio::join!(refused, probing);
}

pub(super) async fn opposite_orders_never_share<S: Store>(bench: &Bench<S>) {
    let (here, there) = (&*bench.store, bench.another().await);
    for _ in 0..50 {
        let (ours, theirs) = (group(bench, &["a", "b"]), group(bench, &["b", "a"]));
        let (one, other) = tokio::join!(here.acquire_many(&ours), there.acquire_many(&theirs));
        let won = [one.unwrap(), other.unwrap()].map(|answer| matches!(answer, AcquiredMany::Granted { .. }));
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "one of two gets both keys");
        here.release_many(&ours, None).await.unwrap();
        there.release_many(&theirs, None).await.unwrap();
    }
}
