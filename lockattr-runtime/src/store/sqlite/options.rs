//! How a SQLite store is opened, and what is checked before.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};

use super::file::File;
use super::{Shared, SqliteStore, TURNS};
use crate::error::LockError;
use crate::keeper::Keeper;
use crate::store::clock::Clock;
#[cfg(feature = "testing")]
use crate::time::Moment;

/// The process in which SQLite was used first; zero before that.
static FIRST_USED_IN: AtomicU32 = AtomicU32::new(0);

/// How a [`SqliteStore`] is opened.
///
/// ```
/// use std::time::Duration;
/// use lockattr_runtime::store::SqliteOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let options = SqliteOptions::new().busy_timeout(Duration::from_secs(10));
/// assert!(options.open("/there/is/no/such/directory/locks.db").await.is_err());
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SqliteOptions {
    busy_timeout: Duration,
    allow_network_file_system: bool,
    clock: Clock,
    boot: Option<Box<str>>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(5),
            allow_network_file_system: false,
            clock: if cfg!(target_os = "linux") { Clock::Machine } else { Clock::Wall },
            boot: None,
        }
    }
}

impl SqliteOptions {
    /// The defaults: five seconds of patience, and no network file systems.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a request waits while another process has the database locked, before it is refused. Five
    /// seconds by default; a day at most.
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout.min(Duration::from_secs(24 * 60 * 60));
        self
    }

    /// Opens the file although its file system is shared between machines (NFS, SMB, 9p, FUSE and the like).
    ///
    /// SQLite's locks do not hold on most of them, and machines do not share a boot clock: two holders may
    /// come of it. [`Store::audit`](crate::store::Store::audit) then reports no level at all.
    pub fn allow_network_file_system(mut self, allow: bool) -> Self {
        self.allow_network_file_system = allow;
        self
    }

    /// Reads the time from `clock` instead: the steady time, and the wall clock since 1970.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: impl Fn() -> (Moment, Duration) + Send + Sync + 'static) -> Self {
        self.clock = Clock::Given(Arc::new(clock));
        self
    }

    /// Takes `boot_id` for the identity of the machine's boot.
    #[cfg(feature = "testing")]
    pub fn boot_id(mut self, boot_id: &str) -> Self {
        self.boot = Some(boot_id.into());
        self
    }

    /// Opens the store in the file at `path`, making the file if it is missing.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] when the path does not lead to a file that can be used: its directory is missing,
    /// it is a directory, no SQLite database, one of another application or of another version, it may not
    /// be read or written, or lies on a network file system; when this machine's boot clock cannot be
    /// relied on; or in a fork of a process that has opened a store. Then nothing was made or changed.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, LockError> {
        self.open_checked(path.as_ref()).await.map_err(|reason| LockError::Setup { reason })
    }

    async fn open_checked(self, path: &Path) -> Result<SqliteStore, String> {
        refuse_in_fork(&FIRST_USED_IN, std::process::id())?;
        let file = File::new(path, self.allow_network_file_system)?;
        let boot = match self.boot {
            Some(boot) => boot,
            None => boot_id()?,
        };
        let keeper =
            Keeper::get().map_err(|error| format!("its background thread does not start: {error}"))?;
        let patience = self.busy_timeout;
        let (file, connection) = keeper
            .run(async move { file.open(patience).await.map(|connection| (file, connection)) })
            .await
            .map_err(|error| format!("opening the database was interrupted: {error}"))??;
        Ok(SqliteStore(Arc::new(Shared {
            file,
            clock: self.clock,
            boot,
            patience,
            pid: std::process::id(),
            connection: Mutex::new(Some(connection)),
            turns: Semaphore::new(TURNS),
        })))
    }
}

/// SQLite keeps in memory which locks of a file its process has. After a fork that is wrong: the child has none
/// of them, and takes for its own what it must ask for (sqlite.org, "How To Corrupt An SQLite Database File").
fn refuse_in_fork(first_used_in: &AtomicU32, pid: u32) -> Result<(), String> {
    match first_used_in.compare_exchange(0, pid, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != pid => Err(
            "this process is a fork of one that has opened a SQLite store, and SQLite's locks do not hold after that; \
             fork first, or start the child as a program of its own"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn boot_id() -> Result<Box<str>, String> {
    const ID: &str = "/proc/sys/kernel/random/boot_id";
    // A time namespace shifts the boot clock, so that its processes and others disagree on every expiry.
    if std::fs::read_to_string("/proc/self/timens_offsets").is_ok_and(|offsets| is_shifted(&offsets)) {
        return Err(
            "this process is in a time namespace whose boot clock is shifted, so that it does not agree \
                    with other processes on when a lease ends; run it outside, or use another store"
                .to_owned(),
        );
    }
    match std::fs::read_to_string(ID) {
        Ok(id) if !id.trim().is_empty() => Ok(id.trim().into()),
        Ok(_) => Err(format!("{ID} is empty, so this boot cannot be told from others")),
        Err(error) => Err(format!("reading {ID}, which tells this boot from others: {error}")),
    }
}

#[cfg(not(target_os = "linux"))]
fn boot_id() -> Result<Box<str>, String> {
    Ok("".into())
}

/// Whether `/proc/self/timens_offsets` (`time_namespaces(7)`) moves the boot clock.
#[cfg(target_os = "linux")]
fn is_shifted(offsets: &str) -> bool {
    offsets
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("boottime"))
        .any(|shift| shift.split_whitespace().any(|number| number != "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fork_of_a_process_that_has_used_sqlite_is_refused() {
        let first_used_in = AtomicU32::new(0);
        assert!(refuse_in_fork(&first_used_in, 7).is_ok() && refuse_in_fork(&first_used_in, 7).is_ok());
        assert!(refuse_in_fork(&first_used_in, 8).is_err_and(|reason| reason.contains("fork first")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_shifted_boot_clock_is_seen() {
        assert!(!is_shifted("monotonic           0         0\nboottime            0         0\n"));
        assert!(!is_shifted("monotonic          77         0\nboottime            0         0\n"));
        assert!(is_shifted("monotonic           0         0\nboottime        86400         0\n"));
        assert!(is_shifted("boottime           -1 999999999\n"));
    }
}
