//! What tests of locked functions ask.

use std::thread;

use crate::error::Locked;
use crate::lease::RecordState;
use crate::registry;

/// Whether somebody holds `key` in the installed locker.
///
/// It blocks until the store has answered, so it is for tests only.
///
/// # Panics
///
/// When no locker is installed or its store fails.
#[must_use]
pub fn is_held(key: &str) -> bool {
    let locker = registry::installed(|| Locked::plain(key)).expect("a locker is installed");
    // On a thread of its own: the caller may be inside a runtime that must not block on itself.
    let record = thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            runtime.block_on(locker.inspect(key)).expect("the store answers")
        });
        asked.join().expect("asking the store does not panic")
    });
    record.is_some_and(|record| matches!(record.state, RecordState::Held { .. }))
}
