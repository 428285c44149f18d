//! The contract behind `dyn`, so that a locker has one type whatever its store is.

use std::time::Duration;

use super::StoreError;
use super::traits::{Audit, Boxed, Feature, Store, TtlRange, Watch};
use crate::lease::{Acquired, AcquiredMany, FencingToken, Forced, Lease, Record, Released, Renewed};

pub(crate) trait ErasedStore: Send + Sync {
    fn name(&self) -> &'static str;
    fn default_prefix(&self) -> &'static str;
    fn ttl_range(&self) -> TtlRange;
    fn supports(&self, feature: Feature) -> bool;
    fn acquire<'a>(&'a self, lease: &'a Lease) -> Boxed<'a, Result<Acquired, StoreError>>;
    fn renew<'a>(&'a self, lease: &'a Lease) -> Boxed<'a, Result<Renewed, StoreError>>;
    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        keep: Option<Duration>,
    ) -> Boxed<'a, Result<Released, StoreError>>;
    fn acquire_many<'a>(&'a self, leases: &'a [Lease]) -> Boxed<'a, Result<AcquiredMany, StoreError>>;
    fn release_many<'a>(
        &'a self,
        leases: &'a [Lease],
        keep: Option<Duration>,
    ) -> Boxed<'a, Result<Vec<Released>, StoreError>>;
    fn inspect<'a>(&'a self, key: &'a str) -> Boxed<'a, Result<Option<Record>, StoreError>>;
    fn list<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Record>, StoreError>>;
    fn force_release<'a>(
        &'a self,
        key: &'a str,
        token: FencingToken,
    ) -> Boxed<'a, Result<Forced, StoreError>>;
    fn collect(&self, retention: Duration, limit: usize) -> Boxed<'_, Result<usize, StoreError>>;
    fn watch(&self) -> Option<Watch>;
    fn audit(&self) -> Boxed<'_, Result<Audit, StoreError>>;
}

impl<S: Store> ErasedStore for S {
    fn name(&self) -> &'static str {
        Store::name(self)
    }
    fn default_prefix(&self) -> &'static str {
        Store::default_prefix(self)
    }
    fn ttl_range(&self) -> TtlRange {
        Store::ttl_range(self)
    }
    fn supports(&self, feature: Feature) -> bool {
        Store::supports(self, feature)
    }
    fn acquire<'a>(&'a self, lease: &'a Lease) -> Boxed<'a, Result<Acquired, StoreError>> {
        Box::pin(Store::acquire(self, lease))
    }
    fn renew<'a>(&'a self, lease: &'a Lease) -> Boxed<'a, Result<Renewed, StoreError>> {
        Box::pin(Store::renew(self, lease))
    }
    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        keep: Option<Duration>,
    ) -> Boxed<'a, Result<Released, StoreError>> {
        Box::pin(Store::release(self, lease, keep))
    }
    fn acquire_many<'a>(&'a self, leases: &'a [Lease]) -> Boxed<'a, Result<AcquiredMany, StoreError>> {
        Box::pin(Store::acquire_many(self, leases))
    }
    fn release_many<'a>(
        &'a self,
        leases: &'a [Lease],
        keep: Option<Duration>,
    ) -> Boxed<'a, Result<Vec<Released>, StoreError>> {
        Box::pin(Store::release_many(self, leases, keep))
    }
    fn inspect<'a>(&'a self, key: &'a str) -> Boxed<'a, Result<Option<Record>, StoreError>> {
        Box::pin(Store::inspect(self, key))
    }
    fn list<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Boxed<'a, Result<Vec<Record>, StoreError>> {
        Box::pin(Store::list(self, prefix, after, limit))
    }
    fn force_release<'a>(
        &'a self,
        key: &'a str,
        token: FencingToken,
    ) -> Boxed<'a, Result<Forced, StoreError>> {
        Box::pin(Store::force_release(self, key, token))
    }
    fn collect(&self, retention: Duration, limit: usize) -> Boxed<'_, Result<usize, StoreError>> {
        Box::pin(Store::collect(self, retention, limit))
    }
    fn watch(&self) -> Option<Watch> {
        Store::watch(self)
    }
    fn audit(&self) -> Boxed<'_, Result<Audit, StoreError>> {
        Box::pin(Store::audit(self))
    }
}
