//! The Redis store: one hash a key on one server, read and written by scripts on the server's clock.
//!
//! A record's fields: `lockattr` the last token given out, `owner` of the last grant and `previous` the one
//! before, `expires` (below zero: free since then), `ttl`, `granted`, `window` until when `once_per` forbids
//! another grant (missing where nobody asked for that), and `holder` (missing: nobody's, kept by a minimum hold). All times are microseconds of the
//! server's clock since 1970.
//!
//! Invariants: a verb is one script, so one atomic step. What is held, kept or in an open window has no key
//! ttl, so that no policy but `allkeys-*` evicts it. Requests go straight into the queue of the connection,
//! whose task lives on the keeper.

mod answers;
mod connection;
mod failure;
mod link;
mod options;
mod scripts;
mod server;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, Cmd, Value};

use self::connection::Connection;
pub use self::options::RedisOptions;
use self::scripts::{ACQUIRE, COLLECT, FORCE, LOOK, RELEASE, RENEW};
use super::StoreError;
use super::traits::{Audit, Feature, Store, Watch, acquire_one_by_one, release_one_by_one};
use crate::error::LockError;
use crate::lease::{
    Acquired, AcquiredMany, FencingToken, Forced, Lease, Mode, Record, RecordState, Released, Renewed,
};

const DEFAULT_PREFIX: &str = "lockattr:";
/// How many keys one step looks at.
const BATCH: usize = 512;

/// Keeps leases in Redis 6 or later, or Valkey, for all that reach the same server.
///
/// ```no_run
/// use lockattr_runtime::{Locker, store::RedisStore};
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::connect("redis://127.0.0.1:6379/0").await?;
/// let locker = Locker::new(store);
/// # Ok(())
/// # }
/// ```
///
/// Leases end by the server's clock. One connection serves the whole process; it is made with the first
/// request, on the keeper's thread, and made again when it breaks or answers nothing for ten seconds. While
/// there is none, requests are refused at once with the reason, and the core tries again as long as it may
/// wait. Clones share the connection.
///
/// **What the server must be**: one primary. A replica, a Sentinel, and a server that may evict what is held
/// (`maxmemory-policy allkeys-*` with a limit) are refused. Every other policy spares held locks, and when
/// memory is full, renewing and releasing go on while new locks are refused. A server without an append-only
/// file forgets its locks when it restarts, and one with replicas may forget some at a fail-over:
/// [`Store::audit`] says so.
///
/// **What the user needs**, as `ACL SETUSER` takes it, with the locker's prefix for the keys:
/// `~lockattr:* &lockattr:* +ping +hello +select +info +eval +evalsha +time +hmget +hgetall +hset +hdel
/// +persist +pexpire +scan +publish +subscribe`. Without the channel and its two commands waiters ask again and
/// again instead of being told.
///
/// A lock is a hash of some 300 bytes under its key, prefix included. It stays for seven days after its
/// release; what a crashed holder left is removed by [`Store::collect`], which reads the names of all keys of
/// the database, and with less than all rights only touches those under the default prefix `lockattr:`.
#[derive(Clone, Debug)]
pub struct RedisStore(Arc<Connection>);

impl RedisStore {
    /// Connects to the server that `url` names, and checks it, with the default [`RedisOptions`].
    ///
    /// * `redis://user:password@host:6379/0`: everything but the host may be missing; the number is the
    ///   database.
    /// * `rediss://…`: the same over TLS, with the feature `redis-tls`; certificates are checked against those
    ///   of the system.
    /// * `redis+unix:///run/redis.sock?db=0&user=name&pass=password`: a socket of this machine.
    /// * `valkey:`, `valkeys:` and `valkey+unix:` are the same. After a `?`, `allow_eviction=true` is
    ///   [`RedisOptions::allow_eviction`].
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] for a URL that is wrong. [`LockError::Store`] when the server cannot be reached, or
    /// is not one to use: nothing listens, a wrong password, a right that is missing, no such database, a
    /// replica, a Sentinel, an evicting server, TLS on one side only. Neither ever shows a password.
    pub async fn connect(url: &str) -> Result<Self, LockError> {
        RedisOptions::new().connect(url).await
    }

    /// A store on the server of `client`, with the default [`RedisOptions`]. Nothing is sent yet: what is wrong
    /// with the server shows with the first request.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        RedisOptions::new().open(client)
    }

    async fn acquire_all(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        if leases.iter().any(|lease| lease.mode != Mode::Exclusive) {
            return Err(StoreError::refused("this store keeps exclusive leases only"));
        }
        let fill = |command: &mut Cmd| {
            put_keys(command, leases.iter().map(|lease| &*lease.key));
            answers::put_ending(command, self.0.channel());
            for lease in leases {
                answers::put_lease(command, lease);
            }
        };
        answers::acquired(&self.0.run(&ACQUIRE, fill).await?, leases)
    }

    /// Answers with a list, but for one lease alone.
    async fn release_all(&self, leases: &[Lease], keep: Option<Duration>) -> Result<Value, StoreError> {
        let fill = |command: &mut Cmd| {
            put_keys(command, leases.iter().map(|lease| &*lease.key));
            answers::put_ending(command, self.0.channel());
            command.arg(answers::micros_up(keep.unwrap_or_default()));
            for lease in leases {
                answers::put_owner(command, lease);
            }
        };
        self.0.run(&RELEASE, fill).await
    }

    async fn look(&self, keys: &[Arc<str>]) -> Result<Vec<Record>, StoreError> {
        let fill = |command: &mut Cmd| put_keys(command, keys.iter().map(|key| &**key));
        answers::looked(keys, &self.0.run(&LOOK, fill).await?)
    }

    /// One step through the names of all hashes; the cursor is `0` at the end.
    async fn scan(&self, cursor: &[u8], prefix: &str) -> Result<(Vec<u8>, Vec<Arc<str>>), StoreError> {
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("COUNT").arg(BATCH).arg("TYPE").arg("hash");
        if !prefix.is_empty() {
            command.arg("MATCH").arg(pattern(prefix));
        }
        answers::scanned(&self.0.ask(&command).await?)
    }

    /// Removes what is old among `keys`.
    async fn remove(
        &self,
        keys: &[Arc<str>],
        retention: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let run = async |keys: &[Arc<str>]| {
            let fill = |command: &mut Cmd| {
                put_keys(command, keys.iter().map(|key| &**key));
                command.arg(answers::micros_up(retention)).arg(limit);
            };
            self.0.try_run(&COLLECT, fill).await
        };
        let mut answer = run(keys).await?;
        if answer.as_ref().is_err_and(failure::is_no_key_of_ours) {
            let ours: Vec<_> = keys.iter().filter(|key| key.starts_with(DEFAULT_PREFIX)).cloned().collect();
            answer = run(&ours).await?;
        }
        match answer {
            Ok(answer) => answers::count(&answer),
            Err(error) => Err(failure::of_request(&error, Some(&COLLECT))),
        }
    }
}

