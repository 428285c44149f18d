//! The PostgreSQL store: one row a key, in a table of the database that the application has.
//!
//! Invariant: a verb is one transaction of one message, so one atomic step that no proxy can tear apart.
//! What an answer means is decided by `entry.rs` on the row that the statement has read.

mod failure;
mod options;
mod statements;

use std::sync::Arc;
use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::{PgPool, PgRow, Postgres};

pub use self::options::PostgresOptions;
use super::StoreError;
use super::entry::{self, Entries};
use super::sql::{Connections, Failed, Row, Table, Turn};
use super::traits::{Audit, Feature, Finding, Level, Store, acquire_one_by_one};
use crate::error::{LockError, Locked, Step};
use crate::lease::{
    Acquired, AcquiredMany, FencingToken, Forced, Lease, Mode, Record, RecordState, Released, Renewed,
};

/// How often an acquisition is sent again when others were faster between its reading and its writing.
const ROUNDS: usize = 8;
/// What `pg_type` and the statements need.
const OLDEST: i64 = 110_000;

/// Keeps leases in a table of a PostgreSQL database, version 11 or later, for all that reach the same primary.
///
/// ```no_run
/// use lockattr_runtime::{Locker, store::PostgresStore};
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::connect("postgres://app:password@db.internal/app").await?;
/// let locker = Locker::new(store);
/// # Ok(())
/// # }
/// ```
///
/// With the pool that the application has, sqlx's or `SeaORM`'s, it is
/// [`PostgresStore::from_pool(&pool)`](Self::from_pool).
///
/// Leases end by the server's clock. Every request is one transaction of one message, without prepared statements
/// or settings of the session, so it works behind a proxy that gives each transaction another connection
/// (`PgBouncer` with `pool_mode = transaction`), under any default isolation, and whatever the application's own
/// transactions do. The store makes up to four connections of its own on a background thread; a blocked runtime of
/// the application loses no lease. Clones share them. Waiters ask again and again: they read, and write only when
/// the lock is free.
///
/// **The table**, `lockattr_lock` unless [`PostgresOptions::table`] says otherwise, is made by
/// [`migrate`](Self::migrate) or by a migration of your own with the text of [`ddl`](Self::ddl). The user needs
/// `select`, `insert`, `update` and `delete` on it.
///
/// **What the server must be**: the primary, with `fsync` and `synchronous_commit` on; otherwise it forgets grants
/// in a crash. With replicas and without `synchronous_standby_names` a fail-over may forget some.
/// [`Store::audit`] says so.
#[derive(Clone, Debug)]
pub struct PostgresStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    connections: Arc<Connections<Postgres>>,
    table: Table,
}

impl PostgresStore {
    /// Connects to the server that `url` names, and checks it and its table, with the default [`PostgresOptions`].
    ///
    /// `postgres://user:password@host:5432/database` or `postgresql://…`; for a socket of this machine
    /// `postgres:///database?host=/run/postgresql&user=name`. What is missing comes from the environment variables
    /// of PostgreSQL's own programs. After the `?`, `lockattr_migrate=true` is [`PostgresOptions::migrate`],
    /// `lockattr_table=name` is [`PostgresOptions::table`], and `sslmode=` is PostgreSQL's own; TLS needs the Cargo
    /// feature `postgres-tls`.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] for a URL that is wrong. [`LockError::Store`] when the server cannot be reached, or is not
    /// one to use: nothing listens, a wrong password, no such database, a standby, no table or one of another
    /// shape, a right that is missing. Neither ever shows a password.
    pub async fn connect(url: &str) -> Result<Self, LockError> {
        PostgresOptions::new().connect(url).await
    }

