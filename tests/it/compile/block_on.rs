//! Runs a future without any library.

// Everything is named, since one of the programs has no prelude.
use ::std::convert::From as _;
use ::std::future::Future;
use ::std::pin::pin;
use ::std::sync::Arc;
use ::std::task::{Context, Poll, Wake, Waker};
use ::std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future without any library.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}
