//! A held lock: the state that guard, body and keeper share, and the handle for the body.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::env::Env;
use crate::error::{LockError, Locked, LossCause};
use crate::lease::{FencingToken, Lease};
use crate::observe;
use crate::term::{Standing, Term};
use crate::time::Moment;

mod body;
pub(crate) use body::Body;

/// One acquisition from its grant to its end. Several keys are one tenure: losing one is losing all.
pub(crate) struct Tenure {
    pub(crate) id: u64,
    /// Which locker's store it is in.
    pub(crate) store: usize,
    /// Where it was asked for.
    pub(crate) place: &'static Location<'static>,
    pub(crate) min_hold: Option<Duration>,
    pub(crate) names: Vec<Locked>,
    pub(crate) leases: Arc<[Lease]>,
    pub(crate) tokens: Vec<FencingToken>,
    term: Mutex<Term>,
    pub(crate) env: Env,
    /// When the keeper looks at it next, so that it can be taken off the list.
    pub(crate) due: Mutex<Option<Moment>>,
    pub(crate) renewal: Renewal,
    pub(crate) body: Body,
    /// The bodies that entered again, under guards of their own.
    again: Mutex<Vec<Arc<Body>>>,
    /// How many guards share it. The last one to end gives it back.
    guards: AtomicUsize,
    ended: Notify,
    /// Its guard is gone, and the keeper keeps it for the rest of its minimum hold.
    left: AtomicBool,
}

/// Whether a renewal is on its way: it is stopped and awaited before the release is sent.
#[derive(Default)]
pub(crate) struct Renewal {
    pub(crate) running: Mutex<bool>,
    pub(crate) stop: Notify,
    pub(crate) idle: Notify,
}

/// What a request says of the tenure that it asks for.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) id: u64,
    pub(crate) store: usize,
    pub(crate) place: &'static Location<'static>,
    pub(crate) min_hold: Option<Duration>,
}

impl Tenure {
    pub(crate) fn new(
        origin: Origin,
        names: Vec<Locked>,
        leases: Arc<[Lease]>,
        tokens: Vec<FencingToken>,
        term: Term,
        env: Env,
    ) -> Self {
        let Origin { id, store, place, min_hold } = origin;
        Self {
            id,
            store,
            place,
            min_hold,
            names,
            leases,
            tokens,
            term: Mutex::new(term),
            env,
            due: Mutex::default(),
            renewal: Renewal::default(),
            body: Body::default(),
            again: Mutex::default(),
            guards: AtomicUsize::new(1),
            ended: Notify::new(),
            left: AtomicBool::new(false),
        }
    }

    /// Does one step of the term. If that ends it, everybody is told.
    pub(crate) fn step<T>(&self, step: impl FnOnce(&mut Term) -> T) -> T {
        let (done, before, after) = {
            let mut term = self.term();
            let before = term.standing();
            let done = step(&mut term);
            (done, before, term.standing())
        };
        if after != before {
            if let Standing::Lost(cause) = after {
                observe::lost(self, cause);
            }
            self.ended.notify_waiters();
            self.renewal.stop.notify_waiters();
            self.wake_bodies();
        }
        done
    }

    /// One more guard shares it, for a body of its own; `None` when the last one has ended.
    pub(crate) fn enter_again(&self) -> Option<Arc<Body>> {
        let more = |guards: usize| (guards > 0).then(|| guards + 1);
        self.guards.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        let body = Arc::new(Body::default());
        self.again().push(Arc::clone(&body));
        Some(body)
    }

    /// A guard ends, with its `body` if it had entered again. Whether it was the last one.
    pub(crate) fn leave(&self, body: Option<&Arc<Body>>) -> bool {
        match body {
            Some(body) => {
                body.is_gone();
                self.again().retain(|other| !Arc::ptr_eq(other, body));
            }
            None => self.body.is_gone(),
        }
        self.guards.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn wake_bodies(&self) {
        self.body.wake();
        let again = self.again().clone();
        for body in again {
            body.wake();
        }
    }

    /// When one of its bodies was polled last; `None` when there is none.
    pub(crate) fn last_polled(&self) -> Option<Moment> {
        let again = self.again().iter().filter_map(|body| body.last_polled()).max();
        self.body.last_polled().max(again)
    }

    fn again(&self) -> MutexGuard<'_, Vec<Arc<Body>>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn entered(&self) -> Moment {
        self.term().entered()
    }

