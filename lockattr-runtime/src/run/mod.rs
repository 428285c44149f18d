//! What the attribute's expansion calls, in the order it calls it: keys, options, enter, body, release,
//! outcome; and what `assert_locked!` calls.
//!
//! Invariant: nothing here decides anything about locks; that is `lock/`. A value that the user's code
//! made is handed on as it is.

mod alone;
mod asserted;
mod body;
mod keys;
mod locker;
mod options;
mod outcome;
#[cfg(feature = "testing")]
pub mod testing;

/// For generated code only; may change in any release.
#[doc(hidden)]
pub mod private {
    pub use super::asserted::assert_locked;
    pub use super::body::{Body, Site, body, detach, enter, held, is_busy, release};
    pub use super::keys::{
        KeyList, KeyPlace, Keys, LockKey, LockValue, each, each_of, expression, rendered, shown, template,
    };
    pub use super::locker::{AsLocker, installed, locker};
    pub use super::options::{
        LockDuration, Options, continue_on_loss, expires, max_hold, min_hold, no_renewal, once_per,
        reentrant, wait, wait_forever,
    };
    pub use super::outcome::{LockOutput, SkipOutput, failed, finished, panicked, skipped};
}
