//! The contract of a store, and the stores.
//!
//! One record per key: owner, fencing token (the last one given out), expiry, ttl, last owner, window of
//! the last grant, holder. The record outlives the lease; [`Store::collect`] removes it after long disuse.
//!
//! Invariant: a store never names `lock/`. Waiting, retry, renewal, loss and drop live above.

pub(crate) mod clock;
pub(crate) mod entry;
pub(crate) mod erased;
mod error;
#[cfg(feature = "testing")]
mod fault;
mod hints;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "postgres")]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod traits;
mod url;

pub use error::StoreError;
#[cfg(feature = "testing")]
pub use fault::{Fault, FaultStore, Faults, Verb};
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub(crate) use traits::Boxed;
pub use traits::{Audit, Feature, Finding, Level, Store, TtlRange, Wake, Watch};
pub(crate) use url::connect;
