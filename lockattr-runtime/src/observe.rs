//! What a lock tells the outside: `tracing` events, and counters with the feature `metrics`.
//!
//! Invariant: labels and fields carry the template, never the rendered key and never the owner.

use std::time::Duration;

use tracing::{Span, debug, debug_span, error, warn};

use crate::error::{LockError, Locked, LossCause};
use crate::held::Tenure;
use crate::store::StoreError;

/// The span of one acquisition.
pub(crate) fn acquiring(locked: &Locked, store: &'static str) -> Span {
    debug_span!("lock.acquire", template = locked.template(), store)
}

/// The span of the time a lock is held, entered while its body is polled.
pub(crate) fn holding(tenure: &Tenure, store: &'static str) -> Span {
    let token = tenure.tokens.first().map_or(0, |token| token.get());
    debug_span!("lock.hold", template = tenure.locked().template(), store, token)
}

/// The span of one release.
pub(crate) fn releasing(tenure: &Tenure, store: &'static str) -> Span {
    debug_span!("lock.release", template = tenure.locked().template(), store)
}

/// A lock was taken after `waited`; `limit` is how long the caller would have waited.
pub(crate) fn acquired(tenure: &Tenure, store: &'static str, waited: Duration, limit: Option<Duration>) {
    let template = tenure.locked().template();
    debug!(template, store, ?waited, "lock acquired");
    if limit.is_some_and(|limit| !limit.is_zero() && waited > limit / 2) {
        warn!(template, store, ?waited, ?limit, "lock acquired after more than half of the wait allowed");
    }
    counters::acquire(template, store, "acquired", waited);
}

/// A body that runs under a lock entered again, without asking the store.
pub(crate) fn entered_again(tenure: &Tenure, store: &'static str) {
    debug!(template = tenure.locked().template(), store, "lock entered again");
}

/// An acquisition ended without a lock; `waits` if it was to wait for one.
pub(crate) fn not_acquired(error: &LockError, store: &'static str, waited: Duration, waits: bool) {
    let template = error.locked().map_or("", Locked::template);
    let outcome = match error {
        LockError::Busy { .. } if !waits => "busy",
        LockError::Busy { .. } => "timeout",
        LockError::Store { .. } => "store_error",
        LockError::WouldDeadlock { .. } => "would_deadlock",
        LockError::QueueFull { .. } => "queue_full",
        LockError::ShuttingDown { .. } => "shutting_down",
        _ => "refused",
    };
    if matches!(error, LockError::Store { .. }) {
        warn!(template, store, ?waited, error = %error, "lock not acquired");
    } else {
        debug!(template, store, ?waited, outcome, "lock not acquired");
    }
    counters::acquire(template, store, outcome, waited);
}

/// An acquisition's future was dropped before it ended.
pub(crate) fn acquire_cancelled(locked: &Locked, store: &'static str, waited: Duration) {
    debug!(template = locked.template(), store, ?waited, "acquisition cancelled");
    counters::acquire(locked.template(), store, "cancelled", waited);
}

/// A lease was renewed; `late` with less than a fifth of it left.
pub(crate) fn renewed(tenure: &Tenure, store: &'static str, late: bool) {
    let template = tenure.locked().template();
    if late {
        warn!(template, store, "lock renewed late, with less than a fifth of its lease left");
    }
    counters::renew(template, store, if late { "late" } else { "renewed" });
}

/// A renewal failed, or had no answer in time (`None`). It is tried again until the deadline.
pub(crate) fn renewal_failed(tenure: &Tenure, store: &'static str, error: Option<&StoreError>) {
    let template = tenure.locked().template();
    if let Some(error) = error {
        warn!(template, store, error = %Chain(error), "renewal failed, trying again");
    } else {
        warn!(template, store, "renewal not answered in time, trying again");
    }
    counters::renew(template, store, "failed");
}

/// A held lock was lost.
pub(crate) fn lost(tenure: &Tenure, cause: LossCause) {
    let template = tenure.locked().template();
    error!(template, %cause, "lock lost");
    counters::lost(template, cause);
}

