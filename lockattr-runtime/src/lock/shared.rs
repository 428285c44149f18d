//! What the clones of a locker share: its store, its waiters, what it holds.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

use super::queue::Queues;
use super::renew::Renewals;
use crate::env::Env;
use crate::held::Tenure;
use crate::lease::{Holder, Lease, Released};
use crate::observe;
use crate::store::StoreError;
use crate::store::erased::ErasedStore;
use crate::time::Moment;

/// Longest time an attempt to give a lock back may take before it is tried again.
pub(crate) const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn ErasedStore>,
    pub(crate) env: Env,
    pub(crate) host: Arc<Holder>,
    pub(crate) queues: Arc<Queues>,
    pub(crate) renewals: Arc<Renewals>,
    pub(crate) closing: AtomicBool,
    pub(crate) closed: Notify,
    /// Releases and undos in the background whose first answer is not in yet.
    pub(crate) pending: AtomicUsize,
    /// Something ended: a tenure, or a pending release.
    pub(crate) settled: Notify,
    pub(crate) collected: AtomicU64,
    pub(crate) watching: AtomicBool,
    /// Ends the stream of hints with the locker.
    pub(crate) gone: Arc<Notify>,
    held: Mutex<BTreeMap<u64, Arc<Tenure>>>,
    next: AtomicU64,
}

impl Shared {
    pub(crate) fn new(store: Arc<dyn ErasedStore>, env: Env) -> Arc<Self> {
        let shared = Arc::new(Self {
            store,
            env,
            host: Arc::new(Holder::new(host_name(), std::process::id(), "")),
            queues: Arc::default(),
            renewals: Arc::default(),
            closing: AtomicBool::new(false),
            closed: Notify::new(),
            pending: AtomicUsize::new(0),
            settled: Notify::new(),
            collected: AtomicU64::new(0),
            watching: AtomicBool::new(false),
            gone: Arc::default(),
            held: Mutex::default(),
            next: AtomicU64::new(0),
        });
        super::shutdown::remember(&shared);
        shared
    }

    /// A number that no other tenure of this locker has.
    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Tenure>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports how many locks are held and how many tasks wait.
    pub(crate) fn tell_population(&self) {
        observe::population(self.store.name(), || (self.held().len(), self.queues.waiting()));
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Which store frames of this locker belong to.
    pub(crate) fn store_id(&self) -> usize {
        Arc::as_ptr(&self.store).addr()
    }

    /// Gives all of `leases` back, in one request where there is one lease. The answer is the worst of theirs.
    pub(crate) async fn release(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Released, StoreError> {
        let [lease] = leases else {
            let answers = self.store.release_many(leases, keep).await?;
            let worst = [Released::NotHeld, Released::AlreadyReleased];
            return Ok(worst.into_iter().find(|bad| answers.contains(bad)).unwrap_or(Released::Released));
        };
        self.store.release(lease, keep).await
    }

    /// Runs `work` for at most `limit`; `None` when that ran out.
    pub(crate) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let end = self.env.sleep_until(self.env.now() + limit);
        until(end, work.as_mut()).await
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("store", &self.store.name()).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // In a forked child the threads that may hold these locks are not there to let go of them.
        if !self.env.is_forked() {
            self.renewals.end();
            self.gone.notify_one();
        }
    }
}

/// Waits for `work`, or for `end`, whichever is first; `work` is looked at first.
///
/// Takes pinned futures: an `async fn` would keep each of them twice, once as its argument.
pub(crate) fn until<T>(
    mut end: impl Future<Output = ()> + Unpin,
    mut work: impl Future<Output = T> + Unpin,
) -> impl Future<Output = Option<T>> + Unpin {
    std::future::poll_fn(move |cx| {
        if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
            return Poll::Ready(Some(done));
        }
        Pin::new(&mut end).poll(cx).map(|()| None)
    })
}

/// Waits until one of the two is ready.
pub(crate) fn either(
    mut one: impl Future<Output = ()> + Unpin,
    mut other: impl Future<Output = ()> + Unpin,
) -> impl Future<Output = ()> + Unpin {
    std::future::poll_fn(move |cx| match Pin::new(&mut other).poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => Pin::new(&mut one).poll(cx),
    })
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// A way to a locker that does not keep it alive.
pub(crate) type WeakShared = Weak<Shared>;

/// The moment after which a record that an attempt sent at `sent` may have made is over.
pub(crate) fn over_at(sent: Moment, ttl: Duration, lock_delay: Duration) -> Moment {
    sent + ttl + lock_delay
}
