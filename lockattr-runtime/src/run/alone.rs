//! A future that is `Sync` although what it runs is not.
//!
//! Invariant: what is inside is reached through `&mut` only, so no two threads ever share it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

/// Runs `F` in a box. A locked function's future is then `Sync` wherever the plain one is, whatever
/// futures the store makes, and it does not grow by their size.
pub(super) struct Alone<F>(Mutex<Pin<Box<F>>>);

impl<F: Future> Alone<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Mutex::new(Box::pin(future)))
    }
}

impl<F: Future> Future for Alone<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Never locked, so never poisoned; and a poisoned one would still hold the future.
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(cx)
    }
}
