//! A guard: holds locks, polls the body under them, gives them back.
//!
//! Invariants: the release is sent after renewal has stopped and after the body is gone; dropping only
//! enqueues; a body's own result is never replaced.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tracing::{Instrument as _, Span};

use super::scope::Frame;
use super::shared::{RELEASE_TIMEOUT, Shared, over_at};
use super::undo::{Pending, Return, hint};
use crate::error::{LockError, Locked, LossCause, Step};
use crate::held::{Body, Held, Tenure};
use crate::lease::{FencingToken, Released};
use crate::observe;
use crate::options::{LockOptions, OnLost};
use crate::store::{Feature, StoreError};
use crate::term::Standing;
use crate::time::Moment;

/// Holds a lock, or several as one, until it is released or dropped.
///
/// The keeper renews it meanwhile. Dropping it gives the lock back in the background, without blocking, in
/// any thread, with or without a runtime; [`Guard::release`] waits for the store's answer. A guard may move
/// to another task, and the lock is held there until the guard ends, whatever became of the task that took it:
///
/// ```
/// # use lockattr_runtime::{Locker, LockError, store::MemoryStore};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locker = Locker::new(MemoryStore::new());
/// let guard = locker.lock("invoice:7").acquire().await?;
/// let task = tokio::spawn(async move {
///     // … the work …
///     guard.release().await
/// });
/// assert!(locker.lock("invoice:7").try_acquire().await?.is_none());
/// task.await.expect("it does not panic")?;
/// # Ok(()) }
/// ```
///
/// A guard does not stop anything when the lock is lost: ask [`Guard::check`], or wait for
/// [`Guard::lost`]; [`LockBuilder::run`](crate::LockBuilder::run) and the attribute stop their body.
///
/// ```
/// # use lockattr_runtime::{Locker, LockError, store::MemoryStore};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locker = Locker::new(MemoryStore::new());
/// let guard = locker.lock("invoice:7").acquire().await?;
/// // … the work …
/// guard.check()?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[must_use = "the lock is given back when its guard is dropped"]
pub struct Guard {
    shared: Arc<Shared>,
    tenure: Arc<Tenure>,
    frame: Arc<Frame>,
    /// Its own body, if it shares the tenure of a guard around it.
    again: Option<Arc<Body>>,
    on_lost: OnLost,
    span: Span,
    done: bool,
}

impl Guard {
    pub(crate) fn new(shared: &Arc<Shared>, tenure: Tenure, options: &LockOptions) -> Self {
        let guard = Self::of(shared, Arc::new(tenure), None, options);
        shared.held().insert(guard.tenure.id, Arc::clone(&guard.tenure));
        shared.renewals.watch(shared, &guard.tenure);
        shared.tell_population();
        guard
    }

    /// One more guard of `tenure`; `None` when it is being given back.
    pub(crate) fn again(shared: &Arc<Shared>, tenure: &Arc<Tenure>, options: &LockOptions) -> Option<Self> {
        let body = tenure.enter_again()?;
        observe::entered_again(tenure, shared.store.name());
        Some(Self::of(shared, Arc::clone(tenure), Some(body), options))
    }

    fn of(
        shared: &Arc<Shared>,
        tenure: Arc<Tenure>,
        again: Option<Arc<Body>>,
        options: &LockOptions,
    ) -> Self {
        let frame = Frame::new(Held(Arc::clone(&tenure)));
        let span = observe::holding(&tenure, shared.store.name());
        let shared = Arc::clone(shared);
        Self { shared, tenure, frame, again, on_lost: options.on_lost, span, done: false }
    }

    pub(crate) fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// A handle for the code that runs under the lock.
    #[must_use]
    pub fn held(&self) -> Held {
        Held(Arc::clone(&self.tenure))
    }

