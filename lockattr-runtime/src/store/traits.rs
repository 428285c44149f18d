//! The trait every store implements.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::StoreError;
use crate::lease::{Acquired, AcquiredMany, FencingToken, Forced, Lease, Record, Released, Renewed};

/// A place that keeps leases.
///
/// Every verb is one atomic step on the store's own clock, safe to send twice for the same owner, and a
/// function of its arguments alone: no state between calls in the store object. Implementors write plain
/// `async fn`. A verb fails in one of two ways, see [`StoreError`]; "held by another" is an answer, never
/// an error.
///
/// The public suite `conformance`, with the feature `testing`, checks all of it; run it for every store.
pub trait Store: Send + Sync + 'static {
    /// The store's name in errors, spans and metrics: one lower-case word.
    fn name(&self) -> &'static str;

    /// What keys begin with unless the locker says otherwise. Empty by default.
    fn default_prefix(&self) -> &'static str {
        ""
    }

    /// Which ttls the store can keep. Below the minimum is refused, above the maximum clamped.
    fn ttl_range(&self) -> TtlRange {
        TtlRange::default()
    }

    /// Whether the store can do this. What it cannot is refused by the core, never weakened.
    fn supports(&self, feature: Feature) -> bool;

    /// Takes the key if it is free.
    ///
    /// In order: (1) this owner holds it and it is live: the same token and the time left, unextended.
    /// (2) this owner held it last, or its lease has expired: [`Acquired::Spent`]. (3) another holds it,
    /// and its expiry plus this request's lock delay has not passed, or a minimum hold keeps it, or
    /// `once_per` says no: [`Acquired::Taken`]. (4) otherwise granted, with
    /// `token = max(last + 1, the store's wall clock in µs, token_floor)`. A remaining time above the
    /// record's own ttl means that the clock went back: it is cut to one ttl.
    fn acquire(&self, lease: &Lease) -> impl Future<Output = Result<Acquired, StoreError>> + Send;

    /// Moves the expiry to now plus ttl, never back, if this owner holds it and it has not expired.
    ///
    /// It honours `token_floor`, and never creates a record.
    fn renew(&self, lease: &Lease) -> impl Future<Output = Result<Renewed, StoreError>> + Send;

    /// Ends this owner's lease; with `keep`, the key stays taken until that long after the grant.
    ///
    /// A kept key has no owner: nobody can renew or release it, and no lock delay comes on top.
    fn release(
        &self,
        lease: &Lease,
        keep: Option<Duration>,
    ) -> impl Future<Output = Result<Released, StoreError>> + Send;

    /// Takes all keys or none. By default one by one in the order given, undone in reverse.
    ///
    /// After an error some may be held: the caller releases all.
    fn acquire_many(
        &self,
        leases: &[Lease],
    ) -> impl Future<Output = Result<AcquiredMany, StoreError>> + Send {
        acquire_one_by_one(self, leases)
    }

    /// Releases all, in reverse, and goes on past failures; the first failure is returned.
    fn release_many(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> impl Future<Output = Result<Vec<Released>, StoreError>> + Send {
        release_one_by_one(self, leases, keep)
    }

    /// What the store has of a key; `None` when it has no record.
    fn inspect(&self, key: &str) -> impl Future<Output = Result<Option<Record>, StoreError>> + Send;

    /// Records whose state is not free and whose key begins with `prefix`, in byte order of their keys,
    /// after `after`, at most `limit` (the store may return fewer only at the end).
    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Record>, StoreError>> + Send;

    /// Ends the lease that has this token, whoever holds it, or a kept record. The token grows by one,
    /// and the forced owner is spent.
    fn force_release(
        &self,
        key: &str,
        token: FencingToken,
    ) -> impl Future<Output = Result<Forced, StoreError>> + Send;

    /// Removes at most `limit` records that nobody holds and that were not used for `retention`.
    /// Returns how many.
    fn collect(
        &self,
        retention: Duration,
        limit: usize,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// One stream a process that says when a key may be free; `None` where there is none.
    ///
    /// It is a hint: it may be late, missing or wrong.
    fn watch(&self) -> Option<Watch> {
        None
    }

    /// Reads what the server's configuration guarantees.
    fn audit(&self) -> impl Future<Output = Result<Audit, StoreError>> + Send;
}

pub(crate) async fn acquire_one_by_one<S: Store + ?Sized>(
    store: &S,
    leases: &[Lease],
) -> Result<AcquiredMany, StoreError> {
    let mut tokens = Vec::with_capacity(leases.len());
    let mut shortest = Duration::MAX;
    for (index, lease) in leases.iter().enumerate() {
        let refusal = match store.acquire(lease).await? {
            Acquired::Granted { token, remaining } => {
                tokens.push(token);
                shortest = shortest.min(remaining);
                continue;
            }
            Acquired::Taken { remaining, holder, .. } => AcquiredMany::Taken { index, remaining, holder },
            Acquired::Spent => AcquiredMany::Spent { index },
        };
        // Of a spent owner, an earlier attempt whose answer was lost may hold the later ones as well.
        let held = if refusal == (AcquiredMany::Spent { index }) { leases } else { &leases[..index] };
        release_one_by_one(store, held, None).await?;
        return Ok(refusal);
    }
    Ok(AcquiredMany::Granted { tokens, remaining: shortest })
}

pub(crate) async fn release_one_by_one<S: Store + ?Sized>(
    store: &S,
    leases: &[Lease],
    keep: Option<Duration>,
) -> Result<Vec<Released>, StoreError> {
    let mut answers = Vec::with_capacity(leases.len());
    let mut failure = None;
    for lease in leases.iter().rev() {
        match store.release(lease, keep).await {
            Ok(answer) => answers.push(answer),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    answers.reverse();
    failure.map_or(Ok(answers), Err)
}

/// What a store may or may not be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// [`Mode::Shared`](crate::lease::Mode::Shared).
    Shared,
    /// [`Mode::Permits`](crate::lease::Mode::Permits).
    Permits,
    /// `acquire_many` is one atomic step.
    AtomicMany,
    /// `keep` of [`Store::release`]: the store itself keeps a released key.
    Keep,
    /// `once_per`.
    OncePer,
    /// Blocks of tokens.
    TokenBlocks,
    /// `token_floor`.
    TokenFloor,
    /// [`Store::watch`] returns a stream.
    Watch,
}

/// The ttls a store can keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TtlRange {
    /// A shorter one is refused.
    pub min: Duration,
    /// A longer one is cut to this.
    pub max: Duration,
}

impl TtlRange {
    /// From `min` to `max`.
    #[must_use]
    pub const fn new(min: Duration, max: Duration) -> Self {
        Self { min, max }
    }
}

impl Default for TtlRange {
    /// 100 milliseconds to 24 hours, which is also what the core allows at most.
    fn default() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(24 * 60 * 60))
    }
}

