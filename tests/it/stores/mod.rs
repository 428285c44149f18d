//! Every store through the conformance suite, and what is particular to one of them.

mod model;
mod philosophers;
#[cfg(all(unix, feature = "postgres"))]
mod postgres_access;
#[cfg(all(unix, feature = "postgres"))]
mod postgres_faults;
#[cfg(all(unix, feature = "postgres"))]
mod postgres_server;
#[cfg(all(unix, feature = "redis"))]
mod redis_access;
#[cfg(all(unix, feature = "redis"))]
mod redis_data;
#[cfg(all(unix, feature = "redis"))]
mod redis_faults;
#[cfg(all(unix, feature = "redis"))]
mod redis_server;
#[cfg(feature = "sqlite")]
mod sqlite_boots;
#[cfg(all(unix, feature = "sqlite"))]
mod sqlite_files;

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use lockattr::store::MemoryStore;

static MEMORY: LazyLock<Mutex<HashMap<String, MemoryStore>>> = LazyLock::new(Mutex::default);

lockattr::conformance! {
    name: memory,
    open: |storage| async move { MEMORY.lock().unwrap().entry(storage).or_default().clone() },
    supports: {
        shared: "exclusive leases only, so far",
        permits: "exclusive leases only, so far",
        atomic_many: yes,
        keep: yes,
        once_per: yes,
        token_blocks: yes,
        token_floor: yes,
        watch: yes,
        any_executor: yes,
        processes: "its records are in the memory of one process",
    }
}

#[cfg(feature = "sqlite")]
lockattr::conformance! {
    name: sqlite,
    open: |storage| async move {
        let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
        std::fs::create_dir_all(&directory).unwrap();
        lockattr::store::SqliteStore::open(directory.join(format!("{storage}.db"))).await.unwrap()
    },
    supports: {
        shared: "exclusive leases only, so far",
        permits: "exclusive leases only, so far",
        atomic_many: yes,
        keep: yes,
        once_per: yes,
        token_blocks: yes,
        token_floor: yes,
        watch: "SQLite does not tell other processes; it is asked again",
        any_executor: yes,
        processes: yes,
    }
}

#[cfg(all(unix, feature = "redis"))]
lockattr::conformance! {
    name: redis,
    open: redis_server::storage,
    supports: {
        shared: "exclusive leases only, so far",
        permits: "exclusive leases only, so far",
        atomic_many: yes,
        keep: yes,
        once_per: yes,
        token_blocks: yes,
        token_floor: yes,
        watch: yes,
        any_executor: yes,
        processes: yes,
    }
}

#[cfg(all(unix, feature = "postgres"))]
lockattr::conformance! {
    name: postgres,
    open: postgres_server::storage,
    supports: {
        shared: "exclusive leases only, so far",
        permits: "exclusive leases only, so far",
        atomic_many: yes,
        keep: yes,
        once_per: yes,
        token_blocks: yes,
        token_floor: yes,
        watch: "it is asked again",
        any_executor: yes,
        processes: yes,
    }
}