    /// A store with the settings of the application's pool, and the default [`PostgresOptions`]. Nothing is sent yet:
    /// what is wrong with the server or the table shows with the first request.
    ///
    /// ```no_run
    /// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
    /// use lockattr_runtime::{Locker, store::PostgresStore};
    ///
    /// let pool = sqlx::PgPool::connect("postgres://app:password@db.internal/app").await?;
    /// let locker = Locker::new(PostgresStore::from_pool(&pool));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from_pool(pool: &PgPool) -> Self {
        PostgresOptions::new().from_pool(pool)
    }

    /// Makes the table if there is none. One that is there is left as it is.
    ///
    /// # Errors
    ///
    /// [`LockError::Store`] when the server cannot be reached, the user may not create tables, or a table of that
    /// name has another shape.
    pub async fn migrate(&self) -> Result<(), LockError> {
        let made = async {
            self.create().await?;
            self.check().await
        };
        made.await.map_err(|source| LockError::Store {
            locked: Locked::plain(self.0.table.plain()),
            step: Step::Connect,
            store: "postgres",
            source: source.into(),
        })
    }

    /// The statement that makes the table, for a migration of your own.
    #[must_use]
    pub fn ddl(&self) -> String {
        statements::ddl(&self.0.table)
    }

    async fn ask(&self, turn: Turn, text: String) -> Result<Vec<PgRow>, Failed> {
        self.0.connections.ask(turn, text).await
    }

    async fn run(&self, turn: Turn, text: String) -> Result<Vec<PgRow>, StoreError> {
        self.ask(turn, text).await.map_err(|failed| failure::of_request(failed, &self.0.table))
    }

    async fn check(&self) -> Result<(), StoreError> {
        let rows = self.run(Turn::InLine, statements::server().to_owned()).await?;
        let row = rows.first().ok_or_else(unexpected)?;
        if row.try_get("is_standby").map_err(unreadable)? {
            return Err(StoreError::refused(
                "the PostgreSQL server is a read-only standby; give the address of its primary",
            ));
        }
        if row.try_get::<i64, _>("version").map_err(unreadable)? < OLDEST {
            return Err(StoreError::refused("the PostgreSQL server is older than version 11"));
        }
        self.run(Turn::InLine, statements::check(&self.0.table)).await.map(drop)
    }

    /// Asks until what was read and what was done agree; `None` when some of the leases are held already.
    async fn acquire_all(&self, leases: &[Lease]) -> Result<Option<AcquiredMany>, StoreError> {
        if leases.iter().any(|lease| lease.mode != Mode::Exclusive) {
            return Err(StoreError::refused("this store keeps exclusive leases only"));
        }
        let Some(first) = leases.first() else { return Err(unexpected()) };
        let text = statements::acquire(&self.0.table, leases);
        for _ in 0..ROUNDS {
            let rows = match self.ask(Turn::Acquire(first.owner), text.clone()).await {
                Ok(rows) => rows,
                Err(failed) if failed.code() == Some(failure::OVERTAKEN.into()) => continue,
                Err(failed) => return Err(failure::of_request(failed, &self.0.table)),
            };
            if let Some(granted) = granted(&rows, leases)? {
                return Ok(Some(granted));
            }
            match self.decide(&rows, leases).await? {
                Decided::Answer(answer) => return Ok(Some(answer)),
                Decided::Mixed => return Ok(None),
                Decided::Again => {}
            }
        }
        Err(StoreError::refused("others took and freed the lock again and again in the meantime"))
    }

    /// What the records say to `leases`, none of which was granted.
    async fn decide(&self, rows: &[PgRow], leases: &[Lease]) -> Result<Decided, StoreError> {
        let (mut known, mut at) = (Entries::new(), None);
        for row in rows {
            if row.try_get::<Option<&str>, _>("lock_key").map_err(unreadable)?.is_some() {
                let row = Row::read(row)?;
                at = Some(row.at);
                known.insert(row.key, row.entry);
            }
        }
        let Some(at) = at else { return Ok(Decided::Again) };
        let mut entries = known.clone();
        let answer = entry::acquire_many(&mut entries, leases, at)?;
        for (key, entry) in &known {
            let is_ahead = entry.expires.is_some_and(|expires| at.now.until(expires) > entry.ttl);
            if is_ahead {
                self.run(Turn::InLine, statements::settle(&self.0.table, key)).await?;
            }
        }
        let is_own = |lease: &Lease| {
            known.get(&lease.key).is_some_and(|entry| {
                entry.owner == Some(lease.owner) && !matches!(entry.state(at.now), RecordState::Free)
            })
        };
        let own = leases.iter().filter(|lease| is_own(lease)).count();
        Ok(match answer {
            AcquiredMany::Granted { .. } if own == 0 => Decided::Again,
            AcquiredMany::Granted { .. } if own < leases.len() => Decided::Mixed,
            AcquiredMany::Granted { .. } => Decided::Answer(answer),
            refusal => {
                // What an earlier attempt of the same owner still holds.
                if own > 0 && leases.len() > 1 {
                    self.release_all(leases, None).await?;
                }
                Decided::Answer(refusal)
            }
        })
    }

    async fn release_all(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Vec<Released>, StoreError> {
        let Some(first) = leases.first() else { return Ok(Vec::new()) };
        let text = statements::release(&self.0.table, leases, keep);
        let rows = self.run(Turn::Release(first.owner), text).await?;
        let answer = |row: &PgRow| {
            let is = |column| row.try_get::<bool, _>(column).map_err(unreadable);
            Ok(match (is("is_freed")?, is("was_freed")?) {
                (true, _) => Released::Released,
                (false, true) => Released::AlreadyReleased,
                (false, false) => Released::NotHeld,
            })
        };
        rows.iter().map(answer).collect()
    }
}

/// What the records say to leases of which none was granted.
enum Decided {
    Answer(AcquiredMany),
    /// All was free: others were faster, and are gone again.
    Again,
    /// Some are this owner's, the others free.
    Mixed,
}

