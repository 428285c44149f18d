//! What a case works with: a handle on its storage, more of them, and names that no other run uses.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::lease::{Acquired, FencingToken, Holder, Lease, Owner, RecordState};
use crate::store::{Boxed, Store};
use crate::time::Moment;

/// How long a case waits for what must happen, beyond the time that it takes by itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const PAUSE: Duration = Duration::from_millis(20);

type Open<S> = Arc<dyn Fn(String) -> Boxed<'static, S> + Send + Sync>;

/// What a case of the suite works with.
pub struct Bench<S> {
    pub(super) store: Arc<S>,
    pub(super) test: &'static str,
    pub(super) prefix: String,
    open: Open<S>,
    storage: &'static str,
}

impl<S> fmt::Debug for Bench<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("test", &self.test).finish_non_exhaustive()
    }
}

/// Runs one case on a runtime of its own.
#[doc(hidden)]
pub fn run<S, W>(
    open: impl Fn(String) -> W + Send + Sync + 'static,
    storage: &'static str,
    test: &'static str,
    case: impl AsyncFnOnce(&Bench<S>),
) where
    S: Store,
    W: Future<Output = S> + Send + 'static,
{
    assert!(storage.len() <= 60, "the name of a case names a storage, and has at most 60 characters");
    let open: Open<S> = Arc::new(move |storage| Box::pin(open(storage)));
    block_on(async {
        let store = Arc::new(open(storage.to_owned()).await);
        let run = Owner::random().as_uuid().simple().to_string();
        let prefix = super::child::prefix().unwrap_or_else(|| format!("conformance:{}:", &run[..12]));
        case(&Bench { store, test, prefix, open, storage }).await;
    });
}

/// Runs `work` on a tokio runtime on this thread.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system has room for another runtime")
        .block_on(work)
}

impl<S: Store> Bench<S> {
    /// A new handle on the same storage.
    pub(super) fn another(&self) -> impl Future<Output = S> + Send + use<S> {
        (self.open)(self.storage.to_owned())
    }

    pub(super) fn key(&self, name: &str) -> Arc<str> {
        format!("{}{name}", self.prefix).into()
    }

    /// A lease that does not end while a case runs.
    pub(super) fn lease(&self, name: &str) -> Lease {
        let ttl = Duration::from_secs(600).min(self.store.ttl_range().max);
        let mut lease = Lease::new(self.key(name), Owner::random(), ttl);
        lease.holder = Arc::new(Holder::new("host", std::process::id(), "conformance"));
        lease
    }

    /// A lease that ends soon, though never before a slow machine has looked at it.
    pub(super) fn brief(&self, name: &str) -> Lease {
        let ttl = Duration::from_secs(1).max(self.store.ttl_range().min);
        Lease { ttl, ..self.lease(name) }
    }
}

/// The same request by another owner.
pub(super) fn rival(lease: &Lease) -> Lease {
    Lease { owner: Owner::random(), ..lease.clone() }
}

/// Takes what must be free.
pub(super) async fn take<S: Store>(store: &S, lease: &Lease) -> FencingToken {
    match store.acquire(lease).await {
        Ok(Acquired::Granted { token, .. }) => token,
        other => panic!("{} must be granted, but: {other:?}", lease.key),
    }
}

/// Fails to take what must be taken; gives how long it says that remains.
pub(super) async fn refuse<S: Store>(store: &S, lease: &Lease) -> Duration {
    match store.acquire(lease).await {
        Ok(Acquired::Taken { remaining, .. }) => remaining,
        other => panic!("{} must be taken, but: {other:?}", lease.key),
    }
}

/// Asks until it is granted.
pub(super) async fn take_over<S: Store>(store: &S, lease: &Lease) -> FencingToken {
    eventually("a takeover", async || match store.acquire(lease).await {
        Ok(Acquired::Granted { token, .. }) => Some(token),
        Ok(Acquired::Taken { .. }) => None,
        other => panic!("{} must be granted or taken, but: {other:?}", lease.key),
    })
    .await
}

/// Asks until it is no longer held; without an owner that could revive it.
pub(super) async fn until_free<S: Store>(store: &S, key: &str) {
    eventually("an expiry", async || (!is_held(store, key).await).then_some(())).await;
}

pub(super) async fn is_held<S: Store>(store: &S, key: &str) -> bool {
    matches!(state(store, key).await, Some(RecordState::Held { .. }))
}

pub(super) async fn state<S: Store>(store: &S, key: &str) -> Option<RecordState> {
    store.inspect(key).await.expect("inspect answers").map(|record| record.state)
}

/// Looks until there is something to see.
pub(super) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Moment::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Moment::now() < deadline, "waited {PATIENCE:?} for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
