//! Hints from the store: one stream a locker, started with its first waiter.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::shared::{Shared, until};
use crate::store::{Wake, Watch};

/// Starts to listen, unless the locker listens already or its store has nothing to say.
pub(crate) fn start(shared: &Arc<Shared>) {
    if shared.watching.swap(true, Ordering::AcqRel) {
        return;
    }
    if let Some(watch) = shared.store.watch() {
        shared.env.spawn(Box::pin(listen(watch, Arc::downgrade(shared))));
    }
}

async fn listen(mut watch: Watch, weak: super::shared::WeakShared) {
    loop {
        let Some(gone) = weak.upgrade().map(|shared| Arc::clone(&shared.gone)) else { return };
        let Some(Some(wake)) = until(pin!(gone.notified()), pin!(watch.next())).await else { return };
        let Some(shared) = weak.upgrade() else { return };
        match wake {
            Wake::Freed(key) => shared.queues.hint(&key),
            Wake::Missed => shared.queues.hint_all(),
        }
    }
}
