//! The memory store: the reference of the contract, for one process.
//!
//! A record is an entry of a map behind one lock; its clock is this machine's boot-time clock, its wall
//! clock the system's. Clones share their records, so two lockers over clones are two contenders.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::StoreError;
use super::hints::Hints;
use super::traits::{Audit, Feature, Finding, Level, Store, Watch};
use crate::lease::{
    Acquired, AcquiredMany, FencingToken, Forced, Holder, Lease, Mode, Owner, Record, RecordState, Released, Renewed,
};
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
    records: Arc<Mutex<BTreeMap<Arc<str>, Entry>>>,
    hints: Hints,
    clock: Clock,
}

/// Free when it has no expiry; kept when it has an expiry and no owner.
#[derive(Debug)]
struct Entry {
    owner: Option<Owner>,
    last_owner: Option<Owner>,
    token: u64,
    expires: Option<Moment>,
    ttl: Duration,
    granted: Moment,
    granted_wall: Duration,
    used: Moment,
    holder: Arc<Holder>,
}

/// What a store reads the time from: a steady clock for expiry, and a wall clock for tokens and windows.
#[derive(Clone, Default)]
enum Clock {
    #[default]
    Machine,
    #[cfg(feature = "testing")]
    Given(Arc<dyn Fn() -> (Moment, Duration) + Send + Sync>),
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Clock {
    fn read(&self) -> (Moment, Duration) {
        match self {
            Self::Machine => (
                Moment::now(),
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
            ),
            #[cfg(feature = "testing")]
            Self::Given(read) => read(),
        }
    }
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
        self.records().clear();
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Entry>> {
        // Every step leaves the map whole, so a panic elsewhere does no harm to it.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Time left until the record may be given to another, the clock's backward steps cut to one ttl.
    fn remaining(&mut self, now: Moment) -> Duration {
        let Some(expires) = self.expires else { return Duration::ZERO };
        if now.until(expires) > self.ttl {
            self.expires = Some(now + self.ttl);
            return self.ttl;
        }
        now.until(expires)
    }

    fn state(&mut self, now: Moment) -> RecordState {
        let remaining = self.remaining(now);
        if remaining.is_zero() {
            RecordState::Free
        } else if self.owner.is_some() {
            RecordState::Held { remaining, age: now.since(self.granted), holder: Arc::clone(&self.holder) }
        } else {
            RecordState::Kept { remaining }
        }
    }

    fn is_live_for(&mut self, owner: Owner, now: Moment) -> bool {
        self.owner == Some(owner) && !self.remaining(now).is_zero()
    }

    fn free(&mut self, now: Moment) {
        if let Some(owner) = self.owner.take() {
            self.last_owner = Some(owner);
        }
        self.expires = None;
        self.used = now;
    }
}

/// The end of the window that `wall` lies in, or `None` when `granted` lies in another one.
fn window_left(once_per: Duration, granted: Duration, wall: Duration) -> Option<Duration> {
    let window = once_per.as_micros().max(1);
    if granted.as_micros() / window != wall.as_micros() / window {
        return None;
    }
    let left = window - wall.as_micros() % window;
    Some(Duration::from_micros(u64::try_from(left).unwrap_or(u64::MAX)))
}

impl Store for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn supports(&self, feature: Feature) -> bool {
        !matches!(feature, Feature::Shared | Feature::Permits)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        let (now, wall) = self.clock.read();
        acquire(&mut self.records(), lease, now, wall)
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let (now, _) = self.clock.read();
        let mut records = self.records();
        let Some(entry) = records.get_mut(&lease.key) else { return Ok(Renewed::Lost) };
        if !entry.is_live_for(lease.owner, now) {
            return Ok(Renewed::Lost);
        }
        let moved = now + lease.ttl;
        if entry.expires.is_some_and(|expires| moved > expires) {
            entry.expires = Some(moved);
            entry.ttl = lease.ttl;
        }
        entry.token = entry.token.max(lease.token_floor.unwrap_or_default());
        entry.used = now;
        Ok(Renewed::Renewed { remaining: entry.remaining(now) })
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        let (now, _) = self.clock.read();
        let answer = release(&mut self.records(), lease, keep, now);
        if answer == Released::Released {
            self.hints.send(&lease.key);
        }
        Ok(answer)
    }

    async fn acquire_many(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        let (now, wall) = self.clock.read();
        let mut records = self.records();
        let mut tokens = Vec::with_capacity(leases.len());
        let mut shortest = Duration::MAX;
        for (index, lease) in leases.iter().enumerate() {
            let refusal = match acquire(&mut records, lease, now, wall)? {
                Acquired::Granted { token, remaining } => {
                    tokens.push(token);
                    shortest = shortest.min(remaining);
                    continue;
                }
                Acquired::Taken { remaining, holder, .. } => AcquiredMany::Taken { index, remaining, holder },
                Acquired::Spent => AcquiredMany::Spent { index },
            };
            for lease in &leases[..index] {
                release(&mut records, lease, None, now);
            }
            return Ok(refusal);
        }
        Ok(AcquiredMany::Granted { tokens, remaining: shortest })
    }

    async fn release_many(&self, leases: &[Lease], keep: Option<Duration>) -> Result<Vec<Released>, StoreError> {
        let (now, _) = self.clock.read();
        let answers: Vec<_> = {
            let mut records = self.records();
            leases.iter().map(|lease| release(&mut records, lease, keep, now)).collect()
        };
        for lease in leases {
            self.hints.send(&lease.key);
        }
        Ok(answers)
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let (now, _) = self.clock.read();
        let mut records = self.records();
        Ok(records.range_mut::<str, _>((Bound::Included(key), Bound::Included(key))).next().map(|(key, entry)| {
            Record::new(Arc::clone(key), FencingToken::new(entry.token), entry.state(now))
        }))
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let (now, _) = self.clock.read();
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        Ok(self
            .records()
            .range_mut::<str, _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, entry)| Record::new(Arc::clone(key), FencingToken::new(entry.token), entry.state(now)))
            .filter(|record| record.state != RecordState::Free)
            .take(limit)
            .collect())
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let (now, _) = self.clock.read();
        {
            let mut records = self.records();
            let Some(entry) = records.get_mut(key) else { return Ok(Forced::Changed) };
            if entry.token != token.get() || entry.expires.is_none() {
                return Ok(Forced::Changed);
            }
            entry.free(now);
            entry.token += 1;
        }
        self.hints.send(&Arc::from(key));
        Ok(Forced::Released)
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        let (now, _) = self.clock.read();
        let mut records = self.records();
        let old: Vec<_> = records
            .iter()
            .filter(|(_, entry)| entry.used.max(entry.expires.unwrap_or_default()) + retention <= now)
            .map(|(key, _)| Arc::clone(key))
            .take(limit)
            .collect();
        for key in &old {
            records.remove(key);
        }
        Ok(old.len())
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

fn acquire(
    records: &mut BTreeMap<Arc<str>, Entry>,
    lease: &Lease,
    now: Moment,
    wall: Duration,
) -> Result<Acquired, StoreError> {
    if lease.mode != Mode::Exclusive {
        return Err(StoreError::refused("the memory store keeps exclusive leases only"));
    }
    let mut entry = match records.entry(Arc::clone(&lease.key)) {
        Slot::Vacant(slot) => slot.insert_entry(Entry {
            owner: None,
            last_owner: None,
            token: 0,
            expires: None,
            ttl: Duration::ZERO,
            granted: now,
            granted_wall: Duration::ZERO,
            used: now,
            holder: Arc::clone(&lease.holder),
        }),
        Slot::Occupied(slot) => slot,
    };
    let entry = entry.get_mut();
    let remaining = entry.remaining(now);
    if entry.owner == Some(lease.owner) && !remaining.is_zero() {
        let first = entry.token.saturating_sub(u64::from(lease.tokens.max(1)) - 1);
        return Ok(Acquired::Granted { token: FencingToken::new(first), remaining });
    }
    if entry.owner == Some(lease.owner) || entry.last_owner == Some(lease.owner) {
        return Ok(Acquired::Spent);
    }
    let (blocked, holder) = match (entry.owner, entry.expires) {
        (Some(_), Some(expires)) => (now.until(expires + lease.lock_delay), Some(Arc::clone(&entry.holder))),
        _ => (remaining, None),
    };
    if !blocked.is_zero() {
        return Ok(Acquired::Taken { remaining: blocked, holder, queued: false });
    }
    if let Some(remaining) = lease.once_per.and_then(|once_per| window_left(once_per, entry.granted_wall, wall)) {
        return Ok(Acquired::Taken { remaining, holder: None, queued: false });
    }
    let micros = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX);
    let first = (entry.token + 1).max(micros).max(lease.token_floor.unwrap_or_default());
    entry.free(now);
    entry.owner = Some(lease.owner);
    entry.token = first + u64::from(lease.tokens.max(1)) - 1;
    entry.expires = Some(now + lease.ttl);
    entry.ttl = lease.ttl;
    entry.granted = now;
    entry.granted_wall = wall;
    entry.holder = Arc::clone(&lease.holder);
    Ok(Acquired::Granted { token: FencingToken::new(first), remaining: lease.ttl })
}

fn release(
    records: &mut BTreeMap<Arc<str>, Entry>,
    lease: &Lease,
    keep: Option<Duration>,
    now: Moment,
) -> Released {
    let Some(entry) = records.get_mut(&lease.key) else { return Released::NotHeld };
    if entry.owner != Some(lease.owner) {
        return if entry.last_owner == Some(lease.owner) { Released::AlreadyReleased } else { Released::NotHeld };
    }
    let expired = entry.remaining(now).is_zero();
    entry.free(now);
    let kept = keep.map(|keep| now.until(entry.granted + keep)).filter(|kept| !kept.is_zero() && !expired);
    if let Some(kept) = kept {
        entry.expires = Some(now + kept);
        entry.ttl = kept;
    }
    Released::Released
}
