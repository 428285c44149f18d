//! Many who want one key at once, some of whom die.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;

use super::bench::{Bench, PAUSE};
use super::child;
use crate::lease::{Acquired, Lease};
use crate::store::Store;

const TASKS: usize = 8;
const GRANTS: usize = 15;

pub(super) async fn eight_tasks_never_overlap<S: Store>(bench: &Bench<S>) {
    let (inside, tokens) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (store, lease) = (bench.another().await, bench.lease("contended"));
        let (inside, tokens) = (Arc::clone(&inside), Arc::clone(&tokens));
        tasks.spawn(async move {
            let mut grants = 0;
            while grants < GRANTS {
                let lease = Lease { owner: crate::lease::Owner::random(), ..lease.clone() };
                if let Ok(Acquired::Granted { token, .. }) = store.acquire(&lease).await {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two tasks hold it");
                    tokens.lock().unwrap().push(token);
                    tokio::time::sleep(PAUSE / 20).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    store.release(&lease, None).await.unwrap();
                    grants += 1;
                }
                tokio::time::sleep(PAUSE / 10).await;
            }
        });
    }
    tasks.join_all().await;
    let tokens = tokens.lock().unwrap();
    assert_eq!(tokens.len(), TASKS * GRANTS);
    assert!(tokens.is_sorted_by(|a, b| a < b), "tokens do not grow: {tokens:?}");
}

pub(super) async fn four_processes_never_overlap_and_survive_kills<S: Store>(bench: &Bench<S>) {
    if child::prefix().is_some() {
        child::contend(bench).await;
    } else {
        child::watch_over(bench).await;
    }
}
