//! The SQLite store: one file on one machine, for any number of its processes.
//!
//! A verb is one `BEGIN IMMEDIATE … COMMIT`: it reads the rows of its keys, runs the step of
//! `entry.rs` on them, and writes what changed. The clock is the machine's boot-time clock, read once the
//! write lock is held, so that its readings follow the order of the transactions; a record says which boot
//! it belongs to. The driver runs on the keeper: a verb whose caller went away still ends, under any
//! executor, and no connection depends on the application's runtime.
//!
//! Invariant: a connection is used only while the path still leads to the file it opened, and only in the
//! process that opened it; after a failure that may have left it in a transaction it is dropped, which
//! rolls back.

mod file;
mod options;
mod place;
mod rows;

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection as _;
use tokio::sync::{Mutex, MutexGuard, Semaphore};

use self::file::{Connection, File};
pub use self::options::SqliteOptions;
use self::rows::Here;
use super::StoreError;
use super::clock::{Clock, Reading};
use super::entry::{self, Entries};
use super::traits::{Audit, Feature, Store};
use crate::error::LockError;
use crate::keeper::Keeper;
use crate::lease::{
    Acquired, AcquiredMany, FencingToken, Forced, Lease, Record, RecordState, Released, Renewed,
};

/// How long a request waits at least for the earlier ones of its process, which wait for the database in turn.
const LEAST_QUEUE: Duration = Duration::from_secs(5);

/// How many acquisitions and releases of a process wait for its connection at once. Renewals come behind no
/// more of them than that, so that many requests do not cost the leases that are held.
const TURNS: usize = 4;

/// Keeps leases in a SQLite file, for all processes of one machine.
///
/// The file is the store's own: it is made when it is missing, and any other SQLite database is refused
/// untouched. Its directory must exist. It must lie on a file system of this machine.
///
/// Leases expire by the clock that counts from the machine's boot, so setting the time does not matter,
/// and after a reboot whatever was held before is free at once. (Elsewhere than on Linux they expire by the
/// wall clock.) Clones share one connection.
///
/// Deleting the file is forgetting its locks, as it is for any store: processes that have it open notice at
/// their next request, and go on with the file that then has its path.
///
/// ```
/// use lockattr_runtime::{Locker, store::SqliteStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("lockattr-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let store = SqliteStore::open(directory.join("locks.db")).await?;
/// let locker = Locker::new(store);
/// # drop(locker);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore(Arc<Shared>);

struct Shared {
    file: File,
    clock: Clock,
    boot: Box<str>,
    patience: Duration,
    pid: u32,
    connection: Mutex<Option<Connection>>,
    turns: Semaphore,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // The connection's thread stayed in the parent process; its queue may be locked for ever here.
            std::mem::forget(self.connection.get_mut().take());
        }
    }
}

