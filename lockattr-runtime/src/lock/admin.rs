//! Looking at a store, and ending other holders' leases.

use std::sync::Arc;

use super::Locker;
use crate::error::{LockError, Locked, Step};
use crate::lease::{FencingToken, Forced, Record};

impl Locker {
    /// What the store has of `key`; `None` when it has no record of it.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] before the store is asked, [`LockError::Store`] when it fails.
    pub async fn inspect(&self, key: &str) -> Result<Option<Record>, LockError> {
        check(key)?;
        let record = self.shared.store.inspect(&self.store_key(key)).await;
        let record = record.map_err(|error| self.store_error(key, Step::Inspect, error))?;
        Ok(record.map(|record| self.without_prefix(record)))
    }

    /// Records that are held or kept and whose key begins with `prefix`, in byte order, after the key `after`,
    /// at most `limit`.
    ///
    /// Keys come as the store has them, without the locker's prefix; one of more than 255 bytes comes in its
    /// shortened form.
    ///
    /// # Errors
    ///
    /// [`LockError::Store`] when the store fails.
    pub async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Record>, LockError> {
        let full = format!("{}{prefix}", self.prefix);
        let after = after.map(|after| format!("{}{after}", self.prefix));
        let records = self.shared.store.list(&full, after.as_deref(), limit).await;
        let records = records.map_err(|error| self.store_error(prefix, Step::List, error))?;
        Ok(records.into_iter().map(|record| self.without_prefix(record)).collect())
    }

    /// Ends the lease of `key` that has `token`, whoever holds it. Its holder loses it at its next renewal, and
    /// until then may go on: make sure that it is gone.
    ///
    /// The token, from [`inspect`](Self::inspect) or [`list`](Self::list), makes sure that the lease that ends
    /// is the one that was looked at.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] before the store is asked, [`LockError::Store`] when it fails.
    pub async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, LockError> {
        check(key)?;
        let forced = self.shared.store.force_release(&self.store_key(key), token).await;
        let forced = forced.map_err(|error| self.store_error(key, Step::ForceRelease, error))?;
        tracing::warn!(store = self.shared.store.name(), %token, ?forced, "a lock was force-released");
        Ok(forced)
    }

    fn without_prefix(&self, mut record: Record) -> Record {
        if let Some(key) = record.key.strip_prefix(&*self.prefix) {
            record.key = Arc::from(key);
        }
        record
    }
}

fn check(key: &str) -> Result<(), LockError> {
    crate::key::check(key).map_err(|reason| LockError::InvalidKey { locked: Locked::plain(key), reason })
}
