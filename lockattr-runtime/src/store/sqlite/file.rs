//! The database file: what may be opened, making it, and whether its path still leads to it.
//!
//! Invariant: no file is opened but by SQLite, whose locks would fall with any other descriptor of the
//! same file that this process closes; and nothing is written before the file is known to be ours or empty.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use super::place::{is_writable, network};
use super::rows::{self, CANTOPEN, NOTADB, READONLY, TABLE};
use crate::store::StoreError;
use crate::store::traits::{Audit, Finding, Level};

/// "lkat", in the file's header.
const APPLICATION: i64 = 0x6C6B_6174;
const VERSION: i64 = 1;
/// The smallest page.
const SMALLEST: u64 = 512;
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// An open connection, and the file that it opened.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sqlite: SqliteConnection,
    identity: Identity,
    /// Its log and the log's index, through which processes see each other's writes.
    beside: [(PathBuf, Identity); 2],
}

/// Device and inode, where the system has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(Option<(u64, u64)>);

impl Identity {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self(Some((metadata.dev(), metadata.ino())))
    }

    // An open file cannot be deleted or replaced there.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self(None)
    }
}

/// Where the database lies.
#[derive(Clone, Debug)]
pub(super) struct File {
    path: PathBuf,
    allow_network: bool,
}

impl File {
    /// Makes the path absolute, so that it stays the same when the process changes its directory.
    pub(super) fn new(path: &Path, allow_network: bool) -> Result<Self, String> {
        let text = path
            .to_str()
            .ok_or_else(|| format!("{} is not valid UTF-8, as SQLite needs it", path.display()))?;
        if text.is_empty() || text.contains('\0') {
            return Err(format!("`{}` is no path of a file", text.escape_debug()));
        }
        if text.starts_with(":memory:") {
            return Err(
                "a SQLite database in memory is seen by nobody else; use the memory store (`memory:`)"
                    .to_owned(),
            );
        }
        let path = std::path::absolute(path).map_err(|error| format!("`{text}`: {error}"))?;
        Ok(Self { path, allow_network })
    }

    /// Whether the path still leads to the file of `connection`, and its log is still beside it.
    pub(super) fn is_at_its_path(&self, connection: &Connection) -> bool {
        let is = |path: &Path, identity| {
            std::fs::metadata(path).is_ok_and(|metadata| Identity::of(&metadata) == identity)
        };
        is(&self.path, connection.identity)
            && connection.beside.iter().all(|(path, identity)| is(path, *identity))
    }

    /// Checks the file, makes it if it is missing, and opens it.
    pub(super) async fn open(&self, patience: Duration) -> Result<Connection, String> {
        for _ in 0..TRIES {
            let before = self.look()?;
            match before.as_ref().map(Metadata::len) {
                None | Some(0) => {}
                // SQLite would take it for an empty one.
                Some(..SMALLEST) => return Err(self.no_database()),
                Some(_) => self.check_ours().await?,
            }
            let options = options(&self.path).create_if_missing(before.is_none()).busy_timeout(patience);
            let mut sqlite = options.connect().await.map_err(|error| self.explain("opening", &error))?;
            if let Err(error) = prepare(&mut sqlite, patience).await {
                // Awaited, so that no log stays beside a file that is refused.
                sqlite.close().await.ok();
                return Err(self.explain("preparing", &error));
            }
            let after = self.look()?;
            // Only a file that was there before and after is certainly the one that was opened.
            if let (Some(before), Some(after)) = (before, after)
                && Identity::of(&before) == Identity::of(&after)
                && let Some(beside) = self.beside()
            {
                return Ok(Connection { sqlite, identity: Identity::of(&after), beside });
            }
        }
        Err(format!("{} is replaced or deleted again and again", self.path.display()))
    }

    /// The log and its index. As long as a connection is open, SQLite never deletes them.
    fn beside(&self) -> Option<[(PathBuf, Identity); 2]> {
        let file = std::fs::canonicalize(&self.path).ok()?.into_os_string();
        let at = |end: &str| {
            let mut path = file.clone();
            path.push(end);
            let identity = Identity::of(&std::fs::metadata(&path).ok()?);
            Some((PathBuf::from(path), identity))
        };
        Some([at("-wal")?, at("-shm")?])
    }

