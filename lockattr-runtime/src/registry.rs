//! The process's default locker.

use std::sync::{PoisonError, RwLock};

use crate::error::{LockError, Locked};
use crate::lock::Locker;

static INSTALLED: RwLock<Option<Locker>> = RwLock::new(None);

/// Makes `locker` the one that attributes without a `locker` argument use, in the whole process.
///
/// Returns the locker that was installed before, if any; locks taken through it stay as they are.
///
/// ```
/// use lockattr_runtime::{Locker, store::MemoryStore};
///
/// lockattr_runtime::install(Locker::new(MemoryStore::new()));
/// ```
pub fn install(locker: Locker) -> Option<Locker> {
    INSTALLED.write().unwrap_or_else(PoisonError::into_inner).replace(locker)
}

/// The installed locker.
pub(crate) fn installed(locked: impl FnOnce() -> Locked) -> Result<Locker, LockError> {
    INSTALLED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
        .ok_or_else(|| LockError::NotInstalled { locked: locked() })
}
