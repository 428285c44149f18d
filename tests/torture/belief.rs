//! What a client believes: from the grant's answer, for as long as its handle would say "held".
//!
//! Invariant: the interval in the history is never longer than the real one, so that two that overlap there
//! have overlapped in fact. Each end is therefore read before the step that it stands for.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lockattr::Held;

use crate::Failure;
use crate::history::{Event, History, now};
use crate::register::Client;

/// How often handles are asked.
const TICK: Duration = Duration::from_millis(5);
const MILLI: u64 = 1_000_000;
/// A tick that comes this much late is a stall.
const STALL: u64 = 50 * MILLI;

/// Writes a client's history.
#[derive(Debug)]
pub(crate) struct Recorder {
    history: History,
    next: AtomicU64,
    believers: Mutex<BTreeMap<u64, (Held, u64)>>,
}

impl Recorder {
    pub(crate) fn start(path: &Path) -> Result<Arc<Self>, Failure> {
        let recorder = Arc::new(Self {
            history: History::create(path)?,
            next: AtomicU64::new(0),
            believers: Mutex::default(),
        });
        recorder.write(&Event::Started { pid: std::process::id(), at: now() });
        let ticking = Arc::clone(&recorder);
        thread::spawn(move || ticking.tick());
        Ok(recorder)
    }

    pub(crate) fn write(&self, event: &Event) {
        self.history.write(event);
    }

    pub(crate) fn wrong(&self, text: impl Into<String>) {
        self.write(&Event::Wrong { text: text.into() });
    }

    pub(crate) fn next_op(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn believers(&self) -> MutexGuard<'_, BTreeMap<u64, (Held, u64)>> {
        self.believers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes stalls, and renewals that moved the end of a belief.
    fn tick(&self) {
        let mut last = now();
        loop {
            thread::sleep(TICK);
            let before = now();
            if before > last + STALL {
                self.write(&Event::Stall { from: last, to: before });
            }
            last = before;
            for (op, (held, known)) in self.believers().iter_mut() {
                // Close to its end it is left alone: asking then would itself be what notices the loss.
                if before + 20 * MILLI < *known {
                    let until = until(held);
                    if until > *known + MILLI {
                        *known = until;
                        self.write(&Event::Until { op: *op, until });
                    }
                }
            }
        }
    }
}

fn until(held: &Held) -> u64 {
    let asked = now();
    asked + u64::try_from(held.remaining().as_nanos()).unwrap_or_default()
}

/// A body under a lock, from its first step to its end, however it ends.
pub(crate) struct Belief {
    recorder: Arc<Recorder>,
    register: Client,
    op: u64,
    blocking: bool,
    finished: bool,
}

impl Belief {
    pub(crate) fn enter(
        (recorder, register): (&Arc<Recorder>, &Client),
        op: u64,
        held: &Held,
        blocking: bool,
    ) -> Self {
        let from = now();
        let is_held = held.is_held();
        let to = now();
        let until = until(held);
        let tokens =
            held.keys().filter_map(|key| Some((key.to_owned(), held.token_of(key)?.get()))).collect();
        recorder.write(&Event::Got { op, from, to, held: is_held, until, tokens });
        recorder.believers().insert(op, (held.clone(), until));
        Self { recorder: Arc::clone(recorder), register: register.clone(), op, blocking, finished: false }
    }

    pub(crate) fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Belief {
    fn drop(&mut self) {
        let at = now();
        self.recorder.believers().remove(&self.op);
        self.recorder.write(&Event::Left {
            op: self.op,
            at,
            finished: self.finished,
            blocking: self.blocking,
        });
        self.register.leave(self.op);
    }
}
