//! The steps of the contract on records that are at hand: the memory store runs them on its map, the
//! SQLite store on the rows it has read.
//!
//! Invariant: a step is a function of the records, the request and one reading of the clocks. It does no
//! I/O, and one that fails has changed nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::StoreError;
use super::clock::Reading;
use crate::lease::{
    Acquired, AcquiredMany, FencingToken, Forced, Holder, Lease, Mode, Owner, RecordState, Released, Renewed,
};
use crate::time::Moment;

/// The largest integer up to which doubles carry every one exactly.
pub(crate) const LARGEST_TOKEN: u64 = (1 << 53) - 1;

pub(crate) type Entries = BTreeMap<Arc<str>, Entry>;

/// One record. Free when it has no expiry; kept when it has an expiry and no owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) owner: Option<Owner>,
    pub(crate) last_owner: Option<Owner>,
    /// The last one given out.
    pub(crate) token: u64,
    pub(crate) expires: Option<Moment>,
    /// How far from now `expires` can be while the clock runs forward.
    pub(crate) ttl: Duration,
    pub(crate) granted: Moment,
    pub(crate) granted_wall: Duration,
    /// Until when, by the wall clock, the last grants with `once_per` forbid another.
    pub(crate) window_end: Duration,
    /// From when, by the wall clock, nothing holds or keeps it.
    pub(crate) idle_since: Duration,
    pub(crate) holder: Arc<Holder>,
}

impl Entry {
    /// Time left until the record may be given to another, a backward step of the clock cut to one ttl.
    fn remaining(&self, now: Moment) -> Duration {
        self.expires.map_or(Duration::ZERO, |expires| now.until(expires).min(self.ttl))
    }

    /// Makes a backward step of the clock harmless for good.
    fn settle(&mut self, now: Moment) {
        self.expires = self.expires.map(|expires| expires.min(now + self.ttl));
    }

    pub(crate) fn state(&self, now: Moment) -> RecordState {
        let remaining = self.remaining(now);
        if remaining.is_zero() {
            RecordState::Free
        } else if self.owner.is_some() {
            RecordState::Held { remaining, age: now.since(self.granted), holder: Arc::clone(&self.holder) }
        } else {
            RecordState::Kept { remaining }
        }
    }

    /// Whether `collect` may remove it.
    pub(crate) fn is_idle(&self, retention: Duration, at: Reading) -> bool {
        self.remaining(at.now).is_zero()
            && self.idle_since.saturating_add(retention) <= at.wall
            && self.window_end <= at.wall
    }

    fn is_live_for(&self, owner: Owner, now: Moment) -> bool {
        self.owner == Some(owner) && !self.remaining(now).is_zero()
    }

    fn free(&mut self, at: Reading) {
        self.last_owner = self.owner.take().or(self.last_owner);
        self.expires = None;
        self.idle_since = at.wall;
    }

    /// The answer to `lease` when that is not a new grant.
    fn refusal(&self, lease: &Lease, at: Reading) -> Option<Acquired> {
        if self.is_live_for(lease.owner, at.now) {
            let first = self.token.saturating_sub(u64::from(lease.tokens.max(1)) - 1);
            let remaining = self.remaining(at.now);
            return Some(Acquired::Granted { token: FencingToken::new(first), remaining });
        }
        if self.owner == Some(lease.owner) || self.last_owner == Some(lease.owner) {
            return Some(Acquired::Spent);
        }
        let (blocked, holder) = match (self.owner, self.expires) {
            (Some(_), Some(expires)) => {
                (at.now.until(expires + lease.lock_delay), Some(Arc::clone(&self.holder)))
            }
            _ => (self.remaining(at.now), None),
        };
        if !blocked.is_zero() {
            return Some(Acquired::Taken { remaining: blocked, holder, queued: false });
        }
        let remaining =
            lease.once_per.and_then(|once_per| window_left(once_per, self.granted_wall, at.wall))?;
        Some(Acquired::Taken { remaining, holder: None, queued: false })
    }
}

/// The rest of the window that `wall` lies in, or `None` when `granted` lies in another one.
fn window_left(once_per: Duration, granted: Duration, wall: Duration) -> Option<Duration> {
    let window = once_per.as_nanos().max(1);
    if granted.as_nanos() / window != wall.as_nanos() / window {
        return None;
    }
    let left = window - wall.as_nanos() % window;
    Some(Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX)))
}

