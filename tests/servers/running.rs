//! A server's process.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::Failure;

/// Starts the server in the directory and tells its process id. When its starter has gone, however that went, or
/// says so with a line, the server is killed, and waited for: one that is started again may look whether its process
/// is still there. Without a line nobody waits for it any more: its directory goes too.
const KEEP: &str = r#"cd "$1" || exit 1; own=$2; shift 2; "$@" >>log 2>&1 & echo $!
    if read -r _; then kill -9 $!; wait $!; else kill -9 $!; wait $!; if [ "$own" ]; then rm -rf "$PWD"; fi; fi"#;

#[derive(Debug)]
pub(crate) struct Running {
    keeper: Child,
    pid: Pid,
    directory: PathBuf,
}

impl Running {
    /// Its output goes to the file `log` in the directory.
    pub(crate) fn start(command: &Command, directory: &Path) -> Result<Self, Failure> {
        let is_temporary = directory.starts_with(std::env::temp_dir());
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEP, "sh"]).arg(directory).arg(if is_temporary { "own" } else { "" });
        keeper.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => keeper.env(name, value),
                None => keeper.env_remove(name),
            };
        }
        let mut keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut pid = String::new();
        BufReader::new(keeper.stdout.take().ok_or("no output")?).read_line(&mut pid)?;
        let pid = Pid::from_raw(pid.trim().parse()?).ok_or("no process id")?;
        Ok(Self { keeper, pid, directory: directory.to_owned() })
    }

    /// Sends it to the server and to what the server has started.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        kill_process(self.pid, signal)?;
        for child in descendants(self.pid) {
            // It may have ended meanwhile.
            kill_process(child, signal).ok();
        }
        Ok(())
    }

    pub(crate) fn has_ended(&self) -> bool {
        // The keeper does not collect it before it is told to, so that its id is nobody else's.
        let state = fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero()));
        match state {
            Ok(state) => state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
            Err(_) => test_kill_process(self.pid).is_err(),
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Ends it as a crash does, and waits until it is gone.
    pub(crate) fn kill(mut self) -> Result<(), Failure> {
        // Already ended, it has nobody to kill.
        self.signal(Signal::KILL).ok();
        if let Some(mut keeper) = self.keeper.stdin.take() {
            keeper.write_all(b"\n")?;
        }
        self.keeper.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().ok();
    }
}

fn descendants(pid: Pid) -> Vec<Pid> {
    let at = format!("/proc/{0}/task/{0}/children", pid.as_raw_nonzero());
    let children = fs::read_to_string(at).unwrap_or_default();
    let ids = children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?));
    ids.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}
