//! The histories of a run, put together.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::Failure;
use crate::history::{self, Event, Outcome};
use crate::monitor;

/// One key of one grant. Times are nanoseconds since boot.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) call: Id,
    pub(super) pid: u32,
    pub(super) key: String,
    pub(super) token: u64,
    /// It was asked whether it is held between these two.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) held: bool,
    pub(super) until: u64,
    pub(super) left: Option<u64>,
    pub(super) finished: bool,
    pub(super) blocking: bool,
}

/// A call's client and its number there.
pub(super) type Id = (usize, u64);

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) client: usize,
    pub(super) pid: u32,
    pub(super) keys: Vec<String>,
    way: String,
    pub(super) asked: u64,
    pub(super) got: Option<u64>,
    pub(super) ended: Option<u64>,
    pub(super) outcome: Option<Outcome>,
}

/// The store listed a key as held.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) pid: u32,
}

#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) grants: Vec<Grant>,
    pub(super) calls: BTreeMap<Id, Call>,
    pub(super) killed: BTreeMap<u32, (u64, u64)>,
    /// When a process was stopped, and when it was told to go on.
    pub(super) stopped: BTreeMap<u32, Vec<(u64, u64)>>,
    pub(super) seen: BTreeMap<(String, u64), Seen>,
    pub(super) wrong: Vec<String>,
    stalls: Vec<(usize, u64, u64)>,
}

impl Story {
    pub(super) fn read(directory: &Path) -> Result<Self, Failure> {
        let mut story = Self::default();
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let is_client =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("client-"));
            if is_client && path.extension().is_some_and(|extension| extension == "jsonl") {
                names.push(path);
            }
        }
        names.sort();
        for (client, path) in names.iter().enumerate() {
            story.client(client, history::read(path)?);
        }
        story.coordinator(history::read(&directory.join("coordinator.jsonl"))?);
        story.coordinator(history::read(&monitor::history_of(directory))?);
        Ok(story)
    }

    fn client(&mut self, client: usize, events: impl IntoIterator<Item = Event>) {
        let mut pid = 0;
        // A call's grants are together, since nothing comes between them.
        let mut places: BTreeMap<u64, std::ops::Range<usize>> = BTreeMap::new();
        for event in events {
            match event {
                Event::Started { pid: own, .. } => pid = own,
                Event::Ask { op, at, keys, way } => {
                    let (got, ended, outcome) = (None, None, None);
                    let call = Call { client, pid, keys, way, asked: at, got, ended, outcome };
                    self.calls.insert((client, op), call);
                }
                Event::Got { op, from, to, held, until, tokens } => {
                    let start = self.grants.len();
                    self.grants.extend(tokens.into_iter().map(|(key, token)| Grant {
                        call: (client, op),
                        pid,
                        key,
                        token,
                        from,
                        to,
                        held,
                        until,
                        left: None,
                        finished: false,
                        blocking: false,
                    }));
                    places.insert(op, start..self.grants.len());
                    if let Some(call) = self.calls.get_mut(&(client, op)) {
                        call.got = Some(from);
                    }
                }
                Event::Until { op, until } => {
                    for grant in &mut self.grants[places.get(&op).cloned().unwrap_or_default()] {
                        grant.until = grant.until.max(until);
                    }
                }
                Event::Left { op, at, finished, blocking } => {
                    for grant in &mut self.grants[places.get(&op).cloned().unwrap_or_default()] {
                        (grant.left, grant.finished, grant.blocking) = (Some(at), finished, blocking);
                    }
                }
                Event::End { op, at, outcome } => {
                    if let Some(call) = self.calls.get_mut(&(client, op)) {
                        (call.ended, call.outcome) = (Some(at), Some(outcome));
                    }
                }
                Event::Stall { from, to } => self.stalls.push((client, from, to)),
                Event::Closed { held, .. } if held > 0 => {
                    self.wrong.push(format!("process {pid} held {held} when it was shut down"));
                }
                Event::Wrong { text } => self.wrong.push(format!("process {pid}: {text}")),
                _ => {}
            }
        }
    }

    fn coordinator(&mut self, events: impl IntoIterator<Item = Event>) {
        let mut stopped = BTreeMap::new();
        for event in events {
            match event {
                Event::Killed { pid, from, to } => {
                    self.killed.insert(pid, (from, to));
                }
                Event::Stopped { pid, from, .. } => {
                    stopped.insert(pid, from);
                }
                Event::Continued { pid, at } => {
                    if let Some(from) = stopped.remove(&pid) {
                        self.stopped.entry(pid).or_default().push((from, at));
                    }
                }
                Event::Seen { from, to, key, token, pid } => {
                    // The store looked somewhere between the two.
                    let seen = self.seen.entry((key, token)).or_insert(Seen { first: to, last: to, pid });
                    seen.last = from.max(seen.first);
                }
                Event::Wrong { text } => self.wrong.push(text),
                _ => {}
            }
        }
    }

    pub(super) fn of_keys(&self) -> BTreeMap<&str, Vec<&Grant>> {
        let mut keys: BTreeMap<&str, Vec<&Grant>> = BTreeMap::new();
        for grant in &self.grants {
            keys.entry(&grant.key).or_default().push(grant);
        }
        keys
    }

    /// The moment until which a grant was certainly believed.
    pub(super) fn belief_ends(&self, grant: &Grant) -> u64 {
        let killed = self.killed.get(&grant.pid).map_or(u64::MAX, |(from, _)| *from);
        grant.until.min(grant.left.unwrap_or(u64::MAX)).min(killed)
    }

    /// Whether the client did not run for `long` while it held what it called for.
    pub(super) fn stood_still(&self, call: &Call, long: Duration) -> bool {
        let long = u64::try_from(long.as_nanos()).unwrap_or(u64::MAX);
        self.stalls.iter().any(|(client, from, to)| {
            *client == call.client && to - from > long && *to > call.asked && Some(*from) < call.ended
        })
    }

    pub(super) fn was_stopped(&self, call: &Call) -> bool {
        let stops = self.stopped.get(&call.pid).into_iter().flatten();
        stops.into_iter().any(|(from, to)| *to > call.asked && Some(*from) < call.ended)
    }
}

impl Grant {
    pub(super) fn show(&self) -> String {
        let left = self.left.map_or("never left".to_owned(), |left| format!("left at {}", left / 1000));
        format!(
            "{} with token {} by process {} (call {}), got at {}, {left}, until {}",
            self.key,
            self.token,
            self.pid,
            self.call.1,
            self.to / 1000,
            self.until / 1000
        )
    }
}

impl Call {
    pub(super) fn show(&self) -> String {
        let after = |at: Option<u64>| {
            at.map_or("never".to_owned(), |at| format!("+{} ms", (at - self.asked) / 1_000_000))
        };
        format!(
            "{} of {} by process {}, asked at {}, got {}, ended {}",
            self.way,
            self.keys.join("+"),
            self.pid,
            self.asked / 1000,
            after(self.got),
            after(self.ended)
        )
    }
}
