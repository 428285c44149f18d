//! What a store of this machine reads the time from: a steady clock for expiry, and the wall clock for
//! tokens, windows and retention.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::time::Moment;

/// Both clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) now: Moment,
    /// Since 1970.
    pub(crate) wall: Duration,
}

#[cfg(feature = "testing")]
type Read = std::sync::Arc<dyn Fn() -> (Moment, Duration) + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) enum Clock {
    /// The boot-time clock. What it says means nothing to another process elsewhere than on Linux.
    #[default]
    Machine,
    /// The wall clock for both, where processes share no better one.
    #[cfg(feature = "sqlite")]
    Wall,
    #[cfg(feature = "testing")]
    Given(Read),
}

impl Clock {
    pub(crate) fn read(&self) -> Reading {
        let wall = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        match self {
            Self::Machine => Reading { now: Moment::now(), wall: wall() },
            #[cfg(feature = "sqlite")]
            Self::Wall => {
                let wall = wall();
                Reading { now: Moment::default() + wall, wall }
            }
            #[cfg(feature = "testing")]
            Self::Given(read) => {
                let (now, wall) = read();
                Reading { now, wall }
            }
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
