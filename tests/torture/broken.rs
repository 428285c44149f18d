//! Stores that break their contract, each in one way that the checker has to find.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockattr::lease::{Acquired, FencingToken, Forced, Lease, Record, RecordState, Released, Renewed};
use lockattr::store::{Audit, Feature, Store, StoreError, TtlRange, Watch};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Some requests for a key that is taken are granted, with the holder's token.
    GrantsTwice,
    /// Some tokens are smaller than the one before.
    TokensGoBack,
    /// Some releases are confirmed and not done.
    ForgetsReleases,
    /// Renewals are confirmed and not done.
    ForgetsRenewals,
    /// Leases end at half the time that was answered.
    EndsEarly,
    /// A dead holder's lease keeps others out for three seconds more than it should.
    EndsLate,
    /// Some holders are told that they have lost what they have.
    SaysLost,
    /// Some requests are refused.
    Refuses,
    /// Some requests panic.
    Panics,
}

impl Fault {
    pub(crate) const ALL: [(Self, &str); 9] = [
        (Self::GrantsTwice, "grants-twice"),
        (Self::TokensGoBack, "tokens-go-back"),
        (Self::ForgetsReleases, "forgets-releases"),
        (Self::ForgetsRenewals, "forgets-renewals"),
        (Self::EndsEarly, "ends-early"),
        (Self::EndsLate, "ends-late"),
        (Self::SaysLost, "says-lost"),
        (Self::Refuses, "refuses"),
        (Self::Panics, "panics"),
    ];

    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.iter().find(|(_, known)| *known == name).map_or(Self::GrantsTwice, |(fault, _)| *fault)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Broken<S> {
    inner: Arc<S>,
    fault: Fault,
    requests: Arc<AtomicU64>,
}

impl<S: Store> Broken<S> {
    pub(crate) fn new(inner: S, fault: Fault) -> Self {
        Self { inner: Arc::new(inner), fault, requests: Arc::default() }
    }

    /// Whether this request is one that goes wrong: one of `often`.
    fn now(&self, fault: Fault, often: u64) -> bool {
        self.fault == fault && self.requests.fetch_add(1, Ordering::Relaxed) % often == often - 1
    }

    fn halved(&self, lease: &Lease) -> Lease {
        let mut lease = lease.clone();
        match self.fault {
            Fault::EndsEarly => lease.ttl /= 2,
            Fault::EndsLate => lease.lock_delay += Duration::from_secs(3),
            _ => {}
        }
        lease
    }

    fn doubled(&self, remaining: Duration) -> Duration {
        if self.fault == Fault::EndsEarly { remaining * 2 } else { remaining }
    }
}

impl<S: Store> Store for Broken<S> {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn default_prefix(&self) -> &'static str {
        self.inner.default_prefix()
    }

    fn ttl_range(&self) -> TtlRange {
        self.inner.ttl_range()
    }

    // Several keys go one by one, as the trait has it, so that each may go wrong.
    fn supports(&self, feature: Feature) -> bool {
        feature != Feature::AtomicMany && self.inner.supports(feature)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        if self.fault == Fault::Refuses && self.requests.fetch_add(1, Ordering::Relaxed) % 40 > 30 {
            return Err(StoreError::refused("the store is broken"));
        }
        assert!(!self.now(Fault::Panics, 50), "the store is broken");
        Ok(match self.inner.acquire(&self.halved(lease)).await? {
            Acquired::Taken { .. } if self.now(Fault::GrantsTwice, 5) => {
                let token =
                    self.inner.inspect(&lease.key).await?.map_or(FencingToken::new(1), |record| record.token);
                Acquired::Granted { token, remaining: lease.ttl }
            }
            Acquired::Granted { token, remaining } if self.now(Fault::TokensGoBack, 4) => {
                Acquired::Granted { token: FencingToken::new(token.get() - 60_000_000), remaining }
            }
            Acquired::Granted { token, remaining } => {
                Acquired::Granted { token, remaining: self.doubled(remaining) }
            }
            answer => answer,
        })
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        if self.fault == Fault::ForgetsRenewals {
            return Ok(Renewed::Renewed { remaining: lease.ttl });
        }
        Ok(match self.inner.renew(&self.halved(lease)).await? {
            Renewed::Renewed { .. } if self.now(Fault::SaysLost, 3) => Renewed::Lost,
            Renewed::Renewed { remaining } => Renewed::Renewed { remaining: self.doubled(remaining) },
            answer => answer,
        })
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        if self.now(Fault::ForgetsReleases, 20) {
            // As if something still renewed it.
            let mut longer = lease.clone();
            longer.ttl *= 3;
            self.inner.renew(&longer).await?;
            return Ok(Released::Released);
        }
        self.inner.release(lease, keep).await
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.inner.inspect(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let records = self.inner.list(prefix, after, limit).await?;
        Ok(records.into_iter().filter(|record| record.state != RecordState::Free).collect())
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        self.inner.force_release(key, token).await
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        self.inner.collect(retention, limit).await
    }

    fn watch(&self) -> Option<Watch> {
        self.inner.watch()
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        self.inner.audit().await
    }
}
