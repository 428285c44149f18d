//! The memory store: the reference of the contract, for one process.
//!
//! A record is an entry of a map behind one lock; its clock is this machine's boot-time clock, its wall
//! clock the system's. Clones share their records, so two lockers over clones are two contenders.

use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::StoreError;
use super::clock::Clock;
use super::entry::{self, Entries};
use super::hints::Hints;
use super::traits::{Audit, Feature, Finding, Level, Store, Watch};
use crate::lease::{
    Acquired, AcquiredMany, FencingToken, Forced, Lease, Record, RecordState, Released, Renewed,
};
#[cfg(feature = "testing")]
use crate::time::Moment;

/// Keeps leases in this process: for tests, for single-process programs, and as the reference of what a
/// store does.
///
/// ```
/// use lockattr_runtime::{Locker, store::MemoryStore};
///
/// let locker = Locker::new(MemoryStore::new());
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    entries: Arc<Mutex<Entries>>,
    hints: Hints,
    clock: Clock,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that reads its time from `clock`: the steady time, and the wall clock since 1970.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn with_clock(clock: impl Fn() -> (Moment, Duration) + Send + Sync + 'static) -> Self {
        Self { clock: Clock::Given(Arc::new(clock)), ..Self::default() }
    }

    /// Forgets every record, as a server without persistence does at a restart.
    #[cfg(feature = "testing")]
    pub fn forget_all(&self) {
        self.entries().clear();
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Every step leaves the map whole, so a panic elsewhere does no harm to it.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn supports(&self, feature: Feature) -> bool {
        !matches!(feature, Feature::Shared | Feature::Permits)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        let mut entries = self.entries();
        entry::acquire(&mut entries, lease, self.clock.read())
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let mut entries = self.entries();
        Ok(entry::renew(&mut entries, lease, self.clock.read()))
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        let answer = {
            let mut entries = self.entries();
            entry::release(&mut entries, lease, keep, self.clock.read())
        };
        if answer == Released::Released {
            self.hints.send(&lease.key);
        }
        Ok(answer)
    }

    async fn acquire_many(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        let mut entries = self.entries();
        entry::acquire_many(&mut entries, leases, self.clock.read())
    }

    async fn release_many(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Vec<Released>, StoreError> {
        let answers = {
            let mut entries = self.entries();
            entry::release_many(&mut entries, leases, keep, self.clock.read())
        };
        for (lease, answer) in leases.iter().zip(&answers) {
            if *answer == Released::Released {
                self.hints.send(&lease.key);
            }
        }
        Ok(answers)
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let entries = self.entries();
        let now = self.clock.read().now;
        Ok(entries.get_key_value(key).map(|(key, entry)| {
            Record::new(Arc::clone(key), FencingToken::new(entry.token), entry.state(now))
        }))
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let entries = self.entries();
        let now = self.clock.read().now;
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        Ok(entries
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, entry)| {
                Record::new(Arc::clone(key), FencingToken::new(entry.token), entry.state(now))
            })
            .filter(|record| record.state != RecordState::Free)
            .take(limit)
            .collect())
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let answer = {
            let mut entries = self.entries();
            entry::force_release(&mut entries, key, token, self.clock.read())
        };
        if answer == Forced::Released {
            self.hints.send(&Arc::from(key));
        }
        Ok(answer)
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        let mut entries = self.entries();
        let at = self.clock.read();
        let idle: Vec<_> = entries
            .iter()
            .filter(|(_, entry)| entry.is_idle(retention, at))
            .map(|(key, _)| Arc::clone(key))
            .take(limit)
            .collect();
        for key in &idle {
            entries.remove(key);
        }
        Ok(idle.len())
    }

    fn watch(&self) -> Option<Watch> {
        Some(self.hints.watch())
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        Ok(Audit::new(
            Level::P2,
            vec![Finding::new(
                Level::P2,
                "locks are kept in this process alone: other processes do not see them",
            )],
        ))
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::lease::Owner;

    #[tokio::test]
    async fn a_wall_clock_that_jumps_ahead_collects_no_lease() {
        const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
        let wall = Arc::new(Mutex::new(MONTH));
        let read = Arc::clone(&wall);
        let store = MemoryStore::with_clock(move || (Moment::from_nanos(1), *read.lock().unwrap()));
        let lease = Lease::new("k", Owner::random(), Duration::from_secs(60));
        store.acquire(&lease).await.unwrap();
        *wall.lock().unwrap() += MONTH;
        assert_eq!(store.collect(Duration::ZERO, 10).await.unwrap(), 0);
        assert!(matches!(store.renew(&lease).await.unwrap(), Renewed::Renewed { .. }));
    }
}
