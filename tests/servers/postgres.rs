//! PostgreSQL, with all it keeps in a directory of its own.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Failure, Place, Program};

/// Debian's `nobody`: the server does not start as root, and a test machine may have no user for it.
const NOBODY: u32 = 65534;
/// Where Debian and Ubuntu keep the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The user `postgres` needs no password.
#[derive(Debug, Default)]
pub(crate) struct Postgres {
    settings: Vec<String>,
    /// What a locker is told besides, at the end of the URL.
    told: &'static str,
}

impl Postgres {
    /// With these settings besides, as `name=value`.
    pub(crate) fn with(settings: &[&str]) -> Self {
        Self { settings: settings.iter().map(ToString::to_string).collect(), told: "" }
    }

    /// Lockers make the table.
    pub(crate) fn migrating(self) -> Self {
        Self { told: "&lockattr_migrate=true", ..self }
    }

    fn data(place: &Place) -> PathBuf {
        place.directory.join("data")
    }
}

impl Program for Postgres {
    fn command(&self, place: &Place) -> Result<Command, Failure> {
        let mut command = as_nobody(&program("postgres")?);
        command.arg("-D").arg(Self::data(place)).arg("-k").arg(&place.directory);
        command.args(["-p", &place.port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        Ok(command)
    }

    fn prepare(&self, place: &Place) -> Result<(), Failure> {
        if is_root() {
            chown(&place.directory, Some(NOBODY), Some(NOBODY))?;
        }
        let mut initdb = as_nobody(&program("initdb")?);
        initdb.arg("-D").arg(Self::data(place));
        initdb.args([
            "--auth",
            "trust",
            "--username",
            "postgres",
            "--encoding",
            "UTF8",
            "--no-locale",
            "--no-sync",
        ]);
        let made = initdb.current_dir(&place.directory).output()?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into());
        }
        Ok(())
    }

    fn asks(&self, place: &Place) -> Result<(), Failure> {
        TcpStream::connect(place.address())?;
        let log = fs::read_to_string(place.directory.join("log"))?;
        let started = log.rsplit("starting PostgreSQL").next().unwrap_or_default();
        if started.contains("ready to accept connections") {
            Ok(())
        } else {
            Err("it is still starting".into())
        }
    }

    fn url(&self, address: SocketAddr) -> String {
        format!("postgres://postgres@{address}/postgres?sslmode=disable{}", self.told)
    }
}

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command of a user without rights, where this process has all.
pub(super) fn as_nobody(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
    command.args(["--clear-groups", "--"]).arg(program);
    command
}

/// A program of PostgreSQL's own: where Debian keeps those of its newest version, or on the path.
fn program(name: &str) -> Result<PathBuf, Failure> {
    let mut versions: Vec<_> =
        fs::read_dir(VERSIONS).into_iter().flatten().flatten().map(|version| version.path()).collect();
    versions.sort();
    let mut programs: Vec<_> = versions.iter().rev().map(|version| version.join("bin").join(name)).collect();
    programs.push(name.into());
    super::found(&programs, "`apt-get install postgresql`")
}

/// `PgBouncer`, which lends the server's connections for one transaction each.
#[derive(Debug)]
pub(crate) struct PgBouncer {
    pub(crate) server: SocketAddr,
}

impl Program for PgBouncer {
    fn command(&self, place: &Place) -> Result<Command, Failure> {
        let bouncer =
            super::found(&["pgbouncer".into(), "/usr/sbin/pgbouncer".into()], "`apt-get install pgbouncer`")?;
        // Written at each start, since each has a port of its own.
        let settings = format!(
            "[databases]\npostgres = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {}\nunix_socket_dir = {}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n",
            self.server.ip(),
            self.server.port(),
            place.port,
            place.directory.display()
        );
        let file = place.directory.join("pgbouncer.ini");
        fs::write(&file, settings)?;
        let mut command = as_nobody(&bouncer);
        command.arg(file);
        Ok(command)
    }

    fn prepare(&self, place: &Place) -> Result<(), Failure> {
        if is_root() {
            chown(&place.directory, Some(NOBODY), Some(NOBODY))?;
        }
        Ok(())
    }

    fn asks(&self, place: &Place) -> Result<(), Failure> {
        TcpStream::connect(place.address())?;
        Ok(())
    }

    fn url(&self, address: SocketAddr) -> String {
        Postgres::default().url(address)
    }
}
