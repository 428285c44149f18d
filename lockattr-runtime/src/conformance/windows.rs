//! `once_per`: one grant a window of the store's wall clock, however it ended.

use std::time::{Duration, SystemTime};

use super::bench::{Bench, refuse, rival, take, take_over, until_free};
use crate::lease::Lease;
use crate::store::Store;

/// A window that began a while ago and does not end while a case runs.
fn wide() -> Duration {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let hours = (1..=24).find(|hours| (600..hours * 3600 - 600).contains(&(wall % (hours * 3600))));
    Duration::from_secs(3600 * hours.expect("not all windows of up to a day end in these minutes"))
}

pub(super) async fn a_window_has_one_grant_even_after_release<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = Lease { once_per: Some(wide()), ..bench.lease("nightly") };
    take(store, &lease).await;
    store.release(&lease, None).await.unwrap();
    for _ in 0..3 {
        let remaining = refuse(store, &rival(&lease)).await;
        assert!(remaining <= wide() && remaining > Duration::from_secs(60), "{remaining:?}");
    }
    let other = Lease { key: bench.key("other"), ..rival(&lease) };
    take(store, &other).await;
}

pub(super) async fn a_crash_uses_up_its_window<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = Lease { once_per: Some(wide()), ..bench.brief("nightly") };
    take(store, &lease).await;
    until_free(store, &lease.key).await;
    refuse(store, &rival(&lease)).await;
}

pub(super) async fn the_next_window_has_another_grant<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = Lease { once_per: Some(Duration::from_secs(2)), ..bench.lease("often") };
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let attempt = rival(&lease);
        tokens.push(take_over(store, &attempt).await);
        store.release(&attempt, None).await.unwrap();
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

pub(super) async fn a_request_without_a_window_does_not_care<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = Lease { once_per: Some(wide()), ..bench.lease("nightly") };
    take(store, &lease).await;
    store.release(&lease, None).await.unwrap();
    let by_hand = Lease { once_per: None, ..rival(&lease) };
    take(store, &by_hand).await;
    store.release(&by_hand, None).await.unwrap();
    refuse(store, &rival(&lease)).await;
}

pub(super) async fn collect_does_not_forget_a_window<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = Lease { once_per: Some(wide()), ..bench.lease("nightly") };
    take(store, &lease).await;
    store.release(&lease, None).await.unwrap();
    store.collect(Duration::ZERO, 1000).await.unwrap();
    refuse(store, &rival(&lease)).await;
}
