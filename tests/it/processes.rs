//! Holders that are killed or stopped from outside, over SQLite.
//!
//! A child is this test again, with an environment variable that gives it its part.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use lockattr::lease::{Record, RecordState};
use lockattr::store::SqliteStore;
use lockattr::{LockError, Locker, distributed_lock};
use rustix::process::{Pid, Signal, kill_process};

use crate::examples::{example, succeeded};

const PART: &str = "LOCKATTR_TEST_DIRECTORY";
const EXPIRES: Duration = Duration::from_secs(1);
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_killed_process_of_the_quickstart_loses_nothing() {
    let mut quickstart = example("quickstart").stdout(Stdio::piped()).spawn().expect("it starts");
    let mut stdout = BufReader::new(quickstart.stdout.take().expect("it is piped"));
    let mut first = String::new();
    stdout.read_line(&mut first).expect("a line");
    let pids: Vec<u32> = first.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(pids.len(), 4, "{first}");

    let directory = std::env::temp_dir().join(format!("lockattr-quickstart-{}", quickstart.id()));
    let locker = locker(&directory).await;
    // The one that holds the lock, so that the others have its lease to wait for.
    let (killed, token) = holder(&locker, "account:7", |_| true).await;
    assert!(pids.contains(&killed), "{killed} holds the lock, and is none of {pids:?}");
    signal(Signal::KILL, killed);
    let at = Instant::now();
    holder(&locker, "account:7", |pid| pid != killed).await;
    let idle = at.elapsed();
    // Two seconds of expiry, one of the longest sleep between two attempts, and much for a busy machine.
    assert!(idle < Duration::from_secs(20), "nobody held the lock for {idle:?}");
    assert!(token > 0);

    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).expect("the rest");
    let status = quickstart.wait().expect("it ends");
    let lines = succeeded("quickstart", &Output { status, stdout: rest, stderr: Vec::new() });
    assert!(lines.iter().any(|line| line.contains(&format!("process {killed} ended early"))), "{lines:?}");
    let result = lines.iter().find(|line| line.starts_with("locked: 0 lost of ")).expect("nothing is lost");
    let done: usize = result.split_whitespace().nth(4).and_then(|word| word.parse().ok()).expect("a number");
    assert!((300..400).contains(&done), "{result}");
}

/// The body of the process that is stopped: it sleeps at await points, and writes once if it ever gets there.
#[distributed_lock(key = "register", expires = EXPIRES, lease = lease)]
async fn write_late(directory: &Path) -> Result<(), LockError> {
    let token = lease.token().get();
    put(directory, "token", &token.to_string());
    while !directory.join("go-on").exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    put(directory, "body-went-on", &register(directory, token).to_string());
    Ok(())
}

/// Writes to the register if the token is not smaller than its last; says whether it was.
fn register(directory: &Path, token: u64) -> bool {
    let path = directory.join("register");
    let last = fs::read_to_string(&path).map_or(0, |text| text.parse().expect("a token"));
    if token >= last {
        put(directory, "register", &token.to_string());
    }
    token >= last
}

#[tokio::test]
async fn a_stopped_holder_is_stopped_for_good_and_writes_nothing_stale() {
    if let Some(directory) = std::env::var_os(PART) {
        return hold(Path::new(&directory)).await;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let locker = locker(directory).await;
    let test = "processes::a_stopped_holder_is_stopped_for_good_and_writes_nothing_stale";
    let mut child = Running(
        Command::new(std::env::current_exe().expect("the path of the test"))
            .args(["--exact", test, "--nocapture"])
            .env(PART, directory)
            .stdout(Stdio::null())
            .spawn()
            .expect("the holder starts"),
    );
    let stale: u64 = wait_for(directory, "token").await.parse().expect("a token");

    signal(Signal::STOP, child.0.id());
    let stopped = Instant::now();
    let guard = locker.lock("register").wait(PATIENCE).acquire().await.expect("it expires");
    assert!(guard.token().get() > stale);
    assert!(register(directory, guard.token().get()));
    guard.release().await.expect("it is still ours");
    tokio::time::sleep((2 * EXPIRES).saturating_sub(stopped.elapsed())).await;
    // Free again, and the body has what it waits for: only its lost lease keeps it from writing.
    put(directory, "go-on", "");
    signal(Signal::CONT, child.0.id());

    assert!(child.0.wait().expect("the holder ends").success());
    assert!(wait_for(directory, "outcome").await.starts_with("lost"), "the holder's call said otherwise");
    assert!(!directory.join("body-went-on").exists(), "the body was polled after its lock was lost");
    // Had it been sent before the stop, its write would be refused.
    assert!(!register(directory, stale));
}

/// The part of the child.
async fn hold(directory: &Path) {
    lockattr::install(locker(directory).await);
    let outcome = match write_late(directory).await {
        Ok(()) => "done".to_owned(),
        Err(error) if error.is_lost() => format!("lost: {error}"),
        Err(error) => format!("failed: {error}"),
    };
    put(directory, "outcome", &outcome);
}

async fn locker(directory: &Path) -> Locker {
    let path = directory.join("locks.db");
    Locker::new(SqliteStore::open(path).await.expect("the store opens"))
}

/// Waits until a process that `is` right holds `key`; returns it and its token.
async fn holder(locker: &Locker, key: &str, is: impl Fn(u32) -> bool) -> (u32, u64) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(Record { token, state: RecordState::Held { holder, .. }, .. }) =
            locker.inspect(key).await.expect("the store answers")
            && is(holder.pid)
        {
            return (holder.pid, token.get());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("no such holder of {key} within {PATIENCE:?}");
}

/// Waits for a file of the child and reads it.
async fn wait_for(directory: &Path, name: &str) -> String {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Ok(text) = fs::read_to_string(directory.join(name)) {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the child did not write {name} within {PATIENCE:?}");
}

/// Writes a file in one step.
fn put(directory: &Path, name: &str, text: &str) {
    let draft = directory.join(format!("{name}.draft"));
    fs::write(&draft, text).expect("a draft");
    fs::rename(&draft, directory.join(name)).expect("the file");
}

fn signal(signal: Signal, pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the signal is sent");
}

/// A child that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
