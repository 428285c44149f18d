//! STUB: the real core replaces this file; the signatures stay.
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::{LockError, Locked};
use crate::held::Held;
use crate::lease::{AcquiredMany, FencingToken, Lease, Owner};
use crate::options::{LockOptions, Wait};
use crate::store::erased::ErasedStore;
use crate::store::{Store, StoreError};

/// Takes locks in a store. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Locker {
    store: Arc<dyn ErasedStore>,
}
impl std::fmt::Debug for Locker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Locker")
    }
}
impl Locker {
    /// A locker on a store.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self { store: Arc::new(store) }
    }

    /// Takes all of `keys` (any order, duplicates allowed; at least one) or none.
    pub(crate) async fn enter(&self, keys: Vec<Locked>, options: LockOptions) -> Result<Guard, LockError> {
        let owner = Owner::random();
        let mut names: Vec<_> = keys;
        for name in &names {
            if let Err(reason) = crate::key::check(name.key()) {
                return Err(LockError::InvalidKey { locked: name.clone(), reason });
            }
        }
        names.sort_by(|a, b| a.key().cmp(b.key()));
        names.dedup_by(|a, b| a.key() == b.key());
        let leases: Vec<_> = names.iter().map(|n| Lease::new(crate::key::canonical(n.key()), owner, options.expires)).collect();
        let start = std::time::Instant::now();
        loop {
            match self.store.acquire_many(&leases).await.map_err(|e: StoreError| LockError::Store {
                locked: names[0].clone(), step: crate::Step::Acquire, store: "memory", source: Arc::new(e) })? {
                AcquiredMany::Granted { tokens, .. } => {
                    return Ok(Guard { store: Arc::clone(&self.store), leases, token: tokens[0], done: false });
                }
                AcquiredMany::Taken { index, holder, .. } => {
                    if let Wait::AtMost(limit) = options.wait && start.elapsed() >= limit {
                        return Err(LockError::Busy { locked: names[index].clone(), waited: limit, holder });
                    }
                    std::thread::sleep(std::time::Duration::from_millis(0));
                    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                }
                AcquiredMany::Spent { .. } => unreachable!(),
            }
        }
    }
}
/// Holds locks; releases them when dropped.
pub struct Guard {
    store: Arc<dyn ErasedStore>,
    leases: Vec<Lease>,
    token: FencingToken,
    done: bool,
}
impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard")
    }
}
impl Guard {
    /// Polls the body under the lock: checks the deadline first, and with `on_lost = cancel` gives
    /// `Err(LockError::Lost)` once the lock is lost; the caller then drops the body before it releases.
    pub(crate) fn poll_body<F: Future>(&mut self, body: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<Result<F::Output, LockError>> {
        body.poll(cx).map(Ok)
    }
    /// A handle for the body.
    #[must_use]
    pub fn held(&self) -> Held {
        Held::new(self.token)
    }
    /// Gives the locks back and waits for the store's answer.
    pub async fn release(mut self) -> Result<(), LockError> {
        self.done = true;
        let _ = self.store.release_many(&self.leases, None).await;
        Ok(())
    }
}
impl Drop for Guard {
    fn drop(&mut self) {
        if !self.done {
            let (store, leases) = (Arc::clone(&self.store), std::mem::take(&mut self.leases));
            std::thread::spawn(move || {
                tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(store.release_many(&leases, None)).ok();
            });
        }
    }
}
