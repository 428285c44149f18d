//! The uncontended cycle, lock and unlock, compared in one run: rounds of each way in turn, medians,
//! ratios. Times differ from machine to machine; the ratios are the result.
//!
//! `cargo bench --bench cycle`

#![allow(clippy::print_stdout, reason = "a report is what this is for")]
#![allow(clippy::large_types_passed_by_value, reason = "futures that carry much are measured")]

use std::time::Duration;

use lockattr::lease::{Lease, Owner};
use lockattr::store::{MemoryStore, SqliteStore, Store};
use lockattr::{LockError, Locker, distributed_lock};

mod support;

use support::Table;

const ROUNDS: usize = 21;

#[distributed_lock(key = "cycle:{id}", locker = locker)]
async fn locked(locker: &Locker, id: u32) -> Result<u32, LockError> {
    Ok(id)
}

async fn by_api(locker: &Locker, id: u32) -> Result<u32, LockError> {
    let guard = locker.lock(format!("cycle:{id}")).acquire().await?;
    guard.release().await?;
    Ok(id)
}

async fn by_run(locker: &Locker, id: u32) -> Result<u32, LockError> {
    locker.lock(format!("cycle:{id}")).run(async |_| id).await
}

/// The two requests alone, without anything that keeps the lease alive.
async fn by_store(store: &impl Store, id: u32) {
    let lease = Lease::new(format!("cycle:{id}"), Owner::random(), Duration::from_secs(60));
    store.acquire(&lease).await.expect("the store answers");
    store.release(&lease, None).await.expect("the store answers");
}

async fn cycles(title: &str, store: impl Store + Clone, cycles: u32) {
    let locker = Locker::new(store.clone());
    let mut table = Table::new(&["the store's two requests", "acquire and release", "run", "the attribute"]);
    for _ in 0..ROUNDS {
        table.round(0, cycles, async |id| by_store(&store, id).await).await;
        table
            .round(1, cycles, async |id| {
                by_api(&locker, id).await.expect("it is free");
            })
            .await;
        table
            .round(2, cycles, async |id| {
                by_run(&locker, id).await.expect("it is free");
            })
            .await;
        table
            .round(3, cycles, async |id| {
                locked(&locker, id).await.expect("it is free");
            })
            .await;
    }
    table.print(title);
}

async fn plain_large(bytes: [u8; 4096], id: u8) -> Result<u8, LockError> {
    let large = [1_u8; 8192];
    tokio::task::yield_now().await;
    Ok(bytes[0] + large[7] + id)
}

#[distributed_lock(key = "size:{id}")]
async fn locked_large(bytes: [u8; 4096], id: u8) -> Result<u8, LockError> {
    let large = [1_u8; 8192];
    tokio::task::yield_now().await;
    Ok(bytes[0] + large[7] + id)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let plain = size_of_val(&plain_large([0; 4096], 1));
    let with_lock = size_of_val(&locked_large([0; 4096], 1));
    #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
    let ratio = with_lock as f64 / plain as f64;
    println!(
        "future with a 4 KiB argument and an 8 KiB local: plain {plain} bytes, locked {with_lock}, {ratio:.2} x"
    );
    cycles("memory, one cycle", MemoryStore::new(), 20_000).await;
    let folder = tempfile::tempdir().expect("a folder for the lock file");
    let store = SqliteStore::open(folder.path().join("locks.db")).await.expect("the file can be made");
    cycles("SQLite, one cycle", store, 400).await;
}
