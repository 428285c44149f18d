//! Real servers, each with a directory of its own on the loopback interface, for tests, torture and benches.
//!
//! Invariant: a server ends with the process that started it, however that ends.
#![allow(dead_code, reason = "each binary that includes this uses its part")]

#[cfg(target_os = "linux")]
pub(crate) mod clock;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod running;

#[cfg(feature = "redis")]
pub(crate) mod redis;

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use self::running::Running;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Initialised databases start in a second or two; a loaded machine may take a while.
const PATIENCE: Duration = Duration::from_secs(60);
/// Somebody else may take a port between its choice and its use.
const TRIES: usize = 5;
/// Tells the processes that share a server its port.
const PORT: &str = "port";

/// A server's program and how it is used.
pub(crate) trait Program: Send {
    /// What to start; or what to install, where it is not there.
    fn command(&self, place: &Place) -> Result<Command, Failure>;

    /// Makes the directory ready, once, before the first start.
    fn prepare(&self, _place: &Place) -> Result<(), Failure> {
        Ok(())
    }

    /// An error until the server answers.
    fn asks(&self, place: &Place) -> Result<(), Failure>;

    /// What a locker opens, for the server at this address or for a proxy before it.
    fn url(&self, address: SocketAddr) -> String;
}

impl Program for Box<dyn Program> {
    fn command(&self, place: &Place) -> Result<Command, Failure> {
        self.as_ref().command(place)
    }

    fn prepare(&self, place: &Place) -> Result<(), Failure> {
        self.as_ref().prepare(place)
    }

    fn asks(&self, place: &Place) -> Result<(), Failure> {
        self.as_ref().asks(place)
    }

    fn url(&self, address: SocketAddr) -> String {
        self.as_ref().url(address)
    }
}

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    /// Of the loopback interface; 0 for a server that has a socket in its directory alone.
    pub(crate) port: u16,
}

impl Place {
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }
}

/// A running server. Its directory goes with it, unless it was given.
pub(crate) struct Server {
    program: Box<dyn Program>,
    running: Option<Running>,
    pub(crate) place: Place,
    is_own: bool,
}

impl Server {
    /// A server in a directory of its own, on a port that the system chose.
    pub(crate) fn start(program: impl Program + 'static) -> Result<Self, Failure> {
        Self::in_own_directory(|directory| Self::start_in(program, directory))
    }

    /// The same without a port: it has a socket in its directory alone.
    pub(crate) fn start_without_port(program: impl Program + 'static) -> Result<Self, Failure> {
        Self::in_own_directory(|directory| {
            let place = Place { directory: directory.to_owned(), port: 0 };
            program.prepare(&place)?;
            let running = Some(run(&program, &place)?);
            Ok(Self { program: Box::new(program), running, place, is_own: false })
        })
    }

    fn in_own_directory(start: impl FnOnce(&Path) -> Result<Self, Failure>) -> Result<Self, Failure> {
        // Below the system's directory for temporary files: a socket's path has at most some hundred bytes.
        let directory = tempfile::Builder::new().prefix("lockattr-server-").tempdir()?.keep();
        match start(&directory) {
            Ok(mut server) => {
                server.is_own = true;
                Ok(server)
            }
            Err(error) => {
                fs::remove_dir_all(&directory).ok();
                Err(error)
            }
        }
    }

    /// The same in a directory that stays.
    pub(crate) fn start_in(program: impl Program + 'static, directory: &Path) -> Result<Self, Failure> {
        Self::start_boxed(Box::new(program), directory)
    }

    fn start_boxed(program: Box<dyn Program>, directory: &Path) -> Result<Self, Failure> {
        let mut failure = None;
        for attempt in 0..TRIES {
            let place = Place { directory: directory.to_owned(), port: free_port()? };
            if attempt == 0 {
                program.prepare(&place)?;
            }
            match run(program.as_ref(), &place) {
                Ok(running) => return Ok(Self { program, running: Some(running), place, is_own: false }),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| "the server was not started".into()))
    }

    /// Where the server of this name is that this process and those that it starts share. It ends with the
    /// first of them.
    pub(crate) fn shared(name: &str, program: impl FnOnce() -> Box<dyn Program>) -> Result<Place, Failure> {
        static STARTED: Mutex<BTreeMap<String, Place>> = Mutex::new(BTreeMap::new());
        let mut started = STARTED.lock().map_err(|_| "an earlier start of the server panicked")?;
        if let Some(place) = started.get(name) {
            return Ok(place.clone());
        }
        let of = |pid: u32| std::env::temp_dir().join(format!("lockattr-{name}-of-{pid}"));
        let parents = of(std::os::unix::process::parent_id());
        let place = if let Ok(port) = fs::read_to_string(parents.join(PORT)) {
            Place { directory: parents, port: port.parse()? }
        } else {
            let own = of(std::process::id());
            fs::remove_dir_all(&own).ok();
            fs::create_dir(&own)?;
            let server = Self::start_boxed(program(), &own)?;
            fs::write(own.join(PORT), server.place.port.to_string())?;
            let place = server.place.clone();
            // It is told to end by what happens to its starter.
            std::mem::forget(server);
            place
        };
        started.insert(name.to_owned(), place.clone());
        Ok(place)
    }

    pub(crate) fn url(&self) -> String {
        self.url_at(self.place.address())
    }

    /// Of a proxy before it.
    pub(crate) fn url_at(&self, address: SocketAddr) -> String {
        self.program.url(address)
    }

    pub(crate) fn pause(&self) -> Result<(), Failure> {
        self.running.as_ref().map_or(Ok(()), |running| running.signal(Signal::STOP))
    }

    pub(crate) fn resume(&self) -> Result<(), Failure> {
        self.running.as_ref().map_or(Ok(()), |running| running.signal(Signal::CONT))
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) -> Result<(), Failure> {
        self.running.take().map_or(Ok(()), Running::kill)
    }

    /// Starts the killed server again on what it has left.
    pub(crate) fn start_again(&mut self) -> Result<(), Failure> {
        self.running = Some(run(self.program.as_ref(), &self.place)?);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill().ok();
        if self.is_own {
            fs::remove_dir_all(&self.place.directory).ok();
        }
    }
}

/// Starts the program and waits until it answers.
fn run(program: &dyn Program, place: &Place) -> Result<Running, Failure> {
    let running = Running::start(&program.command(place)?, &place.directory)?;
    let started = Instant::now();
    loop {
        let asked = program.asks(place);
        let has_ended = running.has_ended();
        let Err(error) = asked else {
            if !has_ended {
                return Ok(running);
            }
            return Err("another server has its port".into());
        };
        if has_ended || started.elapsed() > PATIENCE {
            let log = running.log();
            running.kill()?;
            return Err(format!("the server does not answer: {error}\n{log}").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Nobody has it now; a server that does not get it fails its test.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The first of the programs that can be started; otherwise what to do.
pub(crate) fn found(programs: &[PathBuf], package: &str) -> Result<PathBuf, Failure> {
    let starts = |program: &&PathBuf| {
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    programs.iter().find(starts).cloned().ok_or_else(|| {
        let names: Vec<_> = programs.iter().map(|program| program.display().to_string()).collect();
        format!("this needs {}: on Debian and Ubuntu, {package} brings it", names.join(" or ")).into()
    })
}