    /// What is at the path, if anything; an error when it cannot be a database.
    fn look(&self) -> Result<Option<Metadata>, String> {
        let path = self.path.display();
        let found = match std::fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(format!("{path} is a directory; give a file in it"));
            }
            Ok(metadata) if !metadata.is_file() => return Err(format!("{path} is not a regular file")),
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(format!("{path}: {error}")),
        };
        // The log lies beside the file itself, wherever links lead.
        let real = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let directory = real.parent().unwrap_or(&real);
        if !directory.is_dir() {
            return Err(format!("{} is not a directory; make it first", directory.display()));
        }
        let places = found.iter().map(|_| &*real).chain([directory]);
        if let Some(place) = places.into_iter().find(|place| !is_writable(place)) {
            return Err(format!(
                "{path} cannot be used: {} may not be written by this user",
                place.display()
            ));
        }
        match network(directory) {
            Some(kind) if !self.allow_network => Err(format!(
                "{path} lies on a network file system ({kind}), where SQLite's locks do not hold: two holders may come \
                 of it; use a local file or a store with a server, or set `allow_network_file_system`"
            )),
            _ => Ok(found),
        }
    }

    /// Reads the file's header, without locks and without touching a byte or making a file beside it.
    async fn check_ours(&self) -> Result<(), String> {
        let mut answer = self.header().await;
        for _ in 1..TRIES {
            if answer.as_ref().is_ok_and(|(application, _)| *application == APPLICATION) {
                break;
            }
            // Another process may be making it at this moment.
            tokio::time::sleep(PAUSE).await;
            answer = self.header().await;
        }
        let path = self.path.display();
        match answer {
            Ok((APPLICATION, VERSION)) => Ok(()),
            Ok((APPLICATION, version)) => Err(format!(
                "{path} has the layout {version} of another version of lockattr, and this one knows {VERSION}; give \
                 the store a new file"
            )),
            Ok(_) => Err(format!(
                "{path} is a SQLite database of another application; give the store a file of its own"
            )),
            Err(error) => Err(self.explain("reading", &error)),
        }
    }

    async fn header(&self) -> Result<(i64, i64), sqlx::Error> {
        let mut sqlite = options(&self.path).read_only(true).immutable(true).connect().await?;
        // A checkpoint that was killed leaves a header that is ahead of the rest, which lies in the log and is
        // not looked at here. This has SQLite accept that; nothing can be written.
        sqlite.execute("pragma writable_schema = on").await?;
        let application = pragma(&mut sqlite, "pragma application_id").await?;
        let version = pragma(&mut sqlite, "pragma user_version").await?;
        Ok((application, version))
    }

    fn no_database(&self) -> String {
        format!("{} is not a SQLite database; give the store a file of its own", self.path.display())
    }

    fn explain(&self, doing: &str, error: &sqlx::Error) -> String {
        let path = self.path.display();
        match rows::code(error) {
            Some(READONLY) => {
                format!(
                    "{path} cannot be written: it, its directory or its file system is read-only ({error})"
                )
            }
            Some(CANTOPEN) => {
                format!(
                    "{path} cannot be opened: may this user read and write it and its directory? ({error})"
                )
            }
            Some(NOTADB) => self.no_database(),
            _ => format!("{doing} {path}: {error}"),
        }
    }

    /// What the file system and the connection's settings guarantee.
    pub(super) async fn audit(&self, connection: &mut Connection) -> Result<Audit, StoreError> {
        let sqlite = &mut connection.sqlite;
        let mode: String = sqlx::query_scalar("pragma journal_mode")
            .fetch_one(&mut *sqlite)
            .await
            .map_err(StoreError::refused)?;
        let synchronous = pragma(sqlite, "pragma synchronous").await.map_err(StoreError::refused)?;
        let mut findings = vec![Finding::new(
            Level::P2,
            format!(
                "locks are kept on this machine alone, in {} (journal mode {mode}, synchronous {synchronous})",
                self.path.display()
            ),
        )];
        if let Some(kind) = network(&self.path) {
            findings.push(Finding::new(
                Level::None,
                format!("its file system ({kind}) is shared between machines, and SQLite's locks do not hold there"),
            ));
        }
        if !cfg!(target_os = "linux") {
            findings.push(Finding::new(
                Level::P1,
                "leases expire by the wall clock: setting it forward ends them early",
            ));
        }
        let level = findings.iter().map(|finding| finding.level).min().unwrap_or(Level::None);
        Ok(Audit::new(level, findings))
    }
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .thread_name(|_| "lockattr-sqlite".to_owned())
        .disable_statement_logging()
}

async fn pragma(sqlite: &mut SqliteConnection, statement: &'static str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(statement).fetch_one(sqlite).await
}

/// Makes the table in an empty database, and sets the connection up.
async fn prepare(sqlite: &mut SqliteConnection, patience: Duration) -> Result<(), sqlx::Error> {
    sqlite.execute("begin immediate").await?;
    let application = pragma(sqlite, "pragma application_id").await?;
    let tables = pragma(sqlite, "select count(*) from sqlite_schema").await?;
    if application != APPLICATION && tables == 0 {
        sqlite.execute(TABLE).await?;
        sqlite.execute("pragma application_id = 1818976628").await?;
        sqlite.execute("pragma user_version = 1").await?;
    }
    // Reads the table's first page, and asks for a write: `begin immediate` on a read-only file says nothing.
    sqlite.execute("delete from lockattr_lock where lock_key = x''").await?;
    sqlite.execute("commit").await?;
    write_ahead(sqlite, patience).await?;
    // Losing power loses the holders too, so the log need not reach the disk at every commit.
    sqlite.execute("pragma synchronous = normal").await?;
    Ok(())
}

/// Turns the write-ahead log on. SQLite does not wait for others here, so that is done for it.
async fn write_ahead(sqlite: &mut SqliteConnection, patience: Duration) -> Result<(), sqlx::Error> {
    let mut waited = Duration::ZERO;
    loop {
        let answer =
            sqlx::query_scalar::<_, String>("pragma journal_mode = wal").fetch_one(&mut *sqlite).await;
        match answer {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) if waited >= patience => {
                return Err(sqlx::Error::Protocol(format!(
                    "the journal mode stays `{mode}`, and `wal` is needed"
                )));
            }
            Err(error) if waited >= patience => return Err(error),
            _ => {}
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_whose_it_is() {
        assert_eq!(APPLICATION, 1_818_976_628);
        assert_eq!(&u32::try_from(APPLICATION).unwrap_or_default().to_be_bytes(), b"lkat");
    }
}
