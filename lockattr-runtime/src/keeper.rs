//! The keeper: one thread with a runtime of its own, for renewals, releases in the background and the
//! stores' connections, so that a blocked or ended user runtime loses no lease.
//!
//! Invariant: handing it work never blocks and never panics, on any thread, with or without a runtime.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use tokio::task::JoinError;
use tokio::task::JoinHandle;

use crate::time::Moment;

/// How often the keeper looks whether the machine was suspended, and by how much the clocks must differ.
const SUSPEND_CHECK: Duration = Duration::from_secs(1);
const SUSPEND_SLACK: Duration = Duration::from_millis(50);

static CURRENT: Mutex<Option<Arc<Keeper>>> = Mutex::new(None);

thread_local! {
    static IS_KEEPER: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller runs on the keeper's thread.
pub(crate) fn is_this_thread() -> bool {
    IS_KEEPER.get()
}

/// The process's keeper thread.
#[derive(Debug)]
pub(crate) struct Keeper {
    handle: Handle,
    pid: u32,
    resumed: Arc<Notify>,
}

impl Keeper {
    /// The keeper of this process, started if there is none. After a fork the child gets its own.
    pub(crate) fn get() -> io::Result<Arc<Self>> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = current.as_ref() {
            if !keeper.is_forked() {
                return Ok(Arc::clone(keeper));
            }
            // The parent's runtime has no thread here and its queues may be locked for ever: not even
            // dropping it is safe.
            std::mem::forget(current.take());
        }
        let keeper = Arc::new(Self::start()?);
        *current = Some(Arc::clone(&keeper));
        Ok(keeper)
    }

    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let resumed = Arc::new(Notify::new());
        handle.spawn(watch_for_suspend(Arc::clone(&resumed)));
        std::thread::Builder::new().name("lockattr-keeper".to_owned()).spawn(move || {
            IS_KEEPER.set(true);
            runtime.block_on(std::future::pending::<()>());
        })?;
        Ok(Self { handle, pid: std::process::id(), resumed })
    }

    /// Whether this process is a fork of the one whose keeper this is.
    pub(crate) fn is_forked(&self) -> bool {
        self.pid != std::process::id()
    }

    /// Runs `work` on the keeper. Dropping the handle does not stop it.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.handle.spawn(work)
    }

    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    /// Runs `work` on the keeper and waits for it, under any executor. Dropped, it lets `work` go on.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        self.spawn(work).await
    }

    /// Waits until the machine's clock reaches `at`, under any executor, suspend included.
    pub(crate) async fn sleep_until(&self, at: Moment) {
        loop {
            let left = Moment::now().until(at);
            if left.is_zero() {
                return;
            }
            let mut resumed = pin!(self.resumed.notified());
            let mut sleep = {
                let _context = self.handle.enter();
                Box::pin(tokio::time::sleep(left))
            };
            std::future::poll_fn(|cx| {
                if resumed.as_mut().poll(cx).is_ready() {
                    return std::task::Poll::Ready(());
                }
                sleep.as_mut().poll(cx)
            })
            .await;
        }
    }
}

/// Timers use a clock that stands still while the machine is suspended. This one notices, and has all
/// sleepers look at the clock that does not.
async fn watch_for_suspend(resumed: Arc<Notify>) {
    let (mut steady, mut boot) = (Instant::now(), Moment::now());
    loop {
        tokio::time::sleep(SUSPEND_CHECK).await;
        let (steady_now, boot_now) = (Instant::now(), Moment::now());
        if boot_now.since(boot) > steady_now.duration_since(steady) + SUSPEND_SLACK {
            resumed.notify_waiters();
        }
        (steady, boot) = (steady_now, boot_now);
    }
}