/// A body under a lock was not polled for that long: the keeper keeps its lock alive all the same.
pub(crate) fn body_not_polled(tenure: &Tenure, idle: Duration) {
    let template = tenure.locked().template();
    warn!(template, ?idle, "the body under this lock is not being polled; set `max_hold` to give it up");
}

/// A lock was given back after `held_for`.
pub(crate) fn released(tenure: &Tenure, store: &'static str, held_for: Duration, kept: Option<Duration>) {
    let template = tenure.locked().template();
    if let Some(kept) = kept {
        debug!(template, store, ?held_for, ?kept, "lock released, and kept for its minimum hold");
    } else {
        debug!(template, store, ?held_for, "lock released");
    }
    counters::hold(template, store, held_for);
}

/// A release failed and goes on in the background, until the lease is over by itself.
pub(crate) fn release_failed(locked: &Locked, store: &'static str, error: Option<&StoreError>) {
    let template = locked.template();
    if let Some(error) = error {
        warn!(template, store, error = %Chain(error), "release failed, trying again");
    } else {
        warn!(template, store, "release not answered in time, trying again");
    }
    counters::release_error(template, store);
}

/// How many locks are held and how many tasks wait, as of now.
pub(crate) fn population(store: &'static str, count: impl FnOnce() -> (usize, usize)) {
    if cfg!(feature = "metrics") {
        let (held, waiting) = count();
        counters::population(store, held, waiting);
    }
}

/// An error with its causes on one line.
struct Chain<'a>(&'a StoreError);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut next: Option<&dyn std::error::Error> = Some(self.0);
        let mut first = true;
        while let Some(error) = next {
            if !first {
                f.write_str(": ")?;
            }
            write!(f, "{error}")?;
            first = false;
            next = error.source();
        }
        Ok(())
    }
}

#[cfg(feature = "metrics")]
mod counters {
    use std::time::Duration;

    use metrics::{counter, gauge, histogram};

    use crate::error::LossCause;

    pub(super) fn acquire(template: &str, store: &'static str, outcome: &'static str, waited: Duration) {
        let template = template.to_owned();
        counter!("lockattr_acquire_total", "template" => template.clone(), "store" => store, "outcome" => outcome)
            .increment(1);
        histogram!("lockattr_wait_seconds", "template" => template, "store" => store).record(waited);
    }

    pub(super) fn renew(template: &str, store: &'static str, outcome: &'static str) {
        counter!("lockattr_renew_total", "template" => template.to_owned(), "store" => store, "outcome" => outcome)
            .increment(1);
    }

    pub(super) fn lost(template: &str, cause: LossCause) {
        let cause = match cause {
            LossCause::Expired => "expired",
            LossCause::NotOurs => "not_ours",
            LossCause::MaxHold => "max_hold",
            LossCause::RenewalDied => "renewal_died",
            LossCause::ShutDown => "shut_down",
            LossCause::GivenBack => "given_back",
        };
        counter!("lockattr_lost_total", "template" => template.to_owned(), "cause" => cause).increment(1);
    }

    pub(super) fn hold(template: &str, store: &'static str, held_for: Duration) {
        histogram!("lockattr_hold_seconds", "template" => template.to_owned(), "store" => store)
            .record(held_for);
    }

    pub(super) fn release_error(template: &str, store: &'static str) {
        counter!("lockattr_release_errors_total", "template" => template.to_owned(), "store" => store)
            .increment(1);
    }

    #[expect(clippy::cast_precision_loss, reason = "gauges are doubles")]
    pub(super) fn population(store: &'static str, held: usize, waiting: usize) {
        gauge!("lockattr_held", "store" => store).set(held as f64);
        gauge!("lockattr_waiting", "store" => store).set(waiting as f64);
    }
}

#[cfg(not(feature = "metrics"))]
mod counters {
    use std::time::Duration;

    use crate::error::LossCause;

    pub(super) fn acquire(_: &str, _: &'static str, _: &'static str, _: Duration) {}
    pub(super) fn renew(_: &str, _: &'static str, _: &'static str) {}
    pub(super) fn lost(_: &str, _: LossCause) {}
    pub(super) fn hold(_: &str, _: &'static str, _: Duration) {}
    pub(super) fn release_error(_: &str, _: &'static str) {}
    pub(super) fn population(_: &'static str, _: usize, _: usize) {}
}
