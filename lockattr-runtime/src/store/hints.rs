//! Hints inside one process: a mailbox per watcher, bounded, and honest about what it dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

use super::traits::{Wake, Watch};

const MOST: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(crate) struct Hints(Arc<Mutex<Vec<Weak<Mailbox>>>>);

#[derive(Debug, Default)]
struct Mailbox(Mutex<Mail>);

#[derive(Debug, Default)]
struct Mail {
    keys: VecDeque<Arc<str>>,
    missed: bool,
    waker: Option<Waker>,
}

impl Mailbox {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hints {
    /// Tells every watcher that `key` may be free.
    pub(crate) fn send(&self, key: &Arc<str>) {
        let mut wakers = Vec::new();
        self.watchers().retain(|watcher| {
            let Some(mailbox) = watcher.upgrade() else { return false };
            let mut mail = mailbox.mail();
            if mail.keys.len() < MOST {
                mail.keys.push_back(Arc::clone(key));
            } else {
                mail.missed = true;
            }
            wakers.extend(mail.waker.take());
            true
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Tells every watcher that some hints were missed.
    #[cfg(feature = "redis")]
    pub(crate) fn miss(&self) {
        let mut wakers = Vec::new();
        self.watchers().retain(|watcher| {
            let Some(mailbox) = watcher.upgrade() else { return false };
            let mut mail = mailbox.mail();
            mail.missed = true;
            wakers.extend(mail.waker.take());
            true
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn watch(&self) -> Watch {
        let mailbox = Arc::new(Mailbox::default());
        self.watchers().push(Arc::downgrade(&mailbox));
        Watch::new(move |cx| {
            let mut mail = mailbox.mail();
            if std::mem::take(&mut mail.missed) {
                mail.keys.clear();
                return Poll::Ready(Some(Wake::Missed));
            }
            if let Some(key) = mail.keys.pop_front() {
                return Poll::Ready(Some(Wake::Freed(key)));
            }
            mail.waker = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Weak<Mailbox>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
