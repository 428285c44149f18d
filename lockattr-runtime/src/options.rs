//! What a caller may ask of a lock.

use std::time::Duration;

/// How long to wait for a lock that others hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// At most this long; zero means one attempt.
    AtMost(Duration),
    /// Without a limit.
    Forever,
}

impl From<Duration> for Wait {
    fn from(limit: Duration) -> Self {
        Self::AtMost(limit)
    }
}

/// What happens to the body when its lock is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnLost {
    /// It is dropped at its next await point, and the call returns [`LockError::Lost`](crate::LockError::Lost).
    #[default]
    Cancel,
    /// It runs on; [`Held`](crate::Held) says that the lock is lost.
    Continue,
}

/// How a lock is taken and kept. The defaults are those of the attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockOptions {
    /// How long the store keeps the lock without a renewal: 100 ms to 24 h. 60 s by default.
    pub expires: Duration,
    /// How long to wait while others hold it. One attempt by default.
    pub wait: Wait,
    /// Whether it is renewed while it is held; otherwise it ends with `expires`. True by default.
    pub renew: bool,
    /// What happens to the body when it is lost. Cancelled by default.
    pub on_lost: OnLost,
    /// Keep the key taken until this long after the grant, even when the work is done sooner. None by default.
    pub min_hold: Option<Duration>,
    /// Give the lock up after this long, however the work goes. None by default.
    pub max_hold: Option<Duration>,
    /// Grant the key at most once in each window of this length, which the store's wall clock counts from 1970
    /// in UTC: 1 ms to 366 days, for one key. None by default.
    pub once_per: Option<Duration>,
    /// Whether a body that holds all the keys already enters again, without asking the store. False by default.
    pub reentrant: bool,
    /// What the record calls the holder; the template of the key by default.
    pub label: Option<String>,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self {
            expires: Duration::from_mins(1),
            wait: Wait::AtMost(Duration::ZERO),
            renew: true,
            on_lost: OnLost::Cancel,
            min_hold: None,
            max_hold: None,
            once_per: None,
            reentrant: false,
            label: None,
        }
    }
}
