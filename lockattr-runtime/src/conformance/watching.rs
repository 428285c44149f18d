//! Hints: one that is missing costs time only, but a store that has them sends them.

use super::bench::{Bench, PATIENCE, take};
use crate::store::{Store, Wake};

pub(super) async fn a_release_is_hinted<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("hinted");
    let mut watch = bench.another().await.watch().expect("the store says that it has one");
    take(&*bench.store, &lease).await;
    bench.store.release(&lease, None).await.unwrap();
    let hinted = async {
        loop {
            match watch.next().await {
                Some(Wake::Freed(key)) if key == lease.key => break,
                Some(Wake::Missed) => break,
                Some(_) => {}
                None => panic!("the stream ended while its store is there"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, hinted).await.expect("a release is hinted");
}
