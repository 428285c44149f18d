//! Which keys the body that is being polled holds, so that it cannot wait for itself.
//!
//! Invariant: the scope is the body, not the thread: it is set while the body is polled and put back
//! after, also when the poll panics. Spawned tasks do not inherit it.

use std::cell::RefCell;
use std::sync::Arc;

use crate::error::Locked;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Frame>>> = const { RefCell::new(None) };
}

/// The keys of one body, and the body around it.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Which locker's store they are in.
    store: usize,
    keys: Vec<(Arc<str>, Locked)>,
    outer: Option<Arc<Self>>,
}

impl Frame {
    /// A frame inside the body that is being polled now.
    pub(crate) fn new(store: usize, keys: Vec<(Arc<str>, Locked)>) -> Arc<Self> {
        Arc::new(Self { store, keys, outer: current() })
    }

    /// Runs `poll` with this frame as the current one.
    pub(crate) fn scoped<T>(self: &Arc<Self>, poll: impl FnOnce() -> T) -> T {
        struct PutBack(Option<Arc<Frame>>);
        impl Drop for PutBack {
            fn drop(&mut self) {
                CURRENT.with_borrow_mut(|current| *current = self.0.take());
            }
        }
        let before = CURRENT.with_borrow_mut(|current| current.replace(Arc::clone(self)));
        let _put_back = PutBack(before);
        poll()
    }
}

/// The name under which the body that is being polled holds `key`, if it does.
pub(crate) fn holder_of(store: usize, key: &str) -> Option<Locked> {
    let current = current();
    let mut frame = current.as_ref();
    while let Some(here) = frame {
        if here.store == store
            && let Some((_, name)) = here.keys.iter().find(|(held, _)| &**held == key)
        {
            return Some(name.clone());
        }
        frame = here.outer.as_ref();
    }
    None
}

fn current() -> Option<Arc<Frame>> {
    CURRENT.with_borrow(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(key: &str) -> Arc<Frame> {
        Frame::new(1, vec![(Arc::from(key), Locked::plain(key))])
    }

    #[test]
    fn frames_nest_and_end_with_the_poll() {
        frame("a").scoped(|| {
            frame("b").scoped(|| {
                assert!(holder_of(1, "a").is_some() && holder_of(1, "b").is_some());
                assert!(holder_of(2, "a").is_none());
            });
            assert!(holder_of(1, "b").is_none());
        });
        assert!(holder_of(1, "a").is_none());
    }

    #[test]
    fn a_panic_puts_the_outer_frame_back() {
        frame("a").scoped(|| {
            let inner = frame("b");
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                inner.scoped(|| panic!("in the body"))
            }));
            assert!(panicked.is_err());
            assert!(holder_of(1, "a").is_some() && holder_of(1, "b").is_none());
        });
    }
}
