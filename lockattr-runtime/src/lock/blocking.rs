//! Locks for code that is not async: the keeper takes them, and the caller's thread waits for it.
//!
//! Invariant: what the keeper does for a caller runs in the caller's scope, so that it cannot wait for itself.

use std::future::Future;
use std::sync::mpsc;

use super::scope::{self, Frame};
use super::{Guard, LockBuilder, Locker};
use crate::error::{LockError, Locked};
use crate::held::Held;

/// Takes locks for code outside of async, see [`Locker::blocking`].
#[derive(Clone, Debug)]
pub struct Blocking {
    locker: Locker,
}

impl Locker {
    /// The same locker for code outside of async: a thread of a program without a runtime, a callback of a
    /// library, a command.
    ///
    /// Its methods block the thread until the lock is taken or given back. In a runtime call them only under
    /// `spawn_blocking`: elsewhere they keep the worker from all other tasks, and perhaps from the one that holds
    /// the lock. Dropping a [`Guard`] never blocks.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lockattr_runtime::{LockError, Locker, store::MemoryStore};
    ///
    /// fn main() -> Result<(), LockError> {
    ///     let locker = Locker::new(MemoryStore::new());
    ///     let locks = locker.blocking();
    ///
    ///     let guard = locks.acquire(locker.lock("invoice:7").wait(Duration::from_secs(5)))?;
    ///     guard.check()?;
    ///     locks.release(guard)?;
    ///
    ///     let sum = locks.run(locker.lock("sum"), |held| held.check().map(|()| 1 + 1))??;
    ///     assert_eq!(sum, 2);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn blocking(&self) -> Blocking {
        Blocking { locker: self.clone() }
    }
}

impl Blocking {
    /// Takes the lock that `request` describes, as [`LockBuilder::acquire`].
    ///
    /// # Errors
    ///
    /// As [`LockBuilder::acquire`], and [`LockError::Setup`] where waiting could never end: on the keeper's own
    /// thread, where stores run their callbacks, and with a simulated locker.
    pub fn acquire(&self, request: LockBuilder) -> Result<Guard, LockError> {
        self.wait_for(request.locked(), request.acquire())?
    }

    /// Takes the lock if it is free, as [`LockBuilder::try_acquire`]; `None` when others hold it.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), without those for which [`LockError::is_busy`] is true.
    pub fn try_acquire(&self, request: LockBuilder) -> Result<Option<Guard>, LockError> {
        self.wait_for(request.locked(), request.try_acquire())?
    }

    /// Gives a lock back and waits for the store's answer, as [`Guard::release`].
    ///
    /// # Errors
    ///
    /// As [`Guard::release`], and [`LockError::Setup`] as in [`acquire`](Self::acquire); the lock is then given
    /// back in the background.
    pub fn release(&self, guard: Guard) -> Result<(), LockError> {
        self.wait_for(guard.locked().clone(), guard.release())?
    }

    /// Takes the lock, runs `body` on this thread and gives the lock back, also when `body` panics.
    ///
    /// Nothing can stop a body that is not async: when the lock is lost it runs on, and only [`Held::check`]
    /// tells it. Inside, the same key is [`LockError::WouldDeadlock`] as in [`LockBuilder::run`].
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). A release that fails is logged, and replaces nothing.
    pub fn run<T>(&self, request: LockBuilder, body: impl FnOnce(Held) -> T) -> Result<T, LockError> {
        let guard = self.acquire(request)?;
        let held = guard.held();
        let done = Frame::new(held.clone()).scoped(|| body(held));
        // Its failure is logged where it happens.
        let _ = self.release(guard);
        Ok(done)
    }

    /// Runs `work` on the keeper, and waits for it.
    fn wait_for<T: Send + 'static>(
        &self,
        locked: Locked,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, LockError> {
        let env = &self.locker.shared.env;
        if env.is_forked() {
            return Err(LockError::Forked { locked });
        }
        env.may_block().map_err(|reason| LockError::Setup { reason: reason.to_owned() })?;
        let (done, answer) = mpsc::sync_channel(1);
        let work = scope::carried(work);
        env.spawn(Box::pin(async move {
            // The receiver waits below for as long as this runs.
            let _ = done.send(work.await);
        }));
        answer.recv().map_err(|_| LockError::Setup {
            reason: "the keeper thread has ended, so nothing can be waited for".to_owned(),
        })
    }
}
