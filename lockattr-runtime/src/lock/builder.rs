//! A request for a lock, as the API writes it.

use std::panic::Location;
use std::time::Duration;

use super::{Guard, Locker};
use crate::error::{LockError, Locked};
use crate::held::Held;
use crate::options::{LockOptions, OnLost, Wait};

/// A request for a lock. It does nothing until it is awaited with [`acquire`](Self::acquire),
/// [`try_acquire`](Self::try_acquire) or [`run`](Self::run).
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is awaited with `acquire`, `try_acquire` or `run`"]
pub struct LockBuilder {
    locker: Locker,
    keys: Vec<Locked>,
    options: LockOptions,
    /// Where it was asked for.
    place: &'static Location<'static>,
}

impl LockBuilder {
    #[track_caller]
    pub(crate) fn new(locker: Locker, keys: Vec<Locked>) -> Self {
        Self { locker, keys, options: LockOptions::default(), place: Location::caller() }
    }

    /// How long the store keeps the lock without a renewal: 100 ms to 24 h. 60 s by default.
    ///
    /// After a crash others get the lock when this has passed, so shorter is better: it is renewed at a third
    /// of it while it is held.
    pub fn expires(mut self, expires: Duration) -> Self {
        self.options.expires = expires;
        self
    }

    /// How long to wait while others hold it: a [`Duration`], or [`Wait::Forever`]. By default zero, which
    /// means one attempt.
    pub fn wait(mut self, wait: impl Into<Wait>) -> Self {
        self.options.wait = wait.into();
        self
    }

    /// Whether it is renewed while it is held. True by default; without, it is lost when `expires` has passed.
    pub fn renew(mut self, renew: bool) -> Self {
        self.options.renew = renew;
        self
    }

    /// What [`run`](Self::run) does with its body when the lock is lost. [`OnLost::Cancel`] by default.
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.options.on_lost = on_lost;
        self
    }

    /// Keeps the key taken until this long after the grant, even when it is released sooner; not after a loss.
    /// None by default, at most 24 h.
    pub fn min_hold(mut self, min_hold: Duration) -> Self {
        self.options.min_hold = Some(min_hold);
        self
    }

    /// Gives the lock up, as lost, after this long. None by default.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.options.max_hold = Some(max_hold);
        self
    }

    /// Grants the key at most once in each window of this length, by the store's wall clock: whoever asks again
    /// in the same window finds it taken until the window ends, however the first work went. None by default;
    /// 1 ms to 366 days.
    ///
    /// Windows are counted from 1970 in UTC: with 24 hours they begin at midnight there. A crash uses up its
    /// window. It is for one key, and for stores that support it; others are
    /// [`LockError::Unsupported`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use lockattr_runtime::{Locker, LockError, store::MemoryStore};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locker = Locker::new(MemoryStore::new());
    /// let yearly = || locker.lock("billing").once_per(Duration::from_hours(366 * 24)).try_acquire();
    /// assert!(yearly().await?.is_some());
    /// assert!(yearly().await?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn once_per(mut self, window: Duration) -> Self {
        self.options.once_per = Some(window);
        self
    }

    /// Whether a body that holds all these keys already enters again, at once and with the same token. False by
    /// default: then it is [`LockError::WouldDeadlock`].
    ///
    /// The store is not asked, and the lease is that of the lock around: of the options here only
    /// [`on_lost`](Self::on_lost) counts. When that lease is lost, both bodies are stopped. The lock is given back
    /// when the last of its guards ends, whichever that is. Who holds some of the keys and not all of them is
    /// refused. The holder is the body that [`run`](Self::run) or the attribute polls, and what it awaits: not its
    /// thread, and not a task that it spawns, unless that runs in [`Held::scope`].
    ///
    /// ```
    /// # use lockattr_runtime::{Locker, LockError, store::MemoryStore};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locker = Locker::new(MemoryStore::new());
    /// let request = locker.lock("account:7").reentrant(true);
    /// let outer = request.clone();
    /// let same = outer
    ///     .run(async |held| {
    ///         let again = request.acquire().await?;
    ///         Ok::<_, LockError>(again.token() == held.token())
    ///     })
    ///     .await??;
    /// assert!(same);
    /// # Ok(()) }
    /// ```
    pub fn reentrant(mut self, reentrant: bool) -> Self {
        self.options.reentrant = reentrant;
        self
    }

    /// What the record calls this holder. By default the key as it was written, or the attribute's template.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.options.label = Some(label.into());
        self
    }

    /// What it is called.
    pub(crate) fn locked(&self) -> Locked {
        self.keys.first().cloned().unwrap_or_else(|| Locked::plain(""))
    }

    /// Takes the lock. A future that is dropped before it is ready leaves nothing held.
    ///
    /// # Errors
    ///
    /// [`LockError::Busy`] when others held it for the whole wait, [`LockError::Store`] when the store failed,
    /// [`LockError::InvalidKey`] and [`LockError::InvalidOptions`] before the store is asked, and the others
    /// that [`LockError`] names.
    pub async fn acquire(self) -> Result<Guard, LockError> {
        let Self { locker, keys, options, place } = self;
        locker.enter(keys, options, place).await
    }

    /// Takes the lock if it is free: one attempt, whatever `wait` says. `None` when others hold it.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), without those for which [`LockError::is_busy`] is true.
    pub async fn try_acquire(self) -> Result<Option<Guard>, LockError> {
        match self.wait(Duration::ZERO).acquire().await {
            Ok(guard) => Ok(Some(guard)),
            Err(error) if error.is_busy() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the lock, runs `body` under it and gives it back: when the body ends, panics, or when this future
    /// is dropped. If the lock is lost the body is dropped at its next await point, unless
    /// [`on_lost`](Self::on_lost) says otherwise.
    ///
    /// Inside the body, asking for the same key again is [`LockError::WouldDeadlock`] at once, unless that request
    /// is [`reentrant`](Self::reentrant).
    ///
    /// ```
    /// # use lockattr_runtime::{Locker, LockError, store::MemoryStore};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locker = Locker::new(MemoryStore::new());
    /// let sum = locker.lock("sum").run(async |_held| 1 + 1).await?;
    /// assert_eq!(sum, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`LockError::Lost`] when the body was stopped. What the body itself
    /// returns is in the `Ok`. A release that fails is logged, and replaces nothing.
    pub async fn run<T>(self, body: impl AsyncFnOnce(Held) -> T) -> Result<T, LockError> {
        let mut guard = self.acquire().await?;
        let done = {
            let mut body = std::pin::pin!(body(guard.held()));
            std::future::poll_fn(|cx| guard.poll_body(body.as_mut(), cx)).await
        };
        // Its failure is logged where it happens.
        let _ = guard.release().await;
        done
    }
}
