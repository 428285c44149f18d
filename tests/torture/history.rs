//! What happened, as JSON lines: one file a client, one of the coordinator, one of the monitor.
//!
//! Invariant: every time is nanoseconds of the boot-time clock, which all processes of a machine share, so that
//! times of different files compare directly. A line is written whole and at once; after a kill the last one
//! may be missing or half, and is left out.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use lockattr::Moment;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The nanoseconds of now.
pub(crate) fn now() -> u64 {
    Moment::now().as_nanos()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A client is there.
    Started {
        pid: u32,
        at: u64,
    },
    /// A call for these keys begins.
    Ask {
        op: u64,
        at: u64,
        keys: Vec<String>,
        way: String,
    },
    /// The body runs. Between `from` and `to` it asked whether the lock is held; it may be believed until then.
    Got {
        op: u64,
        from: u64,
        to: u64,
        held: bool,
        until: u64,
        tokens: Vec<(String, u64)>,
    },
    /// A renewal moved the end of the belief.
    Until {
        op: u64,
        until: u64,
    },
    /// The body is over; nothing of it acts after this. Written before anything is given back.
    Left {
        op: u64,
        at: u64,
        finished: bool,
        blocking: bool,
    },
    /// The call is over.
    End {
        op: u64,
        at: u64,
        outcome: Outcome,
    },
    /// The client did not run for so long.
    Stall {
        from: u64,
        to: u64,
    },
    /// The client has shut its locker down, and that many were still held.
    Closed {
        at: u64,
        held: usize,
    },
    /// The client itself saw something that must not be.
    Wrong {
        text: String,
    },
    /// The client with this process id was killed, stopped, continued: the signal was sent between the two.
    Killed {
        pid: u32,
        from: u64,
        to: u64,
    },
    Stopped {
        pid: u32,
        from: u64,
        to: u64,
    },
    Continued {
        pid: u32,
        at: u64,
    },
    /// The store or the way to it was disturbed.
    Disturbed {
        how: String,
        from: u64,
        to: u64,
    },
    /// The store listed this key as held.
    Seen {
        from: u64,
        to: u64,
        key: String,
        token: u64,
        pid: u32,
    },
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Done,
    Busy,
    Lost {
        cause: String,
    },
    Store {
        text: String,
    },
    ShuttingDown,
    /// We dropped its future.
    Cut,
    /// Its body panicked, as it was told to.
    Panicked,
    /// Anything else.
    Undeclared {
        text: String,
    },
}

/// A file of events.
#[derive(Debug)]
pub(crate) struct History(Mutex<File>);

impl History {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Self(Mutex::new(File::create(path)?)))
    }

    pub(crate) fn write(&self, event: &Event) {
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if file.write_all(&line).is_err() {
            // Without its history nothing that a process does can be judged.
            std::process::exit(3);
        }
    }
}

/// The events of a file; of the last line only if it is whole.
pub(crate) fn read(path: &Path) -> Result<VecDeque<Event>, Failure> {
    let text = fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| {
            serde_json::from_str(line).map_err(|error| format!("{}: {error}: {line}", path.display()).into())
        })
        .collect()
}