/// What was granted, if all was.
fn granted(rows: &[PgRow], leases: &[Lease]) -> Result<Option<AcquiredMany>, StoreError> {
    if rows.len() != leases.len() {
        return Err(unexpected());
    }
    let (mut tokens, mut shortest) = (Vec::with_capacity(leases.len()), Duration::MAX);
    for (row, lease) in rows.iter().zip(leases) {
        let Some(last) = row.try_get::<Option<i64>, _>("granted").map_err(unreadable)? else {
            return Ok(None);
        };
        let first = last - (i64::from(lease.tokens.max(1)) - 1);
        tokens.push(FencingToken::new(u64::try_from(first).unwrap_or_default()));
        shortest = shortest.min(left(row)?);
    }
    Ok(Some(AcquiredMany::Granted { tokens, remaining: shortest }))
}

fn left(row: &PgRow) -> Result<Duration, StoreError> {
    let micros = row.try_get::<i64, _>("left_us").map_err(unreadable)?;
    Ok(Duration::from_micros(u64::try_from(micros).unwrap_or_default()))
}

fn unexpected() -> StoreError {
    StoreError::unknown("the PostgreSQL server's answer is not the one to the statement")
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unreadable(error: sqlx::Error) -> StoreError {
    StoreError::unknown(format!("the PostgreSQL server's answer cannot be read: {error}"))
}

impl Store for PostgresStore {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn supports(&self, feature: Feature) -> bool {
        !matches!(feature, Feature::Shared | Feature::Permits | Feature::Watch)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        Ok(match self.acquire_all(std::slice::from_ref(lease)).await?.ok_or_else(unexpected)? {
            AcquiredMany::Granted { tokens, remaining } => {
                Acquired::Granted { token: tokens.first().copied().ok_or_else(unexpected)?, remaining }
            }
            AcquiredMany::Taken { remaining, holder, .. } => {
                Acquired::Taken { remaining, holder, queued: false }
            }
            AcquiredMany::Spent { .. } => Acquired::Spent,
        })
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let rows = self.run(Turn::First, statements::renew(&self.0.table, lease)).await?;
        rows.first().map_or(Ok(Renewed::Lost), |row| Ok(Renewed::Renewed { remaining: left(row)? }))
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        let answers = self.release_all(std::slice::from_ref(lease), keep).await?;
        answers.first().copied().ok_or_else(unexpected)
    }

    async fn acquire_many(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        let are_alike = leases.windows(2).all(|pair| statements::are_alike(&pair[0], &pair[1]));
        if leases.is_empty() || !are_alike {
            return acquire_one_by_one(self, leases).await;
        }
        match self.acquire_all(leases).await? {
            Some(answer) => Ok(answer),
            None => acquire_one_by_one(self, leases).await,
        }
    }

    async fn release_many(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Vec<Released>, StoreError> {
        self.release_all(leases, keep).await
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let rows = self.run(Turn::InLine, statements::look(&self.0.table, key)).await?;
        rows.first().map(|row| Row::read(row).map(Row::into_record)).transpose()
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let rows = self.run(Turn::InLine, statements::page(&self.0.table, prefix, after, limit)).await?;
        rows.iter().map(|row| Row::read(row).map(Row::into_record)).collect()
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let rows = self.run(Turn::InLine, statements::force(&self.0.table, key, token)).await?;
        Ok(if rows.is_empty() { Forced::Changed } else { Forced::Released })
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        Ok(self.run(Turn::InLine, statements::collect(&self.0.table, retention, limit)).await?.len())
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        let rows = self.run(Turn::InLine, statements::audit(&self.0.table)).await?;
        let row = rows.first().ok_or_else(unexpected)?;
        let is = |column: &str, value: &str| -> Result<bool, StoreError> {
            Ok(row.try_get::<&str, _>(column).map_err(unreadable)? == value)
        };
        let mut findings = Vec::new();
        let mut find = |found: bool, text: &str| {
            if found {
                findings.push(Finding::new(Level::None, text));
            }
        };
        find(
            is("fsync", "off")?,
            "`fsync` is off: a crash of the machine may take back grants; switch it on",
        );
        find(
            is("synchronous_commit", "off")?,
            "`synchronous_commit` is off: a crash of the server takes back the last grants; switch it on for this user \
             or database",
        );
        find(
            is("persistence", "u")?,
            "the table is unlogged: a crash of the server empties it; `alter table … set logged`",
        );
        let replicas = row.try_get::<i64, _>("replicas").map_err(unreadable)?;
        find(
            replicas > 0 && is("standbys", "")?,
            "there are replicas, and `synchronous_standby_names` is empty: a fail-over may forget the last grants",
        );
        let level = if findings.is_empty() { Level::P2 } else { Level::None };
        Ok(Audit::new(level, findings))
    }
}