    fn term(&self) -> MutexGuard<'_, Term> {
        // Every step of the term leaves it whole.
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is called: its first key.
    pub(crate) fn locked(&self) -> &Locked {
        &self.names[0]
    }

    /// How it stands now.
    pub(crate) fn standing(&self) -> Standing {
        if self.env.is_forked() {
            return Standing::Closed;
        }
        let now = self.env.now();
        self.step(|term| term.check(now))
    }

    /// How it stood when it was last looked at.
    pub(crate) fn last_standing(&self) -> Standing {
        self.term().standing()
    }

    /// It is being given back: no renewal starts any more. Returns how it stood until then.
    pub(crate) fn close(&self) -> Standing {
        let now = self.env.now();
        self.step(|term| term.close(now))
    }

    /// Its guard goes, and the keeper is to renew it still. Returns how it stood until then.
    pub(crate) fn leave_to_keeper(&self) -> Standing {
        let before = self.standing();
        self.left.store(true, Ordering::Release);
        self.ended.notify_waiters();
        before
    }

    /// How it stands now for those who run under it.
    pub(crate) fn standing_for_body(&self) -> Standing {
        match self.standing() {
            Standing::Held if self.left.load(Ordering::Acquire) => Standing::Closed,
            standing => standing,
        }
    }

    pub(crate) fn lost_error(&self, cause: LossCause) -> LockError {
        let held_for = self.env.now().since(self.entered());
        LockError::Lost { locked: self.locked().clone(), cause, held_for }
    }
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenure").field("locked", self.locked()).finish_non_exhaustive()
    }
}

/// A handle on a held lock, for the code that runs under it.
///
/// It is owned, cheap to clone, and may go to other tasks. It does not keep the lock: when the guard or the
/// body ends, the handle says that it is no longer held.
///
/// ```
/// # use lockattr_runtime::{Locker, LockError, store::MemoryStore};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locker = Locker::new(MemoryStore::new());
/// let written = locker
///     .lock("report")
///     .run(async |held| {
///         held.check()?; // before a step that must not be done twice
///         Ok::<_, LockError>(held.token().get())
///     })
///     .await??;
/// assert!(written > 0);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Held(pub(crate) Arc<Tenure>);

impl Held {
    /// The fencing token. For several keys it is the largest of theirs, which grows like each of them;
    /// [`Held::token_of`] gives the one of a key.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.0.tokens.iter().copied().max().unwrap_or(FencingToken::new(0))
    }

    /// The fencing token of one of the keys, as the caller wrote it; `None` for a key that is not among them.
    #[must_use]
    pub fn token_of(&self, key: &str) -> Option<FencingToken> {
        let index = self.0.names.iter().position(|name| name.key() == key)?;
        self.0.tokens.get(index).copied()
    }

    /// What is locked. For several keys, the first in byte order.
    #[must_use]
    pub fn locked(&self) -> &Locked {
        self.0.locked()
    }

    /// The key, as the caller wrote it. For several keys, the first in byte order.
    #[must_use]
    pub fn key(&self) -> &str {
        self.locked().key()
    }

    /// All keys, in byte order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(Locked::key)
    }

    /// What is locked, in the order of the keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Locked> {
        self.0.names.iter()
    }

    /// How long the lock may still be believed without a renewal; zero once it is lost or given back.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.is_held() {
            self.0.env.now().until(self.0.step(|term| term.stop_at()))
        } else {
            Duration::ZERO
        }
    }

    /// Whether the lock is held: by this machine's clock, without asking the store.
    ///
    /// Between this answer and what is done with it the process may be paused. Only a resource that checks
    /// the [fencing token](Held::token) is safe from that.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.standing_for_body() == Standing::Held
    }

    /// Like [`Held::is_held`], for use with `?` in loops and before steps that must not be done twice.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] once the lock is lost, or was given back.
    pub fn check(&self) -> Result<(), LockError> {
        match self.0.standing_for_body() {
            Standing::Held => Ok(()),
            Standing::Lost(cause) => Err(self.0.lost_error(cause)),
            Standing::Closed => Err(self.0.lost_error(LossCause::GivenBack)),
        }
    }

    /// Waits until the lock is lost or given back.
    pub async fn lost(&self) {
        loop {
            let ended = self.0.ended.notified();
            if !self.is_held() {
                return;
            }
            ended.await;
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("locked", self.locked()).field("token", &self.token()).finish()
    }
}
