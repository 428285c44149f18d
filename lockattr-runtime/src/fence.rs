//! A resource of this process that refuses stale tokens.
//!
//! Invariant: what the gate protects is reached with a token that is not below any it has seen.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::lease::FencingToken;

/// A value that refuses whoever comes with a smaller fencing token than one it has seen.
///
/// For what lives in this process and is written under a lock: a cache, a file handle, a client of a device.
/// A holder that was paused and has lost its lock meanwhile cannot write to it once a newer one has. What
/// lives elsewhere needs the same check there, in one step with the write.
///
/// ```
/// # use lockattr_runtime::{FenceGate, Locker, LockError, store::MemoryStore};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locker = Locker::new(MemoryStore::new());
/// let balance = FenceGate::new(100);
///
/// let stale = locker.lock("account:7").run(async |held| held.token()).await?;
/// locker
///     .lock("account:7")
///     .run(async |held| balance.enter(held.token(), |cents| *cents -= 30))
///     .await?
///     .expect("it is the newest");
///
/// let refused = balance.enter(stale, |cents| *cents = 0).unwrap_err();
/// assert!(refused.newest() > refused.token());
/// assert_eq!(balance.into_inner(), 70);
/// # Ok(()) }
/// ```
pub struct FenceGate<T>(Mutex<Behind<T>>);

struct Behind<T> {
    newest: Option<FencingToken>,
    value: T,
}

impl<T> FenceGate<T> {
    /// A gate that has seen no token yet.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(Behind { newest: None, value }))
    }

    /// A gate that has seen `newest`: for a value that was read from where its last token is kept with it.
    pub const fn since(newest: FencingToken, value: T) -> Self {
        Self(Mutex::new(Behind { newest: Some(newest), value }))
    }

    /// Runs `work` on the value, and remembers `token`. The same token may come many times.
    ///
    /// Others wait while it runs, so it should be short. When it panics, the value stays as it then is.
    ///
    /// # Errors
    ///
    /// [`StaleToken`] when a larger token has been here; `work` did not run.
    pub fn enter<R>(&self, token: FencingToken, work: impl FnOnce(&mut T) -> R) -> Result<R, StaleToken> {
        let mut behind = self.behind();
        if let Some(newest) = behind.newest.filter(|newest| token < *newest) {
            return Err(StaleToken { token, newest });
        }
        behind.newest = Some(token);
        Ok(work(&mut behind.value))
    }

    /// The largest token that has been here; `None` when none has.
    pub fn newest(&self) -> Option<FencingToken> {
        self.behind().newest
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).value
    }

    fn behind(&self) -> MutexGuard<'_, Behind<T>> {
        // The token is set before the work begins, so a panic of the work leaves the gate itself whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for FenceGate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceGate").field("newest", &self.newest()).finish_non_exhaustive()
    }
}

/// A write came with a fencing token smaller than one that was there before: a newer holder has been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the fencing token {token} is stale, since {newest} has been here; its lock is no longer held, so give this work up"
)]
pub struct StaleToken {
    token: FencingToken,
    newest: FencingToken,
}

impl StaleToken {
    /// The token that was refused.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The largest that the gate had seen.
    #[must_use]
    pub const fn newest(&self) -> FencingToken {
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_token_is_refused_and_the_same_one_is_not() {
        let gate = FenceGate::new(0);
        let token = FencingToken::new;
        assert_eq!(gate.newest(), None);
        for (number, value) in [(5, 1), (5, 2), (7, 3)] {
            assert!(gate.enter(token(number), |held| *held = value).is_ok());
        }
        let refused = gate.enter(token(6), |held| *held = 9).expect_err("7 has been there");
        assert_eq!((refused.token(), refused.newest()), (token(6), token(7)));
        assert_eq!(gate.into_inner(), 3);
        assert!(FenceGate::since(token(7), 0).enter(token(6), |_| ()).is_err());
    }

    #[test]
    fn a_panic_inside_counts_as_a_write_with_its_token() {
        let gate = FenceGate::new(0);
        let work = || gate.enter(FencingToken::new(2), |_| panic!("in the work"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        assert!(gate.enter(FencingToken::new(1), |_| ()).is_err());
        assert!(gate.enter(FencingToken::new(2), |_| ()).is_ok());
    }
}
