//! From the text that names a store to the lockers of a client. Anything that is not made here is a URL.

use std::time::Duration;

use lockattr::store::{MemoryStore, SqliteStore};
use lockattr::{LockError, Locker};

use crate::broken::{Broken, Fault};

/// So many lockers on one store, each a contender of its own.
pub(crate) async fn lockers(
    store: &str,
    count: usize,
    lock_delay: Duration,
) -> Result<Vec<Locker>, LockError> {
    let lockers = plain(store, count).await?;
    Ok(lockers.into_iter().map(|locker| locker.lock_delay(lock_delay)).collect())
}

async fn plain(store: &str, count: usize) -> Result<Vec<Locker>, LockError> {
    if let Some(rest) = store.strip_prefix("broken:") {
        let (fault, url) = rest.split_once(':').unwrap_or((rest, ""));
        let fault = Fault::named(fault);
        if let Some(path) = url.strip_prefix("sqlite:") {
            let store = Broken::new(SqliteStore::open(path).await?, fault);
            return Ok((0..count).map(|_| Locker::new(store.clone())).collect());
        }
        let store = Broken::new(MemoryStore::new(), fault);
        return Ok((0..count).map(|_| Locker::new(store.clone())).collect());
    }
    if store == "memory:" {
        let store = MemoryStore::new();
        return Ok((0..count).map(|_| Locker::new(store.clone())).collect());
    }
    let mut lockers = Vec::new();
    for _ in 0..count {
        lockers.push(Locker::connect(store).await?);
    }
    Ok(lockers)
}
