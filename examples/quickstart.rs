//! Several processes withdraw from one account file: with the lock no withdrawal is lost, without it many are.
//!
//! `kill -9` one of the processes it names: the others go on within two seconds, and nothing is lost.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use lockattr::{Locker, distributed_lock, store::SqliteStore};

const PROCESSES: usize = 4;
const WITHDRAWALS: usize = 100;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The lines that matter: one withdrawal at a time, whichever process asks. Returns how long it waited.
#[distributed_lock(key = "account:{id}", expires = 2, wait = "forever")]
async fn withdraw(id: u32, directory: &Path, receipt: &str, asked: Instant) -> Outcome<Duration> {
    let waited = asked.elapsed();
    withdraw_unlocked(directory, receipt).await?;
    Ok(waited)
}

/// Reads the account, thinks, and writes it back with one receipt more.
async fn withdraw_unlocked(directory: &Path, receipt: &str) -> Outcome<()> {
    let account = fs::read_to_string(directory.join("account"))?;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let draft = directory.join(format!("account.{}", process::id()));
    fs::write(&draft, format!("{account}{receipt}\n"))?;
    fs::rename(&draft, directory.join("account"))?;
    Ok(())
}

/// One of the processes: withdraws, and prints a line for every withdrawal that is done.
#[tokio::main(flavor = "current_thread")]
async fn work(directory: &Path, locked: bool) -> Outcome<()> {
    lockattr::install(Locker::new(SqliteStore::open(directory.join("locks.db")).await?));
    for number in 0..WITHDRAWALS {
        let receipt = format!("{}-{number}", process::id());
        let waited = if locked {
            withdraw(7, directory, &receipt, Instant::now()).await?
        } else {
            withdraw_unlocked(directory, &receipt).await?;
            Duration::ZERO
        };
        println!("{receipt} {}", waited.as_micros());
    }
    lockattr::shutdown(Duration::from_secs(1)).await;
    Ok(())
}

/// Runs the processes and returns how many finished withdrawals are not in the account.
fn compare(directory: &Path, mode: &str) -> Outcome<usize> {
    fs::write(directory.join("account"), "")?;
    let start = Instant::now();
    let spawn = |_| Command::new(env::current_exe()?).arg(mode).arg(directory).stdout(Stdio::piped()).spawn();
    let workers = (0..PROCESSES).map(spawn).collect::<Result<Vec<_>, _>>()?;
    let pids: Vec<_> = workers.iter().map(|worker| worker.id().to_string()).collect();
    println!("{mode}: processes {}", pids.join(" "));

    let (mut receipts, mut waits) = (Vec::new(), Vec::new());
    for (worker, pid) in workers.into_iter().zip(&pids) {
        let output = worker.wait_with_output()?;
        if !output.status.success() {
            println!("{mode}: process {pid} ended early ({}), the others went on", output.status);
        }
        for line in String::from_utf8(output.stdout)?.lines() {
            let (receipt, waited) = line.split_once(' ').ok_or("half a line")?;
            receipts.push(receipt.to_owned());
            waits.push(Duration::from_micros(waited.parse()?));
        }
    }
    let (took, done) = (start.elapsed(), receipts.len());
    let account = fs::read_to_string(directory.join("account"))?;
    let lost = receipts.iter().filter(|receipt| !account.lines().any(|line| line == *receipt)).count();
    println!("{mode}: {lost} lost of {done} withdrawals, in {took:.1?}");
    if mode == "locked" {
        let mean = waits.iter().sum::<Duration>() / u32::try_from(done)?.max(1);
        let longest = waits.iter().max().copied().unwrap_or_default();
        println!("{mode}: waited {mean:.1?} in the mean, {longest:.1?} at most");
    }
    Ok(lost)
}

fn main() -> Outcome<()> {
    if let [_, mode, directory] = env::args_os().collect::<Vec<_>>().as_slice() {
        return work(Path::new(directory), mode == "locked");
    }
    let directory = env::temp_dir().join(format!("lockattr-quickstart-{}", process::id()));
    fs::create_dir(&directory)?;
    let lost = compare(&directory, "locked").and_then(|lost| {
        compare(&directory, "unlocked")?;
        Ok(lost)
    });
    fs::remove_dir_all(&directory)?;
    if lost? > 0 {
        return Err("withdrawals were lost under the lock".into());
    }
    Ok(())
}
