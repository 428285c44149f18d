//! Looks at the store from outside, for leases that outlive their owners.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lockattr::lease::RecordState;
use lockattr::{LockError, Locker};

use crate::Failure;
use crate::history::{Event, History, now};

const TICK: Duration = Duration::from_millis(50);
/// What a lease may take to go after its time, as the monitor sees it.
const MORE: Duration = Duration::from_secs(2);

/// Whether only the client's own process can see into this store.
pub(crate) fn is_inside(store: &str) -> bool {
    store.starts_with("memory:") || (store.starts_with("broken:") && store.ends_with(":memory:"))
}

pub(crate) fn history_of(directory: &Path) -> PathBuf {
    directory.join("monitor.jsonl")
}

pub(crate) struct Monitor {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), Failure>>,
}

/// Lists what is held, again and again, until [`Monitor::finish`].
pub(crate) fn start<F>(
    directory: &Path,
    ttl: Duration,
    connect: impl FnOnce() -> F + Send + 'static,
) -> Result<Monitor, Failure>
where
    F: Future<Output = Result<Locker, LockError>>,
{
    let history = History::create(&history_of(directory))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = Arc::new(AtomicBool::new(false));
    let watching = Arc::clone(&ended);
    let thread = thread::spawn(move || {
        runtime.block_on(async move {
            let locker = connect().await?;
            let mut last_look = None;
            loop {
                let seen = look(&locker, &history).await;
                if watching.load(Ordering::Acquire) {
                    let until = *last_look.get_or_insert_with(|| std::time::Instant::now() + ttl + MORE);
                    if seen == Some(0) || std::time::Instant::now() > until {
                        return Ok(());
                    }
                }
                tokio::time::sleep(TICK).await;
            }
        })
    });
    Ok(Monitor { ended, thread })
}

impl Monitor {
    /// Looks on until nothing is held, or should not be any more.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.ended.store(true, Ordering::Release);
        self.thread.join().map_err(|_| "the monitor panicked")?
    }
}

/// How many keys are held; `None` when the store does not say.
async fn look(locker: &Locker, history: &History) -> Option<usize> {
    let from = now();
    let records = locker.list("k", None, 100).await.ok()?;
    let to = now();
    let mut seen = 0;
    for record in records {
        if let RecordState::Held { holder, .. } = record.state {
            seen += 1;
            let (key, token, pid) = (record.key.to_string(), record.token.get(), holder.pid);
            history.write(&Event::Seen { from, to, key, token, pid });
        }
    }
    Some(seen)
}
