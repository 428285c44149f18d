//! A Redis server of a run's own, on a port that the system chose.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::Failure;
use crate::process::Process;

const PATIENCE: Duration = Duration::from_secs(10);
const TRIES: usize = 5;

pub(crate) struct Redis {
    process: Option<Process>,
    directory: PathBuf,
    keeps: bool,
    pub(crate) address: SocketAddr,
}

/// The server's program; from the environment it may be another of the same protocol, as Valkey.
fn program() -> std::ffi::OsString {
    std::env::var_os("LOCKATTR_REDIS_SERVER").unwrap_or_else(|| "redis-server".into())
}

pub(crate) fn is_here() -> bool {
    let found = Command::new(program()).arg("--version").stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Becomes the server, which then ends with the coordinator, however that ends.
pub(crate) fn become_server(arguments: &[String]) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Err(Command::new(program()).args(arguments).exec().into())
}

impl Redis {
    /// A server that writes each step to disk before it answers, or one that forgets all when it ends. With
    /// `appendfsync everysec` it may answer first, and a crash then takes back what was answered.
    pub(crate) fn start(directory: &Path, keeps: bool) -> Result<Self, Failure> {
        for _ in 0..TRIES {
            // Somebody else may take it meanwhile.
            let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
            let process = spawn(directory, address, keeps)?;
            let mut redis = Self { process: Some(process), directory: directory.to_owned(), keeps, address };
            if redis.is_ready()? {
                return Ok(redis);
            }
        }
        Err(format!("redis-server does not start; see {}", directory.join("redis.txt").display()).into())
    }

    /// Waits until it answers; false when it has ended.
    fn is_ready(&mut self) -> Result<bool, Failure> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if self.process.as_mut().is_none_or(|process| process.ended().is_ok_and(|ended| ended.is_some()))
            {
                return Ok(false);
            }
            if ping(self.address).is_ok_and(|answer| answer.starts_with(b"+PONG")) {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("redis-server does not answer".into())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        self.process.as_ref().map_or(Ok(()), |process| process.signal(signal))
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        drop(self.process.take());
    }

    /// Starts it again on what it has left.
    pub(crate) fn start_again(&mut self) -> Result<(), Failure> {
        self.process = Some(spawn(&self.directory, self.address, self.keeps)?);
        if self.is_ready()? { Ok(()) } else { Err("redis-server does not start again".into()) }
    }
}

fn spawn(directory: &Path, address: SocketAddr, keeps: bool) -> Result<Process, Failure> {
    let log = File::options().create(true).append(true).open(directory.join("redis.txt"))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("server").args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", ""]);
    command
        .args(["--appendonly", if keeps { "yes" } else { "no" }, "--appendfsync", "always"])
        .arg("--dir")
        .arg(directory);
    Process::start(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log))
}

fn ping(address: SocketAddr) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = vec![0; 5];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}
