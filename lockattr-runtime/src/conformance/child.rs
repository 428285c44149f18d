//! Contenders that are processes of their own, and are killed.
//!
//! A child is this test program again, told by its environment to contend. It writes what it believes to
//! a log: `got` after a grant's answer, `left` before a release. All processes share the boot-time clock,
//! so that these intervals can be compared.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bench::{Bench, PATIENCE, PAUSE};
use crate::lease::{Acquired, Owner, Renewed};
use crate::store::Store;
use crate::time::Moment;

const PREFIX: &str = "LOCKATTR_CONFORMANCE_PREFIX";
const LOG: &str = "LOCKATTR_CONFORMANCE_LOG";
const CHILDREN: usize = 4;
/// How many are killed while they hold the key, and how many at any moment.
const KILLED_HOLDING: usize = 5;
const KILLED_ANYHOW: usize = 5;
/// A child stops and waits for its end when it has held the key so often.
const ROUNDS: usize = 6;

/// The prefix that this process contends below, when it is a child.
pub(super) fn prefix() -> Option<String> {
    env::var(PREFIX).ok()
}

/// Contends until it is killed.
pub(super) async fn contend<S: Store>(bench: &Bench<S>) {
    let path = env::var_os(LOG).expect("a child has a log");
    let mut log = File::create(path).expect("the log can be written");
    let mut write = |line: String| log.write_all(line.as_bytes()).expect("the log can be written");
    let (store, deadline) = (&*bench.store, Moment::now() + PATIENCE * 4);
    let mut rounds = 0;
    while Moment::now() < deadline {
        let lease = bench.brief("contended");
        if let Ok(Acquired::Granted { token, .. }) = store.acquire(&lease).await {
            write(format!("got {token} {}\n", Moment::now().as_nanos()));
            rounds += 1;
            if rounds == ROUNDS {
                write("stuck\n".to_owned());
                // A lease that its holder renews ends with its holder, and not before.
                while let Ok(Renewed::Renewed { .. }) = store.renew(&lease).await {
                    tokio::time::sleep(lease.ttl / 4).await;
                }
                write("lost\n".to_owned());
                return;
            }
            tokio::time::sleep(PAUSE / 10).await;
            write(format!("left {token} {}\n", Moment::now().as_nanos()));
            store.release(&lease, None).await.ok();
        }
        let spread = u32::from(Owner::random().as_uuid().as_bytes()[0] % 16);
        tokio::time::sleep(Duration::from_millis(1) * spread).await;
    }
}

/// The children, killed when this goes.
struct Brood {
    test: &'static str,
    prefix: String,
    directory: PathBuf,
    children: Vec<(Child, PathBuf)>,
    killed: HashMap<PathBuf, Moment>,
}

impl Drop for Brood {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            child.kill().ok();
            child.wait().ok();
        }
        fs::remove_dir_all(&self.directory).ok();
    }
}

impl Brood {
    fn spawn(&mut self) {
        let log = self.directory.join(Owner::random().as_uuid().simple().to_string());
        File::create(&log).expect("the log can be made");
        let (_, test) = self.test.split_once("::").expect("a test's path begins with its crate");
        let child = Command::new(env::current_exe().expect("this program has a path"))
            .args(["--exact", test, "--nocapture"])
            .env(PREFIX, &self.prefix)
            .env(LOG, &log)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program starts again");
        self.children.push((child, log));
    }

    fn kill(&mut self, index: usize) {
        let (mut child, log) = self.children.swap_remove(index);
        // Until here it may have believed; after the kill it believes nothing.
        self.killed.insert(log, Moment::now());
        child.kill().expect("a child can be killed");
        child.wait().expect("a killed child ends");
    }

    fn stuck(&self) -> Option<usize> {
        self.children.iter().position(|(_, log)| lines(log).iter().any(|line| line == "stuck"))
    }
}

/// Whole lines only: a kill may have come in the middle of one.
fn lines(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).expect("the log can be read");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

/// One time that a child believed to hold the key.
#[derive(Debug)]
struct Belief {
    from: u64,
    until: u64,
    token: u64,
}

fn beliefs(log: &Path, killed: Moment) -> Vec<Belief> {
    let mut beliefs: Vec<Belief> = Vec::new();
    for line in lines(log) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |place: usize| words[place].parse().expect("the log has numbers");
        match words[0] {
            "got" => beliefs.push(Belief { from: number(2), until: killed.as_nanos(), token: number(1) }),
            "left" => beliefs.last_mut().expect("it got what it leaves").until = number(2),
            "stuck" => {}
            other => panic!("a child lost a lease that it renewed: {other}"),
        }
    }
    beliefs
}

/// Starts the children, kills them, and judges their logs.
pub(super) async fn watch_over<S: Store>(bench: &Bench<S>) {
    let directory = env::temp_dir().join(format!("lockattr-{}", Owner::random().as_uuid().simple()));
    fs::create_dir_all(&directory).expect("there is room for logs");
    let mut brood = Brood {
        test: bench.test,
        prefix: bench.prefix.clone(),
        directory,
        children: Vec::new(),
        killed: HashMap::new(),
    };
    (0..CHILDREN).for_each(|_| brood.spawn());

    let (deadline, mut holding, mut anyhow, mut ticks) = (Moment::now() + PATIENCE * 2, Vec::new(), 0, 0_u32);
    while holding.len() < KILLED_HOLDING || anyhow < KILLED_ANYHOW {
        assert!(Moment::now() < deadline, "killed {} who held it, and {anyhow} others", holding.len());
        tokio::time::sleep(PAUSE).await;
        ticks += 1;
        if let Some(index) = brood.stuck() {
            brood.kill(index);
            holding.push(Moment::now().as_nanos());
            brood.spawn();
        } else if ticks.is_multiple_of(20) && anyhow < KILLED_ANYHOW {
            brood.kill(ticks as usize % CHILDREN);
            anyhow += 1;
            brood.spawn();
        }
    }
    // What the last one killed held must pass on as well.
    let (last, mut passed_on) = (holding[KILLED_HOLDING - 1], false);
    while !passed_on {
        assert!(Moment::now() < deadline + PATIENCE, "nobody took over from the last one killed");
        tokio::time::sleep(PAUSE).await;
        passed_on =
            brood.children.iter().any(|(_, log)| beliefs(log, Moment::NEVER).iter().any(|b| b.from > last));
    }
    while !brood.children.is_empty() {
        brood.kill(0);
    }

    let mut all: Vec<_> = brood.killed.iter().flat_map(|(log, killed)| beliefs(log, *killed)).collect();
    all.sort_by_key(|belief| belief.from);
    for pair in all.windows(2) {
        assert!(pair[0].until <= pair[1].from, "two processes hold it at once: {pair:?}");
        assert!(pair[0].token < pair[1].token, "the tokens do not grow: {pair:?}");
    }
    for killed in holding {
        assert!(
            all.iter().any(|belief| belief.from > killed),
            "nobody took over from the one killed at {killed}"
        );
    }
    assert!(all.len() >= KILLED_HOLDING * ROUNDS, "only {} grants", all.len());
}
