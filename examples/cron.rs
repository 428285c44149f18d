//! A scheduled job on several hosts, run once a tick: `on_busy = skip` and `min_hold`.
//!
//! Two processes stand for two hosts with one schedule, and the clock of the second is late. `skip` alone
//! would let it run a short job again; `min_hold` keeps the key taken for longer than clocks differ.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs, process};

use lockattr::{Locker, distributed_lock, store::SqliteStore};

const TICK: Duration = Duration::from_secs(4);
const HOSTS: [(&str, Duration); 2] = [("first", Duration::ZERO), ("second", Duration::from_millis(200))];

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// `None` when another host has this tick. A store that fails is an error, never a skip.
#[distributed_lock(key = "report", expires = 10, on_busy = skip, min_hold = 2)]
async fn report() -> Outcome<Option<()>> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(Some(()))
}

#[tokio::main(flavor = "current_thread")]
async fn host(name: &str, start: Duration, directory: &Path) -> Outcome<()> {
    lockattr::install(Locker::new(SqliteStore::open(directory.join("locks.db")).await?));
    for tick in 0..2 {
        let at = UNIX_EPOCH + start + tick * TICK;
        tokio::time::sleep(at.duration_since(SystemTime::now()).unwrap_or_default()).await;
        let done = if report().await?.is_some() { "ran" } else { "skipped" };
        println!("tick {tick}: the {name} host {done}");
    }
    lockattr::shutdown(Duration::from_secs(1)).await;
    Ok(())
}

fn main() -> Outcome<()> {
    if let [_, name, start, directory] = env::args().collect::<Vec<_>>().as_slice() {
        return host(name, Duration::from_millis(start.parse()?), Path::new(directory));
    }
    let directory = env::temp_dir().join(format!("lockattr-cron-{}", process::id()));
    fs::create_dir(&directory)?;
    let start = SystemTime::now().duration_since(UNIX_EPOCH)? + Duration::from_millis(500);
    let hosts = HOSTS.map(|(name, late)| {
        let start = (start + late).as_millis().to_string();
        let arguments = [name, &start, directory.to_str().unwrap_or_default()];
        Command::new(env::current_exe()?).args(arguments).stdout(Stdio::piped()).spawn()
    });
    let mut lines = Vec::new();
    for host in hosts {
        let output = host?.wait_with_output()?;
        lines.extend(String::from_utf8(output.stdout)?.lines().map(str::to_owned));
    }
    fs::remove_dir_all(&directory)?;
    lines.sort();
    println!("{}", lines.join("\n"));

    let ran = lines.iter().filter(|line| line.ends_with("ran")).count();
    println!("{ran} runs in 2 ticks on {} hosts", HOSTS.len());
    if ran == 2 { Ok(()) } else { Err("a tick was run twice, or not at all".into()) }
}
