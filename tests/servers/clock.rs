//! A server whose wall clock can be set.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Failure, Place, Program};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/clock.c");

/// How far a server's wall clock is from the machine's.
#[derive(Debug)]
pub(crate) struct Clock {
    shift: File,
    nanos: i64,
}

impl Clock {
    pub(crate) fn forward(&mut self, by: Duration) -> Result<(), Failure> {
        self.set(self.nanos + i64::try_from(by.as_nanos())?)
    }

    pub(crate) fn back(&mut self, by: Duration) -> Result<(), Failure> {
        self.set(self.nanos - i64::try_from(by.as_nanos())?)
    }

    fn set(&mut self, nanos: i64) -> Result<(), Failure> {
        self.nanos = nanos;
        // At once: the server has the file in its memory.
        Ok(self.shift.write_all_at(&nanos.to_ne_bytes(), 0)?)
    }
}

/// A program whose clock can be set.
pub(crate) struct Clocked<P> {
    program: P,
    shift: PathBuf,
    shim: PathBuf,
}

impl<P: Program> Clocked<P> {
    /// Builds what the program needs for it, in this directory, which must outlive it.
    pub(crate) fn new(program: P, directory: &Path) -> Result<(Self, Clock), Failure> {
        let (shift, shim) = (directory.join("clock.shift"), directory.join("clock.so"));
        let mut compiler = Command::new("cc");
        let built = compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&shim).arg(SOURCE).output()?;
        if !built.status.success() {
            return Err(String::from_utf8_lossy(&built.stderr).into());
        }
        fs::write(&shift, 0_i64.to_ne_bytes())?;
        // Servers may run as another user.
        for (path, mode) in [(directory, 0o755), (&*shift, 0o644), (&*shim, 0o755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
        let clock = Clock { shift: File::options().write(true).open(&shift)?, nanos: 0 };
        Ok((Self { program, shift, shim }, clock))
    }
}

impl<P: Program> Program for Clocked<P> {
    fn command(&self, place: &Place) -> Result<Command, Failure> {
        let mut command = self.program.command(place)?;
        command.env("LD_PRELOAD", &self.shim).env("LOCKATTR_CLOCK", &self.shift);
        Ok(command)
    }

    fn prepare(&self, place: &Place) -> Result<(), Failure> {
        self.program.prepare(place)
    }

    fn asks(&self, place: &Place) -> Result<(), Failure> {
        self.program.asks(place)
    }

    fn url(&self, address: SocketAddr) -> String {
        self.program.url(address)
    }
}
