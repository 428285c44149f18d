//! The store's clock: exact, unless a run steps it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockattr::Moment;
use lockattr::store::MemoryStore;
use tokio::time::Instant;

/// Where the clock starts: far enough from zero for any number of steps back.
const START: Duration = Duration::from_secs(1_000_000);
const WALL: Duration = Duration::from_secs(1_700_000_000);

#[derive(Clone, Debug)]
pub(super) struct StoreClock {
    start: Instant,
    steps: Arc<Mutex<Steps>>,
}

#[derive(Debug, Default)]
struct Steps {
    back: Duration,
    forth: Duration,
}

impl StoreClock {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), steps: Arc::default() }
    }

    /// A store on this clock.
    pub(super) fn store(&self) -> MemoryStore {
        let clock = self.clone();
        MemoryStore::with_clock(move || {
            let book = clock.book();
            let now = (START + book).saturating_sub(clock.steps().back);
            (Moment::default() + now, WALL + now)
        })
    }

    /// Time that truly went by.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The store's time without its steps back: by it no lease may end early, since a step back only
    /// ever makes one longer.
    pub(super) fn book(&self) -> Duration {
        self.elapsed() + self.steps().forth
    }

    pub(super) fn was_set_back(&self) -> bool {
        !self.steps().back.is_zero()
    }

    pub(super) fn step_back(&self, by: Duration) {
        self.steps().back += by;
    }

    pub(super) fn step_forth(&self, by: Duration) {
        self.steps().forth += by;
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