pub(crate) fn acquire(entries: &mut Entries, lease: &Lease, at: Reading) -> Result<Acquired, StoreError> {
    if lease.mode != Mode::Exclusive {
        return Err(StoreError::refused("this store keeps exclusive leases only"));
    }
    let known = entries.get_mut(&lease.key);
    if let Some(entry) = known {
        entry.settle(at.now);
        if let Some(refusal) = entry.refusal(lease, at) {
            return Ok(refusal);
        }
    }
    let known = entries.get(&lease.key);
    let micros = u64::try_from(at.wall.as_micros()).unwrap_or(u64::MAX);
    let above = known.map_or(0, |entry| entry.token.saturating_add(1));
    let first = above.max(micros).max(lease.token_floor.unwrap_or_default()).max(1);
    let last = first.saturating_add(u64::from(lease.tokens.max(1)) - 1);
    if last > LARGEST_TOKEN {
        return Err(StoreError::refused("the fencing token would pass 2^53, up to which doubles are exact"));
    }
    let window_end = lease
        .once_per
        .and_then(|once_per| window_left(once_per, at.wall, at.wall))
        .map_or(Duration::ZERO, |left| at.wall.saturating_add(left));
    let granted = Entry {
        owner: Some(lease.owner),
        last_owner: known.and_then(|entry| entry.owner.or(entry.last_owner)),
        token: last,
        expires: Some(at.now + lease.ttl),
        ttl: lease.ttl,
        granted: at.now,
        granted_wall: at.wall,
        window_end: known.map_or(window_end, |entry| entry.window_end.max(window_end)),
        idle_since: at.wall.saturating_add(lease.ttl),
        holder: Arc::clone(&lease.holder),
    };
    entries.insert(Arc::clone(&lease.key), granted);
    Ok(Acquired::Granted { token: FencingToken::new(first), remaining: lease.ttl })
}

pub(crate) fn acquire_many(
    entries: &mut Entries,
    leases: &[Lease],
    at: Reading,
) -> Result<AcquiredMany, StoreError> {
    let mut trial = Entries::new();
    for lease in leases {
        if let Some(entry) = entries.get_mut(&lease.key) {
            entry.settle(at.now);
            trial.insert(Arc::clone(&lease.key), entry.clone());
        }
    }
    let mut tokens = Vec::with_capacity(leases.len());
    let mut shortest = Duration::MAX;
    for (index, lease) in leases.iter().enumerate() {
        let refusal = match acquire(&mut trial, lease, at)? {
            Acquired::Granted { token, remaining } => {
                tokens.push(token);
                shortest = shortest.min(remaining);
                continue;
            }
            Acquired::Taken { remaining, holder, .. } => AcquiredMany::Taken { index, remaining, holder },
            Acquired::Spent => AcquiredMany::Spent { index },
        };
        // The trial is dropped; this is for what an earlier attempt of the same owner still holds.
        release_many(entries, leases, None, at);
        return Ok(refusal);
    }
    entries.append(&mut trial);
    Ok(AcquiredMany::Granted { tokens, remaining: shortest })
}

pub(crate) fn renew(entries: &mut Entries, lease: &Lease, at: Reading) -> Renewed {
    let Some(entry) = entries.get_mut(&lease.key) else { return Renewed::Lost };
    entry.settle(at.now);
    if !entry.is_live_for(lease.owner, at.now) {
        return Renewed::Lost;
    }
    let moved = at.now + lease.ttl;
    if entry.expires.is_some_and(|expires| moved > expires) {
        entry.expires = Some(moved);
        // Only together with the expiry: a ttl below what is left would cut the lease.
        entry.ttl = lease.ttl;
        entry.idle_since = at.wall.saturating_add(lease.ttl);
    }
    if let Some(floor) = lease.token_floor {
        let last = floor.saturating_add(u64::from(lease.tokens.max(1)) - 1);
        entry.token = entry.token.max(last.min(LARGEST_TOKEN));
    }
    Renewed::Renewed { remaining: entry.remaining(at.now) }
}

pub(crate) fn release(entries: &mut Entries, lease: &Lease, keep: Option<Duration>, at: Reading) -> Released {
    let Some(entry) = entries.get_mut(&lease.key) else { return Released::NotHeld };
    if entry.owner != Some(lease.owner) {
        return if entry.last_owner == Some(lease.owner) {
            Released::AlreadyReleased
        } else {
            Released::NotHeld
        };
    }
    let kept = match keep {
        Some(keep) if entry.is_live_for(lease.owner, at.now) => at.now.until(entry.granted + keep).min(keep),
        _ => Duration::ZERO,
    };
    entry.free(at);
    if !kept.is_zero() {
        entry.expires = Some(at.now + kept);
        entry.ttl = kept;
        entry.idle_since = at.wall.saturating_add(kept);
    }
    Released::Released
}

pub(crate) fn release_many(
    entries: &mut Entries,
    leases: &[Lease],
    keep: Option<Duration>,
    at: Reading,
) -> Vec<Released> {
    leases.iter().map(|lease| release(entries, lease, keep, at)).collect()
}

pub(crate) fn force_release(entries: &mut Entries, key: &str, token: FencingToken, at: Reading) -> Forced {
    match entries.get_mut(key) {
        Some(entry) if entry.token == token.get() && entry.expires.is_some() => {
            entry.free(at);
            entry.token += 1;
            Forced::Released
        }
        _ => Forced::Changed,
    }
}
