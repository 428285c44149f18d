//! Local time: a clock that counts suspend, and the deadline a lease may be believed until.
//!
//! Invariant: nothing here is ever compared with another machine's clock. Durations go to the store;
//! what comes back is counted from before the request was sent.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on this machine's clock, in nanoseconds since boot (or since an arbitrary start elsewhere).
///
/// Unlike [`std::time::Instant`] on Linux it keeps counting while the machine is suspended
/// (`CLOCK_BOOTTIME`, see `clock_gettime(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The latest moment there is; used for "no deadline".
    pub const NEVER: Self = Self(u64::MAX);

    /// Reads the machine's clock.
    #[must_use]
    pub fn now() -> Self {
        Self(boot_nanos())
    }

    /// The moment that lies `nanos` nanoseconds after the clock's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this moment; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time from this moment until `later`; zero when it has passed.
    #[must_use]
    pub const fn until(self, later: Self) -> Duration {
        later.since(self)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Until when a lease may be believed that the store said lasts `remaining`, asked at `sent`.
///
/// The store stamped it no earlier than `sent`, so counting from there is safe however long the answer
/// took. One per cent is for clock rates (NTP slews by at most 500 ppm), two milliseconds for rounding;
/// both are the defaults of the Redlock description (redis.io, "Distributed Locks with Redis").
pub(crate) fn valid_until(sent: Moment, remaining: Duration) -> Moment {
    sent + remaining.saturating_sub(remaining / 100).saturating_sub(Duration::from_millis(2))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_nanos() -> u64 {
    nanos(rustix::time::clock_gettime(rustix::time::ClockId::Boottime))
}

// On Darwin CLOCK_MONOTONIC goes on while the system sleeps (clock_gettime(3) there); on the BSDs it is
// the best there is.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
fn boot_nanos() -> u64 {
    nanos(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

#[cfg(unix)]
fn nanos(time: rustix::time::Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let rest = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

// QueryPerformanceCounter, which `Instant` reads on Windows, counts sleep.
#[cfg(not(unix))]
fn boot_nanos() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_counts_from_before_sending_and_keeps_a_margin() {
        let sent = Moment::from_nanos(5_000_000_000);
        let until = valid_until(sent, Duration::from_secs(10));
        assert_eq!(until, sent + Duration::from_millis(9_898));
    }

    #[test]
    fn a_tiny_remainder_gives_no_validity_at_all() {
        let sent = Moment::from_nanos(7);
        assert_eq!(valid_until(sent, Duration::from_millis(1)), sent);
    }

    #[test]
    fn the_clock_moves_on() {
        let before = Moment::now();
        assert!(Moment::now() >= before);
    }
}
