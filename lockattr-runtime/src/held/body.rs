//! What the keeper knows of a body: when it was polled, and how to wake it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use crate::time::Moment;

/// The body that runs under the lock, if one is polled through the guard.
#[derive(Default)]
pub(crate) struct Body {
    waker: Mutex<Option<Waker>>,
    polled: AtomicU64,
    warned: AtomicBool,
}

impl Body {
    /// The body is about to be polled.
    pub(crate) fn polled(&self, now: Moment, waker: &Waker) {
        self.polled.store(now.as_nanos(), Ordering::Relaxed);
        self.warned.store(false, Ordering::Relaxed);
        let mut kept = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_mut() {
            Some(kept) => kept.clone_from(waker),
            None => *kept = Some(waker.clone()),
        }
    }

    pub(crate) fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// When it was polled last; `None` when there is no body.
    pub(crate) fn last_polled(&self) -> Option<Moment> {
        let nanos = self.polled.load(Ordering::Relaxed);
        (nanos > 0).then(|| Moment::from_nanos(nanos))
    }

    /// Whether nobody was told yet that it is not polled.
    pub(crate) fn warn_once(&self) -> bool {
        !self.warned.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_gone(&self) {
        self.polled.store(0, Ordering::Relaxed);
        self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