impl SqliteStore {
    /// Opens the store in the file at `path`, making the file if it is missing, with the default
    /// [`SqliteOptions`].
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`], saying what is wrong and what to do, when the file cannot be used; then nothing
    /// was made or changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, LockError> {
        SqliteOptions::new().open(path).await
    }

    async fn on_keeper<T, W>(&self, work: impl FnOnce(Arc<Shared>) -> W + Send) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        if self.0.pid != std::process::id() {
            return Err(StoreError::refused(
                "this process was forked after the store was opened; open it again in the child",
            ));
        }
        let keeper = Keeper::get().map_err(StoreError::refused)?;
        keeper.run(work(Arc::clone(&self.0))).await.map_err(StoreError::unknown)?
    }

    /// Runs `step` on the records of `keys` in one transaction, when it is its turn.
    async fn step<T: Send + 'static>(
        &self,
        keys: Vec<Arc<str>>,
        step: impl FnOnce(&mut Entries, Reading) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.on_keeper(|shared| async move {
            let _turn = shared.in_time(shared.turns.acquire()).await?.map_err(StoreError::refused)?;
            shared.step(&keys, step).await
        })
        .await
    }
}

impl Shared {
    async fn step<T>(
        &self,
        keys: &[Arc<str>],
        step: impl FnOnce(&mut Entries, Reading) -> Result<T, StoreError> + Send,
    ) -> Result<T, StoreError> {
        let (mut slot, mut connection) = self.connection().await?;
        let rows = match rows::begin(&mut connection.sqlite, keys).await {
            Ok(rows) => rows,
            Err(error) => {
                if rows::is_busy(&error) {
                    *slot = Some(connection);
                }
                return Err(rows::nothing_done(error));
            }
        };
        let here = self.here();
        let known = rows.into_entries(&here)?;
        let mut entries = known.clone();
        let answer = step(&mut entries, here.at);
        entries.retain(|key, entry| known.get(key) != Some(entry));
        if answer.is_err() || entries.is_empty() {
            rows::rollback(&mut connection.sqlite).await?;
        } else {
            rows::save(&mut connection.sqlite, &entries, &here).await?;
        }
        self.put_back(&mut slot, connection)?;
        answer
    }

    /// The connection, taken out of its place: who does not put it back closes it.
    async fn connection(&self) -> Result<(MutexGuard<'_, Option<Connection>>, Connection), StoreError> {
        let mut slot = self.in_time(self.connection.lock()).await?;
        let connection = match slot.take() {
            Some(connection) if self.file.is_at_its_path(&connection) => connection,
            old => {
                if let Some(old) = old {
                    // Awaited: until it is closed, SQLite lends what it knows of the log to a new connection.
                    old.sqlite.close().await.ok();
                }
                self.file.open(self.patience).await.map_err(StoreError::refused)?
            }
        };
        Ok((slot, connection))
    }

    /// Waits for the earlier requests of this process.
    async fn in_time<T>(&self, turn: impl Future<Output = T>) -> Result<T, StoreError> {
        tokio::time::timeout(self.patience.max(LEAST_QUEUE), turn).await.map_err(|_| {
            StoreError::refused(
                "earlier requests of this process still wait for the database: something holds it locked, or it \
                 is asked too much",
            )
        })
    }

    /// What was done on a file that has lost its path is seen by nobody.
    fn put_back(&self, slot: &mut Option<Connection>, connection: Connection) -> Result<(), StoreError> {
        if !self.file.is_at_its_path(&connection) {
            return Err(StoreError::unknown("the database file was replaced or deleted in the meantime"));
        }
        *slot = Some(connection);
        Ok(())
    }

    fn here(&self) -> Here<'_> {
        Here { at: self.clock.read(), boot: &self.boot }
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn supports(&self, feature: Feature) -> bool {
        !matches!(feature, Feature::Shared | Feature::Permits | Feature::Watch)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        let lease = lease.clone();
        self.step(vec![Arc::clone(&lease.key)], move |entries, at| entry::acquire(entries, &lease, at)).await
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let lease = lease.clone();
        self.on_keeper(|shared| async move {
            let keys = [Arc::clone(&lease.key)];
            shared.step(&keys, move |entries, at| Ok(entry::renew(entries, &lease, at))).await
        })
        .await
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        let lease = lease.clone();
        self.step(vec![Arc::clone(&lease.key)], move |entries, at| {
            Ok(entry::release(entries, &lease, keep, at))
        })
        .await
    }

    async fn acquire_many(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        let leases = leases.to_vec();
        self.step(keys(&leases), move |entries, at| entry::acquire_many(entries, &leases, at)).await
    }

    async fn release_many(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Vec<Released>, StoreError> {
        let leases = leases.to_vec();
        self.step(keys(&leases), move |entries, at| Ok(entry::release_many(entries, &leases, keep, at))).await
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let key: Arc<str> = Arc::from(key);
        self.on_keeper(|shared| async move {
            let (mut slot, mut connection) = shared.connection().await?;
            let row = rows::look(&mut connection.sqlite, &key).await?;
            let entries = row.into_entries(&shared.here())?;
            shared.put_back(&mut slot, connection)?;
            let now = shared.clock.read().now;
            Ok(entries
                .into_iter()
                .next()
                .map(|(key, entry)| Record::new(key, FencingToken::new(entry.token), entry.state(now))))
        })
        .await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let (prefix, mut after) = (prefix.to_owned(), after.map(str::to_owned));
        self.on_keeper(|shared| async move {
            let (mut slot, mut connection) = shared.connection().await?;
            let mut records = Vec::new();
            while records.len() < limit {
                let wanted = limit - records.len();
                let rows = rows::page(&mut connection.sqlite, &prefix, after.as_deref(), wanted).await?;
                let here = shared.here();
                let entries = rows.into_entries(&here)?;
                let was_last = entries.len() < wanted;
                after = entries.last_key_value().map(|(key, _)| key.to_string());
                records.extend(
                    entries
                        .into_iter()
                        .map(|(key, entry)| {
                            Record::new(key, FencingToken::new(entry.token), entry.state(here.at.now))
                        })
                        .filter(|record| record.state != RecordState::Free),
                );
                if was_last {
                    break;
                }
            }
            shared.put_back(&mut slot, connection)?;
            Ok(records)
        })
        .await
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let key: Arc<str> = Arc::from(key);
        self.step(vec![Arc::clone(&key)], move |entries, at| {
            Ok(entry::force_release(entries, &key, token, at))
        })
        .await
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        self.on_keeper(|shared| async move {
            let (mut slot, mut connection) = shared.connection().await?;
            let removed = rows::collect(&mut connection.sqlite, &shared.here(), retention, limit).await?;
            shared.put_back(&mut slot, connection)?;
            Ok(removed)
        })
        .await
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        self.on_keeper(|shared| async move {
            let (mut slot, mut connection) = shared.connection().await?;
            let audit = shared.file.audit(&mut connection).await?;
            shared.put_back(&mut slot, connection)?;
            Ok(audit)
        })
        .await
    }
}

fn keys(leases: &[Lease]) -> Vec<Arc<str>> {
    leases.iter().map(|lease| Arc::clone(&lease.key)).collect()
}