    /// The fencing token, see [`Held::token`].
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.held().token()
    }

    /// The key, as the caller wrote it. For several keys, the first in byte order.
    #[must_use]
    pub fn key(&self) -> &str {
        self.tenure.locked().key()
    }

    /// What is locked, see [`Held::locked`].
    #[must_use]
    pub fn locked(&self) -> &Locked {
        self.tenure.locked()
    }

    /// How long the lock may still be believed without a renewal, see [`Held::remaining`].
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.held().remaining()
    }

    /// Whether the lock is held, see [`Held::is_held`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held().is_held()
    }

    /// Says whether the lock is held, for use with `?`, see [`Held::check`].
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] once the lock is lost.
    pub fn check(&self) -> Result<(), LockError> {
        self.held().check()
    }

    /// Waits until the lock is lost.
    pub async fn lost(&self) {
        self.held().lost().await;
    }

    /// Polls `body` under the lock.
    ///
    /// The deadline is checked first. With `on_lost = cancel` the answer is `Err` once the lock is lost;
    /// the caller then drops the body before it releases.
    pub(crate) fn poll_body<F: Future>(
        &mut self,
        body: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<F::Output, LockError>> {
        if self.shared.env.is_forked() {
            return Poll::Ready(Err(LockError::Forked { locked: self.tenure.locked().clone() }));
        }
        let polled = self.again.as_deref().unwrap_or(&self.tenure.body);
        polled.polled(self.shared.env.now(), cx.waker());
        if self.on_lost == OnLost::Cancel
            && let Standing::Lost(cause) = self.tenure.standing()
        {
            return Poll::Ready(Err(self.tenure.lost_error(cause)));
        }
        let _span = self.span.enter();
        self.frame.scoped(|| body.poll(cx)).map(Ok)
    }

    /// Gives the lock back and waits for the store's answer, at most 5 seconds; then the release goes on
    /// in the background. Dropping the future does not stop the release.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if the lock was lost before: others may have held it meanwhile.
    /// [`LockError::Store`] if the store did not confirm the release; it is tried again in the background
    /// until the lease is over.
    pub async fn release(mut self) -> Result<(), LockError> {
        self.done = true;
        let span = observe::releasing(&self.tenure, self.shared.store.name());
        Box::pin(self.give_back()).instrument(span).await
    }

    async fn give_back(&self) -> Result<(), LockError> {
        let Some(mut leaving) = Leaving::new(self) else {
            return match self.tenure.standing() {
                Standing::Lost(cause) => Err(self.tenure.lost_error(cause)),
                Standing::Held | Standing::Closed => Ok(()),
            };
        };
        if let Standing::Lost(cause) = leaving.before {
            return Err(self.tenure.lost_error(cause));
        }
        if leaving.keeps_by_renewing() {
            return Ok(());
        }
        renewal_is_idle(&self.tenure).await;
        let keep = leaving.keep();
        let work = self.shared.release(&self.tenure.leases, keep);
        let failure = match self.shared.within(RELEASE_TIMEOUT, work).await {
            Some(Ok(answer)) => {
                leaving.finished(keep);
                if answer == Released::Released {
                    return Ok(());
                }
                // Nobody had given it back before, so another ended it, and nobody has said so yet.
                observe::lost(&self.tenure, LossCause::NotOurs);
                return Err(self.tenure.lost_error(LossCause::NotOurs));
            }
            Some(Err(error)) => error,
            None => StoreError::unknown(format!("no answer within {RELEASE_TIMEOUT:?}")),
        };
        observe::release_failed(self.tenure.locked(), self.shared.store.name(), Some(&failure));
        Err(LockError::Store {
            locked: self.tenure.locked().clone(),
            step: Step::Release,
            store: self.shared.store.name(),
            source: Arc::new(failure),
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.done && !self.shared.env.is_forked() {
            drop(Leaving::new(self));
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("locked", self.locked()).field("token", &self.token()).finish()
    }
}

/// A tenure on its way out: whatever becomes of it, the lease is given back in the background unless the
/// store has confirmed its release.
struct Leaving {
    shared: Arc<Shared>,
    tenure: Arc<Tenure>,
    entered: Moment,
    /// How it stood when the guard gave it up.
    before: Standing,
    /// Has a shutdown wait for the release, from before the tenure is off the lists.
    pending: Option<Pending>,
    done: bool,
}

impl Leaving {
    /// `None` when other guards share the tenure: the last of them gives it back.
    fn new(guard: &Guard) -> Option<Self> {
        let shared = Arc::clone(&guard.shared);
        let tenure = Arc::clone(&guard.tenure);
        if !tenure.leave(guard.again.as_ref()) {
            return None;
        }
        let pending = Some(Pending::new(&shared));
        let entered = tenure.entered();
        let waits = tenure.min_hold.is_some_and(|least| shared.env.now() < entered + least);
        let before = if waits && !shared.store.supports(Feature::Keep) {
            tenure.leave_to_keeper()
        } else {
            tenure.close()
        };
        if tenure.last_standing() != Standing::Held {
            leave(&shared, &tenure);
        }
        Some(Self { shared, tenure, entered, before, pending, done: false })
    }

    /// Whether the keeper has to renew it until its minimum hold is over, since the store cannot keep it.
    fn keeps_by_renewing(&self) -> bool {
        self.tenure.last_standing() == Standing::Held
    }

    /// What to tell the store about the minimum hold. After a loss there is none.
    fn keep(&self) -> Option<Duration> {
        self.tenure.min_hold.filter(|_| !matches!(self.before, Standing::Lost(_)))
    }

    /// The store has confirmed the release.
    fn finished(&mut self, keep: Option<Duration>) {
        self.done = true;
        let held_for = self.shared.env.now().since(self.entered);
        observe::released(&self.tenure, self.shared.store.name(), held_for, keep);
        if keep.is_none_or(|keep| keep <= held_for) {
            hint(&self.shared, &self.tenure.leases);
        }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take().filter(|_| !self.done && !self.shared.env.is_forked()) else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let tenure = Arc::clone(&self.tenure);
        let kept_until =
            self.keeps_by_renewing().then(|| self.entered + self.tenure.min_hold.unwrap_or_default());
        let keep = self.keep().filter(|_| kept_until.is_none());
        shared.env.clone().spawn(Box::pin(async move {
            if let Some(until) = kept_until {
                shared.env.sleep_until(until).await;
                tenure.close();
                leave(&shared, &tenure);
            }
            renewal_is_idle(&tenure).await;
            let lease = &tenure.leases[0];
            let give = Return {
                leases: Arc::clone(&tenure.leases),
                locked: tenure.locked().clone(),
                keep,
                over_at: over_at(shared.env.now(), lease.ttl, lease.lock_delay),
                in_doubt: false,
            };
            give.run(&shared, pending).await;
        }));
    }
}

/// Takes a tenure off the locker's lists.
fn leave(shared: &Shared, tenure: &Tenure) {
    shared.renewals.forget(tenure);
    shared.held().remove(&tenure.id);
    shared.settled.notify_waiters();
    shared.tell_population();
}

async fn renewal_is_idle(tenure: &Tenure) {
    loop {
        let idle = tenure.renewal.idle.notified();
        if !*tenure.renewal.running.lock().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        idle.await;
    }
}
