//! What can go wrong with a lock, as a caller sees it.
//!
//! Invariant: busy, lost and store failure are different variants, and none is ever turned into another.
//! Texts show the template a key came from, never the rendered key.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::lease::Holder;
use crate::store::StoreError;

/// The name of what was locked: the template for people, the rendered key for who asks.
///
/// `Display` and `Debug` show the template (for the API, which has none, the key it was given), so that
/// values which may be personal or secret stay out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Locked(Arc<Names>);

#[derive(PartialEq, Eq)]
struct Names {
    shown: Cow<'static, str>,
    key: Box<str>,
}

impl Locked {
    /// A name that shows as `shown` and whose key is `key`.
    pub(crate) fn new(shown: impl Into<Cow<'static, str>>, key: impl Into<Box<str>>) -> Self {
        Self(Arc::new(Names { shown: shown.into(), key: key.into() }))
    }

    /// A name that shows as its key.
    pub(crate) fn plain(key: &str) -> Self {
        Self::new(key.to_owned(), key)
    }

    /// The template, or the source of the key's expression.
    #[must_use]
    pub fn template(&self) -> &str {
        &self.0.shown
    }

    /// The rendered key, without the locker's prefix and before it is shortened for the store.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.key
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.shown)
    }
}

impl fmt::Debug for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The step at which a store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Opening the store or reaching its server.
    Connect,
    /// Taking a lock.
    Acquire,
    /// Keeping it.
    Renew,
    /// Giving it back.
    Release,
    /// Looking at a record.
    Inspect,
    /// Listing records.
    List,
    /// Ending somebody else's lease.
    ForceRelease,
    /// Removing old records.
    Collect,
    /// Reading the server's configuration.
    Audit,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting to the store",
            Self::Acquire => "acquiring",
            Self::Renew => "renewing",
            Self::Release => "releasing",
            Self::Inspect => "inspecting",
            Self::List => "listing",
            Self::ForceRelease => "force-releasing",
            Self::Collect => "collecting old records",
            Self::Audit => "auditing the store",
        })
    }
}

/// Why a held lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossCause {
    /// The lease ran out without a renewal that succeeded: the store was out of reach, the process was
    /// paused, or renewal is off.
    Expired,
    /// The store said that it is no longer ours: it expired there, was forced, or its record is gone.
    NotOurs,
    /// `max_hold` was reached.
    MaxHold,
    /// The task that renews it died.
    RenewalDied,
    /// The locker was shut down, and the lease ran out after the grace time.
    ShutDown,
    /// It was given back: the guard or the body that held it has ended.
    GivenBack,
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its lease ran out without a renewal",
            Self::NotOurs => "the store says that it is no longer ours",
            Self::MaxHold => "it was held for as long as `max_hold` allows",
            Self::RenewalDied => "the task that renews it died",
            Self::ShutDown => "its locker was shut down",
            Self::GivenBack => "it was given back",
        })
    }
}

/// Why a lock was not taken, or not kept.
///
/// Texts name what was locked by its template; [`LockError::key`] gives the rendered key.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Others held it for the whole wait. Nothing is held.
    #[error("acquiring {locked}: it is taken{}, after waiting {waited:.1?}; wait longer, or treat this as busy", by(holder.as_deref()))]
    #[non_exhaustive]
    Busy {
        /// What was to be locked.
        locked: Locked,
        /// How long was waited.
        waited: Duration,
        /// Who has it, where the store knows.
        holder: Option<Arc<Holder>>,
    },
    /// It was held, and then no longer. With `on_lost = cancel` the body was stopped before this came back.
    #[error(
        "holding {locked}: it was lost after {held_for:.1?}, since {cause}; others may have run since, so check what was done before trying again"
    )]
    #[non_exhaustive]
    Lost {
        /// What was locked.
        locked: Locked,
        /// Why it was lost.
        cause: LossCause,
        /// How long it was held.
        held_for: Duration,
    },
    /// The store failed. It says nothing about whether others hold the lock.
    #[error("{step} {locked} in the {store} store: {source}: {}", cause(source))]
    #[non_exhaustive]
    Store {
        /// What was to be locked.
        locked: Locked,
        /// The step that failed.
        step: Step,
        /// The store's name.
        store: &'static str,
        /// What the store said.
        source: Arc<StoreError>,
    },
    /// The enclosing body holds the same key: waiting for it could never end.
    #[error(
        "acquiring {locked} at {place}: the body that is running already holds it as {outer}, taken at {outer_place}, so waiting would never end; say `reentrant` here to enter again with all of its keys, pass the held lease on, or use another key"
    )]
    #[non_exhaustive]
    WouldDeadlock {
        /// What was to be locked.
        locked: Locked,
        /// Where that was asked for.
        place: &'static Location<'static>,
        /// What the enclosing body holds it as.
        outer: Locked,
        /// Where the enclosing body took it.
        outer_place: &'static Location<'static>,
    },
    /// The key cannot be locked; the store was not asked.
    #[error("acquiring {locked}: the key {reason}")]
    #[non_exhaustive]
    InvalidKey {
        /// What was to be locked.
        locked: Locked,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The options contradict each other or a limit; the store was not asked.
    #[error("acquiring {locked}: {reason}")]
    #[non_exhaustive]
    InvalidOptions {
        /// What was to be locked.
        locked: Locked,
        /// What is wrong with them.
        reason: String,
    },
    /// The store cannot do this; it was not asked, and no weaker lock was taken.
    #[error("acquiring {locked}: the {store} store does not support {feature}; use a store that does")]
    #[non_exhaustive]
    Unsupported {
        /// What was to be locked.
        locked: Locked,
        /// What was asked for.
        feature: &'static str,
        /// The store's name.
        store: &'static str,
    },
    /// No locker is installed in this process.
    #[error(
        "acquiring {locked}: no locker is installed; add `lockattr::install(lockattr::Locker::connect(\"memory:\").await?);` with your store's URL to the start of `main`, or give the attribute `locker = ..`"
    )]
    #[non_exhaustive]
    NotInstalled {
        /// What was to be locked.
        locked: Locked,
    },
    /// A URL or a setting of a locker is wrong.
    #[error("setting up a locker: {reason}")]
    #[non_exhaustive]
    Setup {
        /// What is wrong, and what to do.
        reason: String,
    },
    /// Too many tasks of this process wait for it already.
    #[error(
        "acquiring {locked}: {waiting} tasks of this process wait already, which is the limit; raise `max_waiters`, or send less"
    )]
    #[non_exhaustive]
    QueueFull {
        /// What was to be locked.
        locked: Locked,
        /// How many wait.
        waiting: usize,
    },
    /// The locker is being shut down and takes no new locks.
    #[error("acquiring {locked}: the locker is shutting down")]
    #[non_exhaustive]
    ShuttingDown {
        /// What was to be locked.
        locked: Locked,
    },
    /// This process is a fork of the one that made the locker, and has neither its threads nor its connections.
    #[error(
        "acquiring {locked}: this process was forked after the locker was made; make a new locker in the child"
    )]
    #[non_exhaustive]
    Forked {
        /// What was to be locked.
        locked: Locked,
    },
}

