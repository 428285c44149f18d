//! What the tests share: one installed locker, and a look at its store.

use std::sync::LazyLock;
use std::thread;

use lockattr::Locker;
use lockattr::lease::RecordState;
use lockattr::store::MemoryStore;

static LOCKER: LazyLock<Locker> = LazyLock::new(|| {
    let locker = Locker::new(MemoryStore::new());
    lockattr::install(locker.clone());
    locker
});

/// The locker that attributes use. Tests share it, so each has keys of its own.
pub(crate) fn locker() -> &'static Locker {
    &LOCKER
}

/// Runs a future with the locker installed.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    locker();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Whether somebody holds `key` now.
pub(crate) fn held(key: &str) -> bool {
    let inspected = thread::scope(|scope| scope.spawn(|| run(locker().inspect(key))).join().unwrap());
    inspected.unwrap().is_some_and(|record| matches!(record.state, RecordState::Held { .. }))
}

/// Whether `key` is free, now or as soon as a release in the background has arrived.
pub(crate) async fn becomes_free(key: &str) -> bool {
    for _ in 0..200 {
        if !held(key) {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    false
}