/// How much a lock promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Below P1: the store may forget a lease or grant one twice.
    None,
    /// One grant at a time, by the store's own clock.
    P1,
    /// One believer at a time: no two guards say "held" at the same instant.
    P2,
}

/// What a store's configuration guarantees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// The level that the configuration reaches.
    pub level: Level,
    /// What keeps it from more, and what else to know.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// A level with its findings.
    #[must_use]
    pub const fn new(level: Level, findings: Vec<Finding>) -> Self {
        Self { level, findings }
    }
}

/// One thing an [`Audit`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The level that is still reached with it.
    pub level: Level,
    /// What was found, and what to do.
    pub text: String,
}

impl Finding {
    /// A finding that leaves `level`.
    #[must_use]
    pub fn new(level: Level, text: impl Into<String>) -> Self {
        Self { level, text: text.into() }
    }
}

/// What a [`Watch`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wake {
    /// This key may be free.
    Freed(Arc<str>),
    /// Some messages were missed: any key may be free.
    Missed,
}

/// A stream of hints, see [`Store::watch`].
pub struct Watch(Box<PollWake>);

type PollWake = dyn FnMut(&mut Context<'_>) -> Poll<Option<Wake>> + Send;

impl Watch {
    /// Makes a stream of a poll function; `None` ends it.
    #[must_use]
    pub fn new(poll: impl FnMut(&mut Context<'_>) -> Poll<Option<Wake>> + Send + 'static) -> Self {
        Self(Box::new(poll))
    }

    /// Waits for the next hint; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Wake> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Wake>> {
        (self.0)(cx)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

/// A boxed future, as the erased form of the contract uses it.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
