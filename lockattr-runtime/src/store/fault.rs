//! A store that fails as networks and servers do, by a script.
//!
//! Invariant: it forwards every method of the contract, so that it changes nothing but what the script says.

mod script;

use std::sync::Arc;
use std::time::Duration;

pub use self::script::{Fault, Faults, Verb};
use super::StoreError;
use super::traits::{Audit, Feature, Store, TtlRange, Watch, acquire_one_by_one, release_one_by_one};
use crate::lease::{Acquired, AcquiredMany, FencingToken, Forced, Lease, Record, Released, Renewed};

/// Wraps a store, and fails as its [`Faults`] say. Clones share store and script.
///
/// Requests are sent by tasks of their own on the tokio runtime that the caller is in, as a network would
/// go on carrying them: one whose caller went away still lands. On a paused runtime delays take no time.
///
/// ```
/// use std::time::Duration;
/// use lockattr_runtime::lease::{Acquired, Lease, Owner};
/// use lockattr_runtime::store::{Fault, FaultStore, MemoryStore, Store, Verb};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = FaultStore::new(MemoryStore::new());
/// store.faults().once(Verb::Acquire, Fault::LoseAnswer);
///
/// let lease = Lease::new("job", Owner::random(), Duration::from_secs(10));
/// assert!(store.acquire(&lease).await.is_err_and(|error| error.is_unknown()));
/// // It had been granted all the same.
/// assert!(matches!(store.acquire(&lease).await, Ok(Acquired::Granted { .. })));
/// # }
/// ```
#[derive(Debug)]
pub struct FaultStore<S> {
    inner: Arc<S>,
    faults: Faults,
}

impl<S> Clone for FaultStore<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), faults: self.faults.clone() }
    }
}

impl<S: Store> FaultStore<S> {
    /// Wraps `inner`, with a script that does nothing yet.
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self { inner: Arc::new(inner), faults: Faults::default() }
    }

    /// The script, which is shared: what is added to it takes effect at once.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// The store inside, without faults.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Sends one request as the script has it.
    async fn send<T, W>(
        &self,
        verb: Verb,
        request: impl Fn(Arc<S>) -> W + Send + Sync + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, StoreError>> + Send,
    {
        let fault = self.faults.take(verb);
        let inner = Arc::clone(&self.inner);
        let sent = tokio::spawn(async move {
            match fault {
                None => request(inner).await,
                Some(Fault::LateRequest(delay)) => {
                    tokio::time::sleep(delay).await;
                    request(inner).await
                }
                Some(Fault::LateAnswer(delay)) => {
                    let answer = request(inner).await;
                    tokio::time::sleep(delay).await;
                    answer
                }
                Some(Fault::Repeat(delay)) => {
                    let answer = request(Arc::clone(&inner)).await;
                    tokio::spawn(async move {
                        tokio::time::sleep(delay).await;
                        request(inner).await
                    });
                    answer
                }
                Some(Fault::LoseAnswer) => {
                    request(inner).await?;
                    Err(StoreError::unknown("the answer was lost"))
                }
                Some(Fault::LoseRequest) => Err(StoreError::unknown("the request was lost")),
                Some(Fault::Refuse) => Err(StoreError::refused("the script refuses it")),
                Some(Fault::Hang) => std::future::pending().await,
            }
        });
        sent.await.map_err(StoreError::unknown)?
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: Store> Store for FaultStore<S> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn default_prefix(&self) -> &'static str {
        self.inner.default_prefix()
    }

    fn ttl_range(&self) -> TtlRange {
        self.inner.ttl_range()
    }

    fn supports(&self, feature: Feature) -> bool {
        !self.faults.hides(feature) && self.inner.supports(feature)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        let lease = lease.clone();
        self.send(Verb::Acquire, move |inner| {
            let lease = lease.clone();
            async move { inner.acquire(&lease).await }
        })
        .await
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let lease = lease.clone();
        self.send(Verb::Renew, move |inner| {
            let lease = lease.clone();
            async move { inner.renew(&lease).await }
        })
        .await
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        let lease = lease.clone();
        self.send(Verb::Release, move |inner| {
            let lease = lease.clone();
            async move { inner.release(&lease, keep).await }
        })
        .await
    }

    async fn acquire_many(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        if !self.supports(Feature::AtomicMany) {
            return acquire_one_by_one(self, leases).await;
        }
        let leases: Arc<[Lease]> = leases.into();
        self.send(Verb::Acquire, move |inner| {
            let leases = Arc::clone(&leases);
            async move { inner.acquire_many(&leases).await }
        })
        .await
    }

    async fn release_many(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Vec<Released>, StoreError> {
        if !self.supports(Feature::AtomicMany) {
            return release_one_by_one(self, leases, keep).await;
        }
        let leases: Arc<[Lease]> = leases.into();
        self.send(Verb::Release, move |inner| {
            let leases = Arc::clone(&leases);
            async move { inner.release_many(&leases, keep).await }
        })
        .await
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let key: Arc<str> = key.into();
        self.send(Verb::Inspect, move |inner| {
            let key = Arc::clone(&key);
            async move { inner.inspect(&key).await }
        })
        .await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let (prefix, after): (Arc<str>, Option<Arc<str>>) = (prefix.into(), after.map(Arc::from));
        self.send(Verb::List, move |inner| {
            let (prefix, after) = (Arc::clone(&prefix), after.clone());
            async move { inner.list(&prefix, after.as_deref(), limit).await }
        })
        .await
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let key: Arc<str> = key.into();
        self.send(Verb::ForceRelease, move |inner| {
            let key = Arc::clone(&key);
            async move { inner.force_release(&key, token).await }
        })
        .await
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        self.send(Verb::Collect, move |inner| async move { inner.collect(retention, limit).await }).await
    }

    fn watch(&self) -> Option<Watch> {
        if self.faults.hides(Feature::Watch) { None } else { self.inner.watch() }
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        self.send(Verb::Audit, |inner| async move { inner.audit().await }).await
    }
}

#[cfg(test)]
mod tests;
