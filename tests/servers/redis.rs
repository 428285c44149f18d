//! Redis, or another server of its protocol.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Failure, Place, Program, found};

/// Keeps nothing over a restart, unless told to.
#[derive(Debug, Default)]
pub(crate) struct Redis {
    arguments: Vec<String>,
    /// What a locker is told besides, at the end of the URL.
    told: &'static str,
}

impl Redis {
    /// With these arguments besides. The first may be a configuration file.
    pub(crate) fn with(arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(ToString::to_string).collect(), told: "" }
    }

    /// Writes each step to disk before it answers. With `appendfsync everysec` it may answer first, and a crash
    /// then takes back what was answered.
    pub(crate) fn durable() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Removes any of its keys when its memory is full, as a cache is set up.
    pub(crate) fn evicting() -> Self {
        let arguments = ["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random"];
        Self { told: "?allow_eviction=true", ..Self::with(&arguments) }
    }

    /// Gives it so many keys of 64 KiB besides.
    pub(crate) fn fill(address: SocketAddr, count: usize) -> Result<(), Failure> {
        const SIZE: usize = 64 * 1024;
        let mut stream = TcpStream::connect(address)?;
        for number in 0..count {
            let key = format!("fill:{number}");
            write!(stream, "*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${SIZE}\r\n", key.len())?;
            stream.write_all(&vec![b'x'; SIZE])?;
            stream.write_all(b"\r\n")?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer)?;
            if !answer.starts_with(b"+OK") {
                return Err(String::from_utf8_lossy(&answer).into());
            }
        }
        Ok(())
    }

    pub(crate) fn socket(directory: &Path) -> PathBuf {
        directory.join("s")
    }
}

impl Program for Redis {
    fn command(&self, place: &Place) -> Result<Command, Failure> {
        let program = std::env::var_os("LOCKATTR_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
        let mut command = Command::new(found(&[program.into()], "`apt-get install redis-server`")?);
        let mut arguments = self.arguments.iter();
        if self.arguments.first().is_some_and(|first| Path::new(first).is_absolute()) {
            command.args(arguments.next());
        } else {
            command.args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no"]);
        }
        command.args(arguments).args(["--port", &place.port.to_string()]);
        command.arg("--unixsocket").arg(Self::socket(&place.directory));
        command.arg("--dir").arg(&place.directory);
        Ok(command)
    }

    fn asks(&self, place: &Place) -> Result<(), Failure> {
        let answer = match place.port {
            0 => ping(UnixStream::connect(Self::socket(&place.directory))?)?,
            _ => ping(TcpStream::connect(place.address())?)?,
        };
        // One that wants a password is ready as well.
        if answer.starts_with(b"+PONG") || answer.starts_with(b"-NOAU") {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&answer).into())
    }

    fn url(&self, address: SocketAddr) -> String {
        format!("redis://{address}{}", self.told)
    }
}

fn ping(mut stream: impl Read + Write) -> Result<[u8; 5], Failure> {
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}
