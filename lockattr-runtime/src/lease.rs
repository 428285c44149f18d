//! Plain values of a lock: what is asked of a store, and what it answers.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

mod token;
pub use token::{FencingToken, InvalidToken};

/// The identity of one acquisition: 128 bits, random by the operating system, never used again.
///
/// It is a capability: who knows it can renew and release. Its `Debug` form therefore shows nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Uuid);

impl Owner {
    /// Draws a new owner from the operating system's random source.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Makes an owner of a given UUID; for stores that read one back, and for tests.
    #[must_use]
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID itself, for a store to keep.
    #[must_use]
    pub const fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner(..)")
    }
}

/// How a key is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// One holder at a time.
    #[default]
    Exclusive,
    /// Any number of readers, or one [`Mode::Exclusive`] holder.
    Shared,
    /// At most this many holders at a time.
    Permits(NonZeroU32),
}

/// Who holds a key, for people: `lockattr show`, [`Locker::inspect`](crate::Locker::inspect), errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Holder {
    /// The host's name.
    pub host: String,
    /// The process id on that host.
    pub pid: u32,
    /// What the holder calls its work; the attribute puts the key's template here.
    pub label: String,
}

impl Holder {
    /// Names a holder.
    #[must_use]
    pub fn new(host: impl Into<String>, pid: u32, label: impl Into<String>) -> Self {
        Self { host: host.into(), pid, label: label.into() }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)?;
        if !self.label.is_empty() {
            write!(f, " ({})", self.label)?;
        }
        Ok(())
    }
}

/// What is asked of a store: one key, for one owner, for so long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// The key as the store has it, prefix included: 1 to 383 bytes, no control bytes.
    pub key: Arc<str>,
    /// The identity of this acquisition.
    pub owner: Owner,
    /// How the key is held.
    pub mode: Mode,
    /// How long the store keeps it without a renewal, from its own now.
    pub ttl: Duration,
    /// How much longer than its expiry an unreleased lease of another owner keeps this one out.
    pub lock_delay: Duration,
    /// How many tokens the grant takes: the answer is the first, the record keeps the last. At least 1.
    pub tokens: u16,
    /// The token must not be below this.
    pub token_floor: Option<u64>,
    /// Refuse while the store's wall clock is in the same window of this length as at the last grant.
    pub once_per: Option<Duration>,
    /// Who asks, for people.
    pub holder: Arc<Holder>,
}

impl Lease {
    /// An exclusive lease of `key` for `ttl` by `owner`, every other field at its default.
    #[must_use]
    pub fn new(key: impl Into<Arc<str>>, owner: Owner, ttl: Duration) -> Self {
        Self {
            key: key.into(),
            owner,
            mode: Mode::Exclusive,
            ttl,
            lock_delay: Duration::ZERO,
            tokens: 1,
            token_floor: None,
            once_per: None,
            holder: Arc::new(Holder::default()),
        }
    }
}

/// A store's answer to [`Store::acquire`](crate::store::Store::acquire).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Acquired {
    /// The key is this owner's. A repeated request of the same live owner gets the same token again.
    Granted {
        /// The first token of the block.
        token: FencingToken,
        /// How long the lease lasts from the store's now; a repeat does not extend it.
        remaining: Duration,
    },
    /// Another owner has it, a minimum hold keeps it, or its window is used up.
    Taken {
        /// How long until it may be free, lock delay included; zero when that is not known.
        remaining: Duration,
        /// Who has it, where the store knows.
        holder: Option<Arc<Holder>>,
        /// Whether the store has put this owner into its queue.
        queued: bool,
    },
    /// This owner's own lease is over: released, forced or expired. It can never be granted again.
    Spent,
}

/// A store's answer to [`Store::renew`](crate::store::Store::renew).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Renewed {
    /// Still this owner's.
    Renewed {
        /// How long the lease lasts from the store's now; never less than before the renewal.
        remaining: Duration,
    },
    /// No longer this owner's: expired, released, forced, or taken by another.
    Lost,
}

/// A store's answer to [`Store::release`](crate::store::Store::release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// It was this owner's and is free now, or kept for the rest of its minimum hold.
    Released,
    /// It had been released before by this owner.
    AlreadyReleased,
    /// It is not this owner's.
    NotHeld,
}

/// A store's answer to [`Store::acquire_many`](crate::store::Store::acquire_many).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquiredMany {
    /// All keys are this owner's.
    Granted {
        /// A token for each lease, in the order asked.
        tokens: Vec<FencingToken>,
        /// The shortest time any of them lasts.
        remaining: Duration,
    },
    /// The lease at `index` was taken; none is held.
    Taken {
        /// Which lease of the list.
        index: usize,
        /// As in [`Acquired::Taken`].
        remaining: Duration,
        /// As in [`Acquired::Taken`].
        holder: Option<Arc<Holder>>,
    },
    /// The lease at `index` is over for this owner; none is held.
    Spent {
        /// Which lease of the list.
        index: usize,
    },
}

/// What a store has of a key, as [`Store::inspect`](crate::store::Store::inspect) and
/// [`Store::list`](crate::store::Store::list) show it. It never holds the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The key as the store has it, prefix included.
    pub key: Arc<str>,
    /// The last token given out.
    pub token: FencingToken,
    /// Whether it is free, held, or kept.
    pub state: RecordState,
}

impl Record {
    /// A record of `key`.
    #[must_use]
    pub const fn new(key: Arc<str>, token: FencingToken, state: RecordState) -> Self {
        Self { key, token, state }
    }
}

/// The state of a [`Record`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordState {
    /// Nobody holds it. An expired lease is free.
    Free,
    /// Somebody holds it.
    Held {
        /// How long the lease lasts without a renewal.
        remaining: Duration,
        /// How long ago it was granted.
        age: Duration,
        /// Who holds it.
        holder: Arc<Holder>,
    },
    /// It was released, and a minimum hold keeps it.
    Kept {
        /// How long it stays kept.
        remaining: Duration,
    },
}

/// A store's answer to [`Store::force_release`](crate::store::Store::force_release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forced {
    /// The lease with that token is over; its owner can neither renew nor come back.
    Released,
    /// The record has another token, or nobody holds it: nothing was changed.
    Changed,
}