impl Store for RedisStore {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn default_prefix(&self) -> &'static str {
        DEFAULT_PREFIX
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::Shared | Feature::Permits => false,
            Feature::AtomicMany => !self.0.is_cluster(),
            _ => true,
        }
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        Ok(match self.acquire_all(std::slice::from_ref(lease)).await? {
            AcquiredMany::Granted { tokens, remaining } => {
                let token = tokens.first().copied().ok_or_else(answers::unexpected)?;
                Acquired::Granted { token, remaining }
            }
            AcquiredMany::Taken { remaining, holder, .. } => {
                Acquired::Taken { remaining, holder, queued: false }
            }
            AcquiredMany::Spent { .. } => Acquired::Spent,
        })
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let fill = |command: &mut Cmd| {
            put_keys(command, [&*lease.key]);
            answers::put_owner(command, lease);
            command
                .arg(answers::micros(lease.ttl))
                .arg(lease.tokens.max(1))
                .arg(lease.token_floor.unwrap_or_default());
        };
        answers::renewed(&self.0.run(&RENEW, fill).await?)
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        answers::released(&self.release_all(std::slice::from_ref(lease), keep).await?)
    }

    async fn acquire_many(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        self.0.link().await?;
        if leases.len() < 2 || self.0.is_cluster() {
            return acquire_one_by_one(self, leases).await;
        }
        self.acquire_all(leases).await
    }

    async fn release_many(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Vec<Released>, StoreError> {
        self.0.link().await?;
        if leases.len() < 2 || self.0.is_cluster() {
            return release_one_by_one(self, leases, keep).await;
        }
        answers::released_all(&self.release_all(leases, keep).await?)
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        Ok(self.look(&[Arc::from(key)]).await?.pop())
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let (mut keys, mut cursor) = (BTreeSet::new(), b"0".to_vec());
        loop {
            let (next, found) = self.scan(&cursor, prefix).await?;
            let wanted = |key: &Arc<str>| key.starts_with(prefix) && after.is_none_or(|after| &**key > after);
            keys.extend(found.into_iter().filter(wanted));
            if next == b"0" {
                break;
            }
            cursor = next;
        }
        let (keys, mut records): (Vec<_>, Vec<_>) = (keys.into_iter().collect(), Vec::new());
        for batch in keys.chunks(BATCH) {
            if records.len() >= limit {
                break;
            }
            let looked = self.look(batch).await?;
            records.extend(looked.into_iter().filter(|record| record.state != RecordState::Free));
        }
        records.truncate(limit);
        Ok(records)
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let fill = |command: &mut Cmd| {
            put_keys(command, [key]);
            answers::put_ending(command, self.0.channel());
            command.arg(token.get());
        };
        Ok(match answers::count(&self.0.run(&FORCE, fill).await?)? {
            0 => Forced::Changed,
            _ => Forced::Released,
        })
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        let (mut removed, mut cursor) = (0, b"0".to_vec());
        loop {
            let (next, keys) = self.scan(&cursor, "").await?;
            if !keys.is_empty() {
                removed += self.remove(&keys, retention, limit - removed).await?;
            }
            if next == b"0" || removed >= limit {
                return Ok(removed);
            }
            cursor = next;
        }
    }

    fn watch(&self) -> Option<Watch> {
        self.0.watch()
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        Ok(self.0.server().await?.audit())
    }
}

fn put_keys<'a>(command: &mut Cmd, keys: impl IntoIterator<Item = &'a str, IntoIter: ExactSizeIterator>) {
    let keys = keys.into_iter();
    command.arg(keys.len());
    keys.for_each(|key| {
        command.arg(key);
    });
}

/// The glob of all keys that begin with `prefix`.
fn pattern(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('*');
    pattern
}
