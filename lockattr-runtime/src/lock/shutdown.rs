//! Ending in order: no new locks, time for the bodies, nothing deleted under them, pending releases sent.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::Locker;
use super::shared::{RELEASE_TIMEOUT, Shared, either};
use crate::error::LossCause;
use crate::held::Held;

static LOCKERS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Puts a new locker on the list of the process.
pub(crate) fn remember(shared: &Arc<Shared>) {
    let mut lockers = LOCKERS.lock().unwrap_or_else(PoisonError::into_inner);
    lockers.retain(|locker| locker.strong_count() > 0);
    lockers.push(Arc::downgrade(shared));
}

/// Shuts every locker of the process down, see [`Locker::shutdown`]. Returns what is still held.
///
/// Call it when the process is asked to end, before the runtime and the pools go:
///
/// ```
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let still_held = lockattr_runtime::shutdown(Duration::from_secs(10)).await;
/// for held in still_held {
///     eprintln!("{} is still held", held.locked());
/// }
/// # }
/// ```
pub async fn shutdown(grace: Duration) -> Vec<Held> {
    let lockers: Vec<Arc<Shared>> = {
        let lockers = LOCKERS.lock().unwrap_or_else(PoisonError::into_inner);
        lockers.iter().filter_map(Weak::upgrade).filter(|shared| !shared.env.is_forked()).collect()
    };
    for shared in &lockers {
        close(shared);
    }
    let mut still_held = Vec::new();
    let mut left = grace;
    for shared in &lockers {
        let started = shared.env.now();
        still_held.extend(drain(shared, left).await);
        left = left.saturating_sub(shared.env.now().since(started));
    }
    still_held
}

impl Locker {
    /// Takes no new locks and waits up to `grace` for the held ones to be given back.
    ///
    /// From now on new requests and those that wait get [`LockError::ShuttingDown`](crate::LockError::ShuttingDown).
    /// Bodies run on. What is still held after `grace` is no longer renewed, but never deleted: it stays
    /// locked until its lease runs out, and its body is stopped before that, as for any loss. It is returned.
    /// Releases that are under way are waited for, up to 5 seconds more.
    pub async fn shutdown(&self, grace: Duration) -> Vec<Held> {
        if self.shared.env.is_forked() {
            // What it holds is its parent's, and nothing here would end the waiting.
            return Vec::new();
        }
        close(&self.shared);
        drain(&self.shared, grace).await
    }
}

fn close(shared: &Shared) {
    shared.closing.store(true, Ordering::Release);
    shared.closed.notify_waiters();
}

async fn drain(shared: &Shared, grace: Duration) -> Vec<Held> {
    settle(shared, grace, || shared.held().is_empty()).await;
    let still_held: Vec<_> = shared.held().values().map(|tenure| Held(Arc::clone(tenure))).collect();
    for held in &still_held {
        held.0.step(|term| term.stop_renewing(LossCause::ShutDown));
    }
    settle(shared, RELEASE_TIMEOUT, || shared.pending.load(Ordering::Acquire) == 0).await;
    still_held
}

/// Waits for `done`, for at most `limit`.
async fn settle(shared: &Shared, limit: Duration, done: impl Fn() -> bool) {
    let end = shared.env.now() + limit;
    loop {
        let changed = shared.settled.notified();
        if done() || shared.env.now() >= end {
            return;
        }
        either(pin!(changed), shared.env.sleep_until(end)).await;
    }
}
