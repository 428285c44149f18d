//! One run of one row: what it needs is started, disturbed, ended, and judged.

use std::time::Duration;

use lockattr::Moment;

use crate::Failure;
use crate::checker::{self, Report};
use crate::client::Part;
use crate::disturb::Field;
use crate::ground::Ground;
use crate::history::{Event, History};
use crate::monitor;
use crate::random::Random;
use crate::register::Register;
use crate::rows::Row;
use crate::stores;

const CLIENTS: usize = 6;
const TASKS: usize = 2;
const KEYS: usize = 3;

/// Runs `row` for `seconds`. The histories stay where a rule is broken that should hold.
pub(crate) fn run(row: Row, seed: u64, seconds: u64, keep: bool) -> Result<Report, Failure> {
    let directory = tempfile::Builder::new().prefix("lockattr-torture-").tempdir()?;
    let mut random = Random::new(seed);
    let mut ground = Ground::start(row, directory.path())?;
    let register = Register::start()?;
    let history = History::create(&directory.path().join("coordinator.jsonl"))?;
    let inside = monitor::is_inside(&ground.store);
    let monitored = if inside {
        None
    } else {
        let direct = ground.direct.clone();
        // Connected before the clients are, so that they find the store made.
        let locker = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(async { stores::lockers(&direct, 1, Duration::ZERO).await })?;
        Some(monitor::start(directory.path(), row.ttl(), move || async move { Ok(locker[0].clone()) })?)
    };
    let part = Part {
        directory: directory.path().to_owned(),
        name: String::new(),
        store: ground.store.clone(),
        register: register.address(),
        nemesis: row.nemesis,
        seed: 0,
        ttl: row.ttl(),
        lock_delay: row.lock_delay(),
        until: (Moment::now() + Duration::from_secs(seconds)).as_nanos(),
        keys: KEYS,
        lockers: if inside { CLIENTS } else { 1 },
        tasks: TASKS,
        parent: std::process::id(),
    };
    let clients = if inside { 1 } else { CLIENTS };
    let random = Random::new(random.next());
    let mut field = Field::new(part, &register, &history, &mut ground, random);
    for _ in 0..clients {
        field.start()?;
    }
    field.disturb()?;
    for text in field.end()? {
        history.write(&Event::Wrong { text });
    }
    drop(field);
    if let Some(monitored) = monitored {
        monitored.finish()?;
    }
    let report = checker::judge(row, directory.path(), register.effects(), row.ttl())?;
    if keep || !report.failed().is_empty() {
        let kept = directory.keep();
        eprintln!("{} {}, seed {seed}: histories in {}", row.store(), row.nemesis.name(), kept.display());
    }
    Ok(report)
}
