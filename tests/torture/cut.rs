//! Futures that are dropped on their way, or that panic.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What a body panics with when it is told to.
pub(crate) struct Told;

/// When a future is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    After(Duration),
    /// After so many polls, whatever it waits for.
    Polls(usize),
}

/// Polls `work` until it is ready or cut off; then it is dropped here and now.
pub(crate) async fn cut_off<T>(work: impl Future<Output = T>, cut: Cut) -> Option<T> {
    let mut work = Some(Box::pin(work));
    let (limit, mut left) = match cut {
        Cut::After(limit) => (limit, usize::MAX),
        Cut::Polls(polls) => (Duration::MAX, polls),
    };
    let mut end = pin!(tokio::time::sleep(limit));
    let done = std::future::poll_fn(|cx| {
        let Some(running) = work.as_mut().filter(|_| left > 0) else { return Poll::Ready(None) };
        left -= 1;
        if let Poll::Ready(done) = running.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        if left == 0 {
            return Poll::Ready(None);
        }
        end.as_mut().poll(cx).map(|()| None)
    })
    .await;
    drop(work.take());
    done
}

/// Polls `work`, and drops it when it panics.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut work = Some(Box::pin(work));
    let done = std::future::poll_fn(|cx| {
        let Some(running) = work.as_mut() else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await;
    drop(work.take());
    done
}

/// Keeps panics that bodies are told to have out of the output.
pub(crate) fn quiet() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Told>() {
            before(info);
        }
    }));
}
