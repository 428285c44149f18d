//! One established connection: requests go into its queue from any thread, and one that no longer answers is
//! ended.
//!
//! Invariant: the futures of requests use no timer and no runtime, so that any executor may poll them.

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};
use tokio::sync::Notify;

/// How often it is looked whether requests are answered.
const LOOK: Duration = Duration::from_secs(1);
/// How long a server may take to answer before its connection is given up: above every time-out of the core.
const ANSWER: Duration = Duration::from_secs(10);

pub(super) struct Link {
    connection: MultiplexedConnection,
    /// Which of a store's connections it is.
    pub(super) number: u64,
    pub(super) subscribed: AtomicBool,
    over: AtomicBool,
    ended: Notify,
    unanswered: AtomicUsize,
    /// Somebody went away before the answer came.
    abandoned: AtomicBool,
}

/// Counts as unanswered until it is dropped.
struct Waiting<'a> {
    link: &'a Link,
    answered: bool,
}

impl<'a> Waiting<'a> {
    fn new(link: &'a Link) -> Self {
        link.unanswered.fetch_add(1, Ordering::Relaxed);
        Self { link, answered: false }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.link.unanswered.fetch_sub(1, Ordering::Relaxed);
        if !self.answered {
            self.link.abandoned.store(true, Ordering::Relaxed);
        }
    }
}

impl Link {
    pub(super) fn new(connection: MultiplexedConnection, number: u64) -> Self {
        Self {
            connection,
            number,
            subscribed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            ended: Notify::new(),
            unanswered: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Sends a command and waits for its answer, however long that takes, or for the end of the connection.
    pub(super) async fn ask(&self, command: &Cmd) -> Result<Value, RedisError> {
        let mut connection = self.connection.clone();
        let mut ended = pin!(self.ended.notified());
        if self.over.load(Ordering::Acquire) {
            return Err(no_answer());
        }
        let mut waiting = Waiting::new(self);
        let mut request = pin!(connection.send_packed_command(command));
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = request.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            ended.as_mut().poll(cx).map(|()| Err(no_answer()))
        })
        .await;
        waiting.answered = true;
        answer.and_then(Value::extract_error)
    }

    pub(super) async fn subscribe(&self, channel: &str) -> Result<(), RedisError> {
        self.connection.clone().subscribe(channel).await
    }

    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.ended.notify_waiters();
    }

    fn is_in_doubt(&self) -> bool {
        self.abandoned.swap(false, Ordering::Relaxed) || self.unanswered.load(Ordering::Relaxed) > 0
    }

    async fn answers(&self) -> bool {
        let ping = redis::cmd("PING");
        let mut connection = self.connection.clone();
        match tokio::time::timeout(ANSWER, connection.send_packed_command(&ping)).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => !error.is_io_error(),
            Err(_) => false,
        }
    }
}

/// Ends the connection when it no longer answers, and then calls `lost`. Runs on the keeper.
///
/// A request itself must not: whoever sent it may have gone away long before.
pub(super) async fn watch_over(link: Weak<Link>, lost: impl Fn(&Link)) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(link) = link.upgrade() else { return };
        if link.is_in_doubt() && !link.answers().await {
            lost(&link);
            link.end();
            return;
        }
    }
}

fn no_answer() -> RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Link {
    /// Keeps what belongs to the parent process from being touched in a forked child.
    pub(super) fn forget(link: Arc<Self>) {
        std::mem::forget(link);
    }
}
