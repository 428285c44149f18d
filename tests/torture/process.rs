//! A process of a run. It never outlives its run.

use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};

use crate::Failure;

#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self, Failure> {
        Ok(Self(command.spawn()?))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw).ok_or("no process id")?;
        Ok(kill_process(id, signal)?)
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        Ok(self.0.try_wait()?)
    }

    /// Ends it as a crash does, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
