//! Which keys the body that is being polled holds, so that it cannot wait for itself.
//!
//! Invariant: the scope is the body, not the thread: it is set while the body is polled and put back
//! after, also when the poll panics. Spawned tasks do not inherit it.

use std::cell::RefCell;
use std::sync::Arc;

use crate::error::Locked;
use crate::held::{Held, Tenure};
use crate::term::Standing;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Frame>>> = const { RefCell::new(None) };
}

/// What one body holds, and the body around it.
#[derive(Debug)]
pub(crate) struct Frame {
    held: Held,
    outer: Option<Arc<Self>>,
}

impl Frame {
    /// A frame inside the body that is being polled now.
    pub(crate) fn new(held: Held) -> Arc<Self> {
        Arc::new(Self { held, outer: running() })
    }

    /// Runs `poll` with this frame as the current one.
    pub(crate) fn scoped<T>(self: &Arc<Self>, poll: impl FnOnce() -> T) -> T {
        struct PutBack(Option<Arc<Frame>>);
        impl Drop for PutBack {
            fn drop(&mut self) {
                CURRENT.with_borrow_mut(|current| *current = self.0.take());
            }
        }
        let before = CURRENT.with_borrow_mut(|current| current.replace(Arc::clone(self)));
        let _put_back = PutBack(before);
        poll()
    }
}

/// What the body that is being polled holds `key` of this store by, and as which of its keys.
///
/// A lock that was given back is not held: a task that was handed a scope may outlive it.
pub(crate) fn holder_of(store: usize, key: &str) -> Option<(Arc<Tenure>, Locked)> {
    frames().find_map(|frame| {
        let tenure = &frame.held.0;
        if tenure.store != store || tenure.standing_for_body() == Standing::Closed {
            return None;
        }
        let index = tenure.leases.iter().position(|lease| &*lease.key == key)?;
        Some((Arc::clone(tenure), tenure.names.get(index)?.clone()))
    })
}

/// The lock of the innermost locked body that is running: the attribute's, or that of
/// [`LockBuilder::run`](crate::LockBuilder::run). `None` outside of any.
///
/// It is for code that is called under a lock and does not get the lease as an argument. It follows calls and
/// awaits, not threads: a spawned task is not the body, and finds `None`. A [`Guard`](crate::Guard) has no body,
/// so it is not seen here.
///
/// ```
/// use lockattr_runtime::{LockError, Locker, current, store::MemoryStore};
///
/// async fn write() -> u64 {
///     let held = current().expect("it is called under a lock");
///     held.token().get()
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
/// let locker = Locker::new(MemoryStore::new());
/// assert!(locker.lock("file:a").run(async |_| write().await).await? > 0);
/// assert!(current().is_none());
/// # Ok(()) }
/// ```
#[must_use]
pub fn current() -> Option<Held> {
    running().map(|frame| frame.held.clone())
}

/// Whether the body that is running, or one around it, holds the lock on `key`, and has not lost it.
///
/// The key is as it was written, without a locker's prefix; of two lockers that were asked for the same key it
/// does not matter which. See [`current`] for which code is the body.
#[must_use]
pub fn holds(key: &str) -> bool {
    frames().any(|frame| frame.held.keys().any(|held| held == key) && frame.held.is_held())
}

/// The locks of the body that is running and of those around it, innermost first.
pub(crate) fn all() -> impl Iterator<Item = Held> {
    frames().map(|frame| frame.held.clone())
}

/// Lets other tasks count as the body that holds a lock, see [`Held::scope`].
#[derive(Clone, Debug)]
pub struct Scope(Held);

impl Held {
    /// The scope of this lock, for a task that works for its body: what runs in it may enter again where
    /// [`reentrant`](crate::LockBuilder::reentrant) is set, finds the lock as [`current`], and is refused where the
    /// body would be.
    ///
    /// A spawned task inherits nothing by itself. Like a [`Held`], a scope does not keep the lock: when it has been
    /// given back, what runs in the scope takes it anew. A guard that has entered again keeps it.
    ///
    /// ```
    /// # use lockattr_runtime::{Locker, LockError, store::MemoryStore};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LockError> {
    /// let locker = Locker::new(MemoryStore::new());
    /// let again = locker.lock("k").reentrant(true);
    /// locker
    ///     .lock("k")
    ///     .run(async |held| {
    ///         let inside = again.clone().try_acquire();
    ///         let task = tokio::spawn(held.scope().run(inside));
    ///         assert!(task.await.expect("it does not panic")?.is_some());
    ///         let outside = tokio::spawn(again.try_acquire());
    ///         assert!(outside.await.expect("it does not panic")?.is_none());
    ///         Ok::<_, LockError>(())
    ///     })
    ///     .await?
    /// # }
    /// ```
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope(self.clone())
    }
}

impl Scope {
    /// Runs `work` in the scope. If another scope or body runs it, it is inside of that one too.
    pub fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> + use<F> {
        // Where it is polled first is where it runs; where it was made may be the body that spawns it.
        let mut frame = None;
        let mut work = Box::pin(work);
        std::future::poll_fn(move |cx| {
            let frame = frame.get_or_insert_with(|| Frame::new(self.0.clone()));
            frame.scoped(|| work.as_mut().poll(cx))
        })
    }
}

/// `work` inside the body that is being polled now, wherever it runs.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let frame = running();
    let mut work = Box::pin(work);
    std::future::poll_fn(move |cx| match &frame {
        Some(frame) => frame.scoped(|| work.as_mut().poll(cx)),
        None => work.as_mut().poll(cx),
    })
}

fn frames() -> impl Iterator<Item = Arc<Frame>> {
    std::iter::successors(running(), |frame| frame.outer.clone())
}

fn running() -> Option<Arc<Frame>> {
    CURRENT.with_borrow(Clone::clone)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::env::{Env, Machine};
    use crate::held::Origin;
    use crate::lease::{FencingToken, Lease, Owner};
    use crate::term::{Term, Terms};

    fn frame(key: &str) -> Arc<Frame> {
        let env: Env = Arc::new(Machine::new());
        let (now, ttl) = (env.now(), Duration::from_secs(60));
        let term = Term::granted(Terms { ttl, renews: true, max_hold: None }, now, now, ttl, 1);
        let leases = [Lease::new(key, Owner::random(), ttl)].into();
        let tokens = vec![FencingToken::new(1)];
        let origin = Origin { id: 1, store: 1, place: std::panic::Location::caller(), min_hold: None };
        Frame::new(Held(Arc::new(Tenure::new(origin, vec![Locked::plain(key)], leases, tokens, term, env))))
    }

    #[test]
    fn frames_nest_and_end_with_the_poll() {
        frame("a").scoped(|| {
            frame("b").scoped(|| {
                assert!(holder_of(1, "a").is_some() && holder_of(1, "b").is_some());
                assert!(holder_of(2, "a").is_none());
            });
            assert!(holder_of(1, "b").is_none());
        });
        assert!(holder_of(1, "a").is_none());
    }

    #[test]
    fn a_panic_puts_the_outer_frame_back() {
        frame("a").scoped(|| {
            let inner = frame("b");
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                inner.scoped(|| panic!("in the body"))
            }));
            assert!(panicked.is_err());
            assert!(holder_of(1, "a").is_some() && holder_of(1, "b").is_none());
        });
    }
}
