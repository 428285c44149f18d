//! A client: locks, works and gives back at random until its time is over, and writes down what it believes.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lockattr::{LockError, Locker};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use tokio::task::LocalSet;

use crate::Failure;
use crate::belief::Recorder;
use crate::cut::{Cut, Told, caught, cut_off, quiet};
use crate::history::{Event, Outcome, now};
use crate::monitor;
use crate::nemesis::Nemesis;
use crate::process::Process;
use crate::random::Random;
use crate::register::Client;
use crate::stores;
use crate::ways::{Call, Tools, Way, perform};

/// What a client is told, as its one argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) directory: PathBuf,
    pub(crate) name: String,
    pub(crate) store: String,
    pub(crate) register: SocketAddr,
    pub(crate) nemesis: Nemesis,
    pub(crate) seed: u64,
    pub(crate) ttl: Duration,
    pub(crate) lock_delay: Duration,
    pub(crate) until: u64,
    pub(crate) keys: usize,
    /// How many lockers, each on a thread and runtime of its own, and how many tasks each has.
    pub(crate) lockers: usize,
    pub(crate) tasks: usize,
    pub(crate) parent: u32,
}

/// The process of a client.
pub(crate) fn run(part: &str) -> Result<(), Failure> {
    let part: Part = serde_json::from_str(part)?;
    // Whatever becomes of the coordinator, stopped clients included.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get().unsigned_abs() != part.parent) {
        return Ok(());
    }
    quiet();
    let recorder = Recorder::start(&part.directory.join(format!("client-{}.jsonl", part.name)))?;
    let lockers = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(stores::lockers(&part.store, part.lockers, part.lock_delay))?;
    let watched = monitor::is_inside(&part.store).then(|| {
        let (locker, directory, ttl) = (lockers[0].clone(), part.directory.clone(), part.ttl);
        monitor::start(&directory, ttl, move || async move { Ok(locker) })
    });
    thread::scope(|scope| {
        for (number, locker) in lockers.iter().enumerate() {
            let (part, recorder) = (&part, &recorder);
            scope.spawn(move || {
                if let Err(error) = work(part, number as u64, locker, recorder) {
                    recorder.wrong(format!("a client failed: {error}"));
                }
            });
        }
    });
    if let Some(watched) = watched {
        watched?.finish()?;
    }
    Ok(())
}

/// One locker's tasks, from start to shutdown.
fn work(part: &Part, number: u64, locker: &Locker, recorder: &Arc<Recorder>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let mut random = Random::new(part.seed ^ (number + 1).wrapping_mul(0x5851_F42D_4C95_7F2D));
    for _ in 0..part.tasks {
        let tools = Tools {
            locker: locker.clone(),
            recorder: Arc::clone(recorder),
            register: Client::connect(part.register)?,
            ttl: part.ttl,
        };
        let mut worker = Worker { tools, part: part.clone(), random: Random::new(random.next()) };
        tasks.spawn_local(async move {
            while now() < worker.part.until {
                worker.call().await;
            }
        });
    }
    runtime.block_on(async {
        tasks.await;
        let held = locker.shutdown(Duration::from_secs(2)).await.len();
        recorder.write(&Event::Closed { at: now(), held });
    });
    Ok(())
}

struct Worker {
    tools: Tools,
    part: Part,
    random: Random,
}

impl Worker {
    async fn call(&mut self) {
        let (call, cut) = (self.draw(), self.draw_cut());
        let recorder = Arc::clone(&self.tools.recorder);
        let (op, keys, way) = (call.op, call.keys.clone(), format!("{:?}", call.way));
        recorder.write(&Event::Ask { op, at: now(), keys, way });
        let work = caught(perform(&self.tools, &call));
        let ended = match cut {
            Some(cut) => cut_off(work, cut).await,
            None => Some(work.await),
        };
        let outcome = match ended {
            None => Outcome::Cut,
            Some(Err(panic)) if panic.is::<Told>() => Outcome::Panicked,
            Some(Err(_)) => Outcome::Undeclared { text: "a panic that nobody asked for".to_owned() },
            Some(Ok(Ok(()))) => Outcome::Done,
            Some(Ok(Err(error))) => declared(&error),
        };
        recorder.write(&Event::End { op, at: now(), outcome });
        tokio::time::sleep(self.random.micros(0..4_000)).await;
    }

    fn draw(&mut self) -> Call {
        let random = &mut self.random;
        let first = random.below(self.part.keys);
        let mut keys = vec![format!("k{first}")];
        if random.percent(20) {
            // Not sorted, so that two of these ask in opposite orders.
            keys.push(format!("k{}", (first + 1 + random.below(self.part.keys - 1)) % self.part.keys));
        }
        let usual = [Way::Attribute, Way::Run, Way::Guard][random.below(3)];
        let way = match self.part.nemesis {
            Nemesis::NoRuntime => [Way::DroppedElsewhere, Way::OutlivesItsRuntime, usual][random.below(3)],
            Nemesis::Fork if random.percent(20) => Way::Forked,
            _ => usual,
        };
        let wait = match random.below(10) {
            // It waits on the thread that others of this client need to end.
            _ if way == Way::OutlivesItsRuntime => random.micros(0..20_000),
            0..2 => Duration::ZERO,
            2..4 => random.micros(0..500_000),
            _ => Duration::from_secs(5),
        };
        let (ttl, blocking) = (self.part.ttl, random.percent(50));
        let think = match self.part.nemesis {
            // Longer than the lease, without a chance for anything else on this thread.
            Nemesis::Busy if random.percent(10) => random.share(ttl, 150..250),
            // Nothing can stop the body there when the lock is lost.
            nemesis if (nemesis == Nemesis::Pause || nemesis.takes_away()) && random.percent(30) => {
                random.share(ttl, 5..20)
            }
            Nemesis::ClockForwardDelay if random.percent(30) => random.share(ttl, 5..60),
            Nemesis::Kill if random.percent(30) && !blocking => random.share(ttl, 5..60),
            // Across a few renewals.
            Nemesis::Calm | Nemesis::Kill if random.percent(1) && !blocking => random.share(ttl, 100..130),
            nemesis if nemesis.is_of_servers() && random.percent(1) && !blocking => {
                random.share(ttl, 100..130)
            }
            _ => random.micros(0..8_000),
        };
        let panics = self.part.nemesis == Nemesis::Panic && random.percent(40);
        Call { op: self.tools.recorder.next_op(), keys, way, wait, think, blocking, panics }
    }

    fn draw_cut(&mut self) -> Option<Cut> {
        if self.part.nemesis != Nemesis::Cancel || self.random.percent(30) {
            return None;
        }
        Some(if self.random.percent(50) {
            Cut::After(self.random.micros(0..50_000))
        } else {
            Cut::Polls(self.random.below(8))
        })
    }
}

fn declared(error: &LockError) -> Outcome {
    match error {
        LockError::Busy { .. } => Outcome::Busy,
        LockError::Lost { cause, .. } => Outcome::Lost { cause: format!("{cause:?}") },
        LockError::Store { .. } => Outcome::Store { text: error.to_string() },
        LockError::ShuttingDown { .. } => Outcome::ShuttingDown,
        _ => Outcome::Undeclared { text: error.to_string() },
    }
}

/// Starts a client's process. What it prints goes to a file beside its history.
pub(crate) fn start(part: &Part) -> Result<Process, Failure> {
    let printed = File::create(part.directory.join(format!("client-{}.txt", part.name)))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("client").arg(serde_json::to_string(part)?);
    Process::start(command.stdin(Stdio::null()).stdout(printed.try_clone()?).stderr(printed))
}
