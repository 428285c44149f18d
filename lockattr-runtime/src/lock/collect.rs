//! Removal of old records, so that one-off keys and crashed holders leave nothing for ever.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Locker;
use crate::time::Moment;

/// How long a record stays after its last use.
const RETENTION: Duration = Duration::from_hours(7 * 24);
/// How often a locker looks for old ones, at most.
const EVERY: Duration = Duration::from_hours(1);
/// Most records of one step, and most steps in a row.
const BATCH: usize = 1_000;
const MOST_BATCHES: usize = 100;

impl Locker {
    /// Collects in the background if the last time was long enough ago. Called after a grant.
    pub(crate) fn collect_sometimes(&self) {
        let shared = &self.shared;
        let now = shared.env.now();
        let last = shared.collected.load(Ordering::Relaxed);
        if last != 0 && now.since(Moment::from_nanos(last)) < EVERY {
            return;
        }
        let claimed = shared.collected.compare_exchange(
            last,
            now.as_nanos().max(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if claimed.is_err() {
            return;
        }
        let shared = Arc::clone(shared);
        shared.env.clone().spawn(Box::pin(async move {
            for _ in 0..MOST_BATCHES {
                match shared.store.collect(RETENTION, BATCH).await {
                    Ok(BATCH..) => {}
                    Ok(_) => return,
                    Err(error) => {
                        tracing::debug!(store = shared.store.name(), %error, "collecting old records failed");
                        return;
                    }
                }
            }
        }));
    }
}
