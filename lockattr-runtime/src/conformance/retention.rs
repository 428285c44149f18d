//! `collect`: records of keys that nobody uses any more do not stay for ever, and no others go.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::bench::{Bench, is_held, rival, state, take};
use crate::lease::{Lease, RecordState};
use crate::store::Store;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const KEYS: usize = 10_000;
const TASKS: usize = 8;

pub(super) async fn collect_spares_what_is_in_use<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let (held, fresh) = (bench.lease("held"), bench.lease("fresh"));
    let token = take(store, &held).await;
    let last = take(store, &fresh).await;
    store.release(&fresh, None).await.unwrap();
    store.collect(DAY, 100_000).await.unwrap();
    let record = store.inspect(&fresh.key).await.unwrap();
    assert_eq!(record.map(|record| record.token), Some(last), "it was used a moment ago");
    store.collect(Duration::ZERO, 100_000).await.unwrap();
    assert_eq!(take(store, &held).await, token, "it is held");
    assert!(is_held(store, &held.key).await);
}

pub(super) async fn collect_spares_what_is_kept<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let lease = bench.lease("kept");
    take(store, &lease).await;
    store.release(&lease, Some(lease.ttl)).await.unwrap();
    store.collect(Duration::ZERO, 100_000).await.unwrap();
    assert!(matches!(state(store, &lease.key).await, Some(RecordState::Kept { .. })));
}

pub(super) async fn collect_removes_ten_thousand_keys_in_bounded_steps<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    // Of earlier runs.
    while store.collect(Duration::ZERO, 5_000).await.unwrap() > 0 {}
    let held = bench.lease("held");
    let token = take(store, &held).await;

    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = Arc::clone(&bench.store);
        let leases: Vec<_> =
            (task..KEYS).step_by(TASKS).map(|n| bench.lease(&format!("order:{n}"))).collect();
        tasks.spawn(async move {
            for lease in leases {
                take(&*store, &lease).await;
                store.release(&lease, None).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(store.collect(DAY, 100_000).await.unwrap(), 0, "all were used a moment ago");

    let mut removed = 0;
    loop {
        let step = store.collect(Duration::ZERO, 3_000).await.unwrap();
        assert!(step <= 3_000, "{step} were removed at once");
        if step == 0 {
            break;
        }
        removed += step;
    }
    // A run that was killed may have left leases that end meanwhile.
    assert!(removed >= KEYS, "only {removed} were removed");
    for n in (0..KEYS).step_by(97) {
        assert_eq!(store.inspect(&bench.key(&format!("order:{n}"))).await.unwrap(), None);
    }
    assert_eq!(take(store, &held).await, token);
    take(store, &Lease { key: bench.key("order:7"), ..rival(&held) }).await;
}
