//! Giving leases back in the background, until they are gone or over by themselves.
//!
//! Invariant: it never inherits the caller's cancellation, runtime or deadline.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::retry::full_jitter;
use super::shared::{RELEASE_TIMEOUT, Shared};
use crate::error::Locked;
use crate::lease::{Lease, Released};
use crate::observe;
use crate::time::Moment;

/// Leases to give back.
pub(crate) struct Return {
    pub(crate) leases: Arc<[Lease]>,
    pub(crate) locked: Locked,
    pub(crate) keep: Option<Duration>,
    /// When the store has forgotten them anyway.
    pub(crate) over_at: Moment,
    /// Whether they may not have arrived yet: then "not held" is no reason to stop.
    pub(crate) in_doubt: bool,
}

/// Has a shutdown wait until it is dropped: for the first answer to a release, or for the end of a request.
pub(crate) struct Pending(Arc<Shared>);

impl Pending {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        shared.pending.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(shared))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.0.env.is_forked() {
            return;
        }
        self.0.pending.fetch_sub(1, Ordering::AcqRel);
        self.0.settled.notify_waiters();
    }
}

impl Return {
    /// Gives them back in the background. Never blocks; does nothing in a forked child.
    pub(crate) fn start(self, shared: &Arc<Shared>) {
        if shared.env.is_forked() {
            return;
        }
        let pending = Pending::new(shared);
        let shared = Arc::clone(shared);
        shared.env.clone().spawn(Box::pin(async move { self.run(&shared, pending).await }));
    }

    /// Gives them back, here and now.
    pub(crate) async fn run(self, shared: &Arc<Shared>, pending: Pending) {
        let mut pending = Some(pending);
        let longest = (self.leases[0].ttl / 6).clamp(Duration::from_secs(1), Duration::from_secs(5));
        for attempt in 0.. {
            let answer = shared.within(RELEASE_TIMEOUT, shared.release(&self.leases, self.keep)).await;
            match answer {
                Some(Ok(answer)) => {
                    // The store knows: whoever waits for the flush need not wait for a doubt to end.
                    pending = None;
                    if self.keep.is_none() && (answer != Released::NotHeld || self.leases.len() > 1) {
                        hint(shared, &self.leases);
                    }
                    if !self.in_doubt || answer != Released::NotHeld {
                        return;
                    }
                }
                Some(Err(error)) => observe::release_failed(&self.locked, shared.store.name(), Some(&error)),
                None => observe::release_failed(&self.locked, shared.store.name(), None),
            }
            let now = shared.env.now();
            if now >= self.over_at {
                return;
            }
            let pause = full_jitter(attempt + 1, shared.env.random()).min(longest);
            shared.env.sleep_until((now + pause).min(self.over_at)).await;
        }
        drop(pending);
    }
}

/// Tells this process's waiters that the keys of `leases` may be free.
pub(crate) fn hint(shared: &Shared, leases: &[Lease]) {
    for lease in leases {
        shared.queues.hint(&lease.key);
    }
}
