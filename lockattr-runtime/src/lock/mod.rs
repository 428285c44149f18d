//! Lockers: waiting, renewal, loss and release above any store.

mod acquire;
mod admin;
mod blocking;
mod builder;
mod claim;
mod collect;
mod guard;
mod many;
#[cfg(test)]
mod model;
mod pursuit;
mod queue;
mod renew;
mod retry;
mod scope;
mod shared;
mod shutdown;
mod undo;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use blocking::Blocking;
pub use builder::LockBuilder;
pub use guard::Guard;
pub(crate) use scope::all as held_by_body;
pub use scope::{Scope, current, holds};
#[cfg(feature = "testing")]
pub(crate) use shared::either;
pub use shutdown::shutdown;

use crate::env::{Env, Machine};
use crate::error::{LockError, Locked, Step};
use crate::held::Held;
use crate::key;
use crate::store::erased::ErasedStore;
use crate::store::{Audit, Level, Store};
use shared::Shared;

#[cfg(all(test, feature = "testing"))]
mod tests;

/// Longest prefix, in bytes.
const LONGEST_PREFIX: usize = 128;
/// Most tasks of one process that may wait in one locker.
const MOST_WAITERS: usize = 1_000_000;

/// Takes locks in one store.
///
/// Clones are cheap and share everything: one locker a process and store is the rule. Its waiters queue in
/// order and only the first of a key asks the store.
///
/// ```
/// use std::time::Duration;
/// use lockattr_runtime::{Locker, LockError};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locker = Locker::connect("memory:").await?;
/// let guard = locker.lock("report").expires(Duration::from_secs(30)).wait(Duration::from_secs(5)).acquire().await?;
/// // … the work …
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Locker {
    pub(crate) shared: Arc<Shared>,
    prefix: Arc<str>,
    lock_delay: Duration,
    max_waiters: usize,
}

impl Locker {
    /// A locker on `store`. Nothing is sent yet.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::on(Arc::new(store), Arc::new(Machine::new()))
    }

    /// Opens the store that `url` names and reads its configuration; what is below the best is logged as a
    /// warning.
    ///
    /// `memory:` is a store of its own in this process. `sqlite:locks.db` and `sqlite:///var/lib/app/locks.db`
    /// are a file for all processes of this machine, with the feature `sqlite`. `redis://user:password@host:6379/0`
    /// is a server, with the feature `redis`; `rediss://…` is one over TLS, with `redis-tls`.
    /// `redis://user:password@host:6379/0` is a Redis or Valkey server, with the feature `redis`; `rediss:` is the
    /// same over TLS, with `redis-tls`, and `redis+unix:///run/redis.sock` a socket.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] for a URL that is wrong, unknown, or of a store whose feature is off, with the list
    /// of those that are known. [`LockError::Store`] when the store cannot be opened or reached. Neither ever
    /// shows a password.
    pub async fn connect(url: &str) -> Result<Self, LockError> {
        let locker = Self::on(crate::store::connect(url).await?, Arc::new(Machine::new()));
        for finding in locker.audit().await?.findings {
            let store = locker.shared.store.name();
            if finding.level < Level::P2 {
                tracing::warn!(store, level = ?finding.level, "{}", finding.text);
            } else {
                tracing::debug!(store, "{}", finding.text);
            }
        }
        Ok(locker)
    }

    pub(crate) fn on(store: Arc<dyn ErasedStore>, env: Env) -> Self {
        let prefix = Arc::from(store.default_prefix());
        let shared = Shared::new(store, env);
        Self { shared, prefix, lock_delay: Duration::ZERO, max_waiters: MOST_WAITERS }
    }

    /// Puts `prefix` before every key, instead of the store's default; it may be empty. Programs meet when
    /// prefix and key are the same.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] for one of more than 128 bytes, or with control characters.
    pub fn prefix(mut self, prefix: &str) -> Result<Self, LockError> {
        if prefix.len() > LONGEST_PREFIX {
            return Err(LockError::Setup {
                reason: format!("the prefix has {} bytes, and {LONGEST_PREFIX} is the most", prefix.len()),
            });
        }
        if prefix.chars().any(char::is_control) {
            return Err(LockError::Setup { reason: "the prefix has a control character".to_owned() });
        }
        self.prefix = Arc::from(prefix);
        Ok(self)
    }

    /// How much longer than its expiry another's lease that was not released keeps ours out. Zero by default;
    /// set it where a fail-over may change the store's clock (250 ms), or to give effects of a dead holder that
    /// are still on their way time to arrive.
    #[must_use]
    pub fn lock_delay(mut self, delay: Duration) -> Self {
        self.lock_delay = delay;
        self
    }

    /// Most tasks of this process that may wait for locks of this locker. 1,000,000 by default; one more gets
    /// [`LockError::QueueFull`].
    #[must_use]
    pub fn max_waiters(mut self, most: usize) -> Self {
        self.max_waiters = most;
        self
    }

    /// Starts a request for `key`, used as it is: 1 byte to 64 KiB, no control characters.
    #[must_use = "a request does nothing until it is awaited with `acquire`, `try_acquire` or `run`"]
    #[track_caller]
    pub fn lock(&self, key: impl AsRef<str>) -> LockBuilder {
        LockBuilder::new(self.clone(), vec![Locked::plain(key.as_ref())])
    }

    /// Starts a request for several keys as one: all or none, at most 64, in any order, duplicates once.
    #[must_use = "a request does nothing until it is awaited with `acquire`, `try_acquire` or `run`"]
    #[track_caller]
    pub fn lock_many<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> LockBuilder {
        LockBuilder::new(self.clone(), keys.into_iter().map(|key| Locked::plain(key.as_ref())).collect())
    }

    /// What this locker holds now.
    #[must_use]
    pub fn held(&self) -> Vec<Held> {
        self.shared.held().values().map(|tenure| Held(Arc::clone(tenure))).collect()
    }

    /// Reads what the store's configuration guarantees.
    ///
    /// # Errors
    ///
    /// [`LockError::Store`] when the store cannot be asked.
    pub async fn audit(&self) -> Result<Audit, LockError> {
        self.shared
            .store
            .audit()
            .await
            .map_err(|error| self.store_error("the store's configuration", Step::Audit, error))
    }

    /// Refuses to go on with a store whose configuration reaches less than `level`.
    ///
    /// ```
    /// # use lockattr_runtime::{Locker, LockError, store::Level};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locker = Locker::connect("memory:").await?.require(Level::P2).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] with the findings when it is below, [`LockError::Store`] when it cannot be asked.
    pub async fn require(self, level: Level) -> Result<Self, LockError> {
        let audit = self.audit().await?;
        if audit.level >= level {
            return Ok(self);
        }
        let store = self.shared.store.name();
        let findings: Vec<_> =
            audit.findings.into_iter().filter(|f| f.level < level).map(|f| f.text).collect();
        Err(LockError::Setup {
            reason: format!(
                "{level:?} is required and the {store} store reaches {:?}: {}",
                audit.level,
                findings.join("; ")
            ),
        })
    }

    /// The key as the store has it.
    fn store_key(&self, key: &str) -> Arc<str> {
        let canonical = key::canonical(key);
        if self.prefix.is_empty() {
            Arc::from(canonical)
        } else {
            Arc::from(format!("{}{canonical}", self.prefix))
        }
    }

    fn store_error(&self, what: &str, step: Step, source: crate::store::StoreError) -> LockError {
        let locked = Locked::plain(what);
        LockError::Store { locked, step, store: self.shared.store.name(), source: Arc::new(source) }
    }
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker")
            .field("store", &self.shared.store.name())
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
