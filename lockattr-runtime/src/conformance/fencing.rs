//! Tokens grow with every grant, whatever came between.

use std::time::Duration;

use super::bench::{Bench, eventually, rival, take, take_over};
use crate::lease::{FencingToken, Lease, Renewed};
use crate::store::Store;

pub(super) async fn tokens_grow_over_release_expiry_and_force<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let first = bench.lease("growing");
    let mut tokens = vec![take(store, &first).await];
    store.release(&first, None).await.unwrap();
    let second = bench.brief("growing");
    tokens.push(take(store, &second).await);
    let third = bench.lease("growing");
    tokens.push(take_over(store, &third).await);
    store.force_release(&third.key, tokens[2]).await.unwrap();
    tokens.push(take(store, &rival(&third)).await);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

pub(super) async fn tokens_grow_after_the_record_was_collected<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("forgotten");
    let token = take(store, &lease).await;
    store.release(&lease, None).await.unwrap();
    eventually("the record to be collected", async || {
        store.collect(Duration::ZERO, 1000).await.unwrap();
        store.inspect(&lease.key).await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(take(store, &rival(&lease)).await > token);
}

pub(super) async fn a_token_is_an_exact_double<S: Store>(bench: &Bench<S>) {
    let token = take(&*bench.store, &bench.lease("double")).await.get();
    assert!(token > 0 && token < 1 << 53, "{token}");
}

pub(super) async fn a_block_of_tokens_is_the_holders_alone<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = Lease { tokens: 1000, ..bench.lease("block") };
    let first = take(store, &lease).await;
    assert_eq!(take(store, &lease).await, first, "a repeat gives the first of the same block");
    let last = store.inspect(&lease.key).await.unwrap().map(|record| record.token);
    assert_eq!(last, Some(FencingToken::new(first.get() + 999)), "the record keeps the last");
    store.release(&lease, None).await.unwrap();
    assert!(take(store, &rival(&lease)).await.get() > first.get() + 999);
}

pub(super) async fn a_grant_honours_the_token_floor<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("floor");
    let usual = take(store, &lease).await.get();
    store.release(&lease, None).await.unwrap();
    let floor = usual + 1_000_000_000_000;
    let lifted = Lease { token_floor: Some(floor), ..rival(&lease) };
    let token = take(store, &lifted).await.get();
    assert!(token >= floor, "{token} is below {floor}");
    store.release(&lifted, None).await.unwrap();
    assert!(take(store, &rival(&lease)).await.get() > token);
}

pub(super) async fn a_renewal_honours_the_token_floor<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("floor");
    let token = take(store, &lease).await.get();
    let lifted = Lease { token_floor: Some(token + 1000), ..lease.clone() };
    assert!(matches!(store.renew(&lifted).await.unwrap(), Renewed::Renewed { .. }));
    assert!(
        store.inspect(&lease.key).await.unwrap().is_some_and(|record| record.token.get() >= token + 1000)
    );
    // A floor that is passed already changes nothing.
    let low = Lease { token_floor: Some(1), ..lease.clone() };
    assert!(matches!(store.renew(&low).await.unwrap(), Renewed::Renewed { .. }));
    store.release(&lease, None).await.unwrap();
    assert!(take(store, &rival(&lease)).await.get() > token + 1000);
}
