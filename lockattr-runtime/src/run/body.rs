//! From the keys to the end of the body: enter, hold, release.
//!
//! Invariant: a guard exists before the body is first polled, and the body is gone before the guard is
//! released.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::Instrument as _;

use super::alone::Alone;
use super::keys::Keys;
use super::options::Options;
use crate::error::{LockError, Locked};
use crate::held::Held;
use crate::lock::{Guard, Locker};
use crate::registry;

/// Where an attribute stands in the user's code.
#[derive(Debug)]
pub struct Site {
    /// The path of the locked function.
    pub function: &'static str,
}

/// Takes the locks: all of `keys`, in `locker` or the installed one.
///
/// # Errors
///
/// What the keys, the options or the locker refuse; see [`LockError`].
#[track_caller]
pub fn enter(
    site: &'static Site,
    locker: Option<Locker>,
    keys: Keys,
    options: Options,
) -> impl Future<Output = Result<Guard, LockError>> + Send + Sync {
    entered(site, locker, keys, options, Location::caller())
}

async fn entered(
    site: &'static Site,
    locker: Option<Locker>,
    keys: Keys,
    options: Options,
    place: &'static Location<'static>,
) -> Result<Guard, LockError> {
    let keys = keys.checked()?;
    let options = options.checked(&keys)?;
    let locker = match locker {
        Some(locker) => locker,
        None => registry::installed(|| keys.first().cloned().unwrap_or_else(|| Locked::plain("")))?,
    };
    let span = tracing::debug_span!("lock", function = site.function);
    Alone::new(async move { locker.enter(keys, options, place).await }.instrument(span)).await
}

/// Whether `error` says that the lock is in use.
#[must_use]
pub fn is_busy(error: &LockError) -> bool {
    error.is_busy()
}

/// The handle that `lease = name` binds.
#[must_use]
pub fn held(guard: &Guard) -> Held {
    guard.held()
}

/// Polls the body under its lock; gives [`LockError::Lost`] when the lock is lost and the body is to stop.
pub fn body<'a, F: Future>(guard: &'a mut Guard, body: Pin<&'a mut F>) -> Body<'a, F> {
    Body { guard, body }
}

/// See [`body`].
pub struct Body<'a, F> {
    guard: &'a mut Guard,
    body: Pin<&'a mut F>,
}

impl<F> fmt::Debug for Body<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl<F: Future> Future for Body<'_, F> {
    type Output = Result<F::Output, LockError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.guard.poll_body(this.body.as_mut(), cx)
    }
}

/// Gives the locks back and waits for the store's answer.
pub async fn release(guard: Guard) {
    // The body has its result; what went wrong here is an event of the core and ends with the lease.
    let _ = Alone::new(guard.release()).await;
}

/// Starts to give the locks back, in the background.
pub fn detach(guard: Guard) {
    drop(guard);
}