impl LockError {
    /// The rendered key that this is about, without the locker's prefix; `None` when it is about no key.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.locked().map(Locked::key)
    }

    /// The name of what this is about; `None` when it is about no key.
    #[must_use]
    pub fn locked(&self) -> Option<&Locked> {
        match self {
            Self::Busy { locked, .. }
            | Self::Lost { locked, .. }
            | Self::Store { locked, .. }
            | Self::WouldDeadlock { locked, .. }
            | Self::InvalidKey { locked, .. }
            | Self::InvalidOptions { locked, .. }
            | Self::Unsupported { locked, .. }
            | Self::NotInstalled { locked }
            | Self::QueueFull { locked, .. }
            | Self::ShuttingDown { locked }
            | Self::Forked { locked } => Some(locked),
            Self::Setup { .. } => None,
        }
    }

    /// Whether the lock is in use: [`Busy`](Self::Busy), [`WouldDeadlock`](Self::WouldDeadlock) or
    /// [`QueueFull`](Self::QueueFull). A store failure is never busy.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::WouldDeadlock { .. } | Self::QueueFull { .. })
    }

    /// Whether the lock had been held and was lost.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether the same call may succeed later: it was busy, or the store failed.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::QueueFull { .. } | Self::Store { .. })
    }

    /// A [`Busy`](Self::Busy) error for tests of code that handles it.
    #[must_use]
    pub fn busy(key: &str) -> Self {
        Self::Busy { locked: Locked::plain(key), waited: Duration::ZERO, holder: None }
    }

    /// A [`Lost`](Self::Lost) error for tests of code that handles it.
    #[must_use]
    pub fn lost(key: &str, cause: LossCause) -> Self {
        Self::Lost { locked: Locked::plain(key), cause, held_for: Duration::ZERO }
    }
}

fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| format!(" by {holder}"))
}

fn cause(error: &StoreError) -> String {
    use std::error::Error as _;
    let mut text = String::new();
    let mut next = error.source();
    while let Some(cause) = next {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_show_the_template_and_not_the_key() {
        let error = LockError::Busy {
            locked: Locked::new("user:{email}", "user:ann@example.org"),
            waited: Duration::from_secs(5),
            holder: Some(Arc::new(Holder::new("web-1", 7, "user:{email}"))),
        };
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(text.contains("user:{email}"), "{text}");
            assert!(!text.contains("ann@"), "{text}");
        }
        assert_eq!(error.key(), Some("user:ann@example.org"));
        assert!(error.to_string().contains("process 7 on web-1"));
    }

    #[test]
    fn a_store_failure_is_not_busy_and_shows_its_cause() {
        let error = LockError::Store {
            locked: Locked::plain("k"),
            step: Step::Acquire,
            store: "memory",
            source: Arc::new(StoreError::refused("the disk is full")),
        };
        assert!(!error.is_busy());
        assert!(error.to_string().contains("the disk is full"));
    }

    #[test]
    fn an_error_is_small_enough_for_every_result() {
        assert!(size_of::<LockError>() <= 48, "{}", size_of::<LockError>());
    }
}
