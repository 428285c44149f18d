//! The attribute's options as the call has them.
//!
//! Invariant: an option that was not given keeps the default of [`LockOptions`].

use std::time::Duration;

use crate::error::{LockError, Locked};
use crate::options::{LockOptions, OnLost, Wait};

/// The options of one call, set so far.
#[derive(Debug, Default)]
pub struct Options {
    options: LockOptions,
    wrong: Option<&'static str>,
}

impl Options {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn checked(self, keys: &[Locked]) -> Result<LockOptions, LockError> {
        match (self.wrong, keys.first()) {
            (Some(name), Some(locked)) => Err(LockError::InvalidOptions {
                locked: locked.clone(),
                reason: format!("`{name}` is negative; give zero or more seconds"),
            }),
            _ => Ok(self.options),
        }
    }

    fn duration<D: LockDuration + ?Sized>(&mut self, name: &'static str, given: &D) -> Duration {
        given.lock_duration().unwrap_or_else(|| {
            self.wrong.get_or_insert(name);
            Duration::ZERO
        })
    }
}

/// Sets `expires`.
pub fn expires<D: LockDuration + ?Sized>(options: &mut Options, given: &D) {
    options.options.expires = options.duration("expires", given);
}

/// Sets `wait` to a limit.
pub fn wait<D: LockDuration + ?Sized>(options: &mut Options, given: &D) {
    options.options.wait = Wait::AtMost(options.duration("wait", given));
}

/// Sets `wait` to no limit.
pub fn wait_forever(options: &mut Options) {
    options.options.wait = Wait::Forever;
}

/// Sets `renew = false`.
pub fn no_renewal(options: &mut Options) {
    options.options.renew = false;
}

/// Sets `on_lost = continue`.
pub fn continue_on_loss(options: &mut Options) {
    options.options.on_lost = OnLost::Continue;
}

/// Sets `min_hold`.
pub fn min_hold<D: LockDuration + ?Sized>(options: &mut Options, given: &D) {
    options.options.min_hold = Some(options.duration("min_hold", given));
}

/// Sets `max_hold`.
pub fn max_hold<D: LockDuration + ?Sized>(options: &mut Options, given: &D) {
    options.options.max_hold = Some(options.duration("max_hold", given));
}

/// Sets `reentrant`.
pub fn reentrant(options: &mut Options) {
    options.options.reentrant = true;
}

/// Sets `once_per`.
pub fn once_per<D: LockDuration + ?Sized>(options: &mut Options, given: &D) {
    options.options.once_per = Some(options.duration("once_per", given));
}

/// What an expression may give as a duration.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lock duration",
    label = "give a `Duration`, or an integer of seconds",
    note = "a literal may also be text with a unit, such as `\"1500ms\"`"
)]
pub trait LockDuration {
    /// The duration; `None` when it is negative.
    fn lock_duration(&self) -> Option<Duration>;
}

// No implementation for all references: an error would then name what a reference points to instead of the
// type that was given.
macro_rules! durations {
    ($($given:ty, $this:ident => $duration:expr;)*) => {$(
        impl LockDuration for $given {
            fn lock_duration(&self) -> Option<Duration> {
                let $this = self;
                $duration
            }
        }

        impl LockDuration for &$given {
            fn lock_duration(&self) -> Option<Duration> {
                (**self).lock_duration()
            }
        }
    )*};
}

durations! {
    Duration, duration => Some(*duration);
    u8, seconds => Some(Duration::from_secs(u64::from(*seconds)));
    u16, seconds => Some(Duration::from_secs(u64::from(*seconds)));
    u32, seconds => Some(Duration::from_secs(u64::from(*seconds)));
    u64, seconds => Some(Duration::from_secs(*seconds));
    u128, seconds => Some(Duration::from_secs(u64::try_from(*seconds).unwrap_or(u64::MAX)));
    usize, seconds => Some(Duration::from_secs(u64::try_from(*seconds).unwrap_or(u64::MAX)));
    i8, seconds => u64::try_from(*seconds).ok().map(Duration::from_secs);
    i16, seconds => u64::try_from(*seconds).ok().map(Duration::from_secs);
    i32, seconds => u64::try_from(*seconds).ok().map(Duration::from_secs);
    i64, seconds => u64::try_from(*seconds).ok().map(Duration::from_secs);
    i128, seconds => (*seconds >= 0).then(|| Duration::from_secs(u64::try_from(*seconds).unwrap_or(u64::MAX)));
    isize, seconds => u64::try_from(*seconds).ok().map(Duration::from_secs);
}
