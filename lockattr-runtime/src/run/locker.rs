//! Which locker an attribute uses.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use crate::lock::Locker;

/// No `locker` was given: the installed one.
#[must_use]
pub const fn installed() -> Option<Locker> {
    None
}

/// The locker of `locker = expr`, borrowed.
#[must_use]
pub fn locker<L: AsLocker + ?Sized>(locker: &L) -> Option<Locker> {
    Some(locker.as_locker().clone())
}

/// What `locker = expr` may give.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a `Locker`",
    label = "`locker` takes a `Locker`, borrowed",
    note = "a store becomes one with `Locker::new(store)`; make it once and keep it, for example in a field"
)]
pub trait AsLocker {
    /// The locker.
    fn as_locker(&self) -> &Locker;
}

impl AsLocker for Locker {
    fn as_locker(&self) -> &Locker {
        self
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<L: AsLocker + ?Sized> AsLocker for $pointer {
            fn as_locker(&self) -> &Locker {
                (**self).as_locker()
            }
        }
    )*};
}
pointers!(&L, &mut L, Box<L>, Rc<L>, Arc<L>);

impl<L: AsLocker, F: FnOnce() -> L> AsLocker for LazyLock<L, F> {
    fn as_locker(&self) -> &Locker {
        (**self).as_locker()
    }
}
