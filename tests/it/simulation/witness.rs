//! What happened in a run: the trace, the requests of the program, and the promises that were broken.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockattr::Held;

use super::clock::StoreClock;
use super::weather::Weather;
use super::wish::Wish;

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The store had two leases of a key at once, by its own clock.
    TwoGrants,
    /// Two guards said "held" at the same instant.
    TwoBelievers,
    /// A guard said "held" and the store had nothing for it.
    BeliefWithoutLease,
    /// A guard that was lost said "held" again, or one that was given back.
    StillBelieved,
    TokenOrder,
    /// Something written under a lock that said "held" came after what a later holder wrote.
    StaleWrite,
    PolledAfterLoss,
    ReleasedUnderBody,
    /// A lock was lost, or a key was busy, and nothing had happened that explains it.
    FalseLoss,
    FalseBusy,
    /// A request ended in a way that it must not.
    Undeclared,
    AfterShutdown,
    Stuck,
    /// A lease was left behind.
    Orphan,
    /// Something goes on after all has ended.
    Leak,
    /// A key was free and somebody waited for it.
    IdleKey,
    MinHold,
}

/// One request for a lock.
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that may happen")]
#[derive(Debug)]
pub(super) struct Op {
    pub(super) machine: usize,
    pub(super) wish: Wish,
    pub(super) started: Duration,
    /// It asks and has no answer yet.
    pub(super) waiting: bool,
    /// When somebody ended its lease by force.
    pub(super) forced: Option<Duration>,
    /// Its machine stood still, its clock jumped, or its locker was shut down.
    pub(super) disturbed: bool,
    pub(super) unanswered_renewals: u64,
    pub(super) store_said_lost: bool,
    pub(super) body_alive: bool,
    pub(super) lost: bool,
    pub(super) belief: Option<Belief>,
}

impl Op {
    /// A holder whose lease was ended by force may believe in it until its next renewal, and no longer than
    /// the lease would have lasted.
    pub(super) fn is_excused(&self, now: Duration) -> bool {
        self.forced.is_some_and(|forced| now <= forced + self.wish.expires)
    }
}

/// A guard that was handed out.
#[derive(Clone, Debug)]
pub(super) struct Belief {
    pub(super) tokens: Vec<(String, u64)>,
    pub(super) held: Held,
    pub(super) ended: bool,
}

impl Belief {
    fn has(&self, key: &str, token: u64) -> bool {
        self.tokens.iter().any(|(mine, number)| mine == key && *number == token)
    }
}

pub(super) struct Witness {
    clock: StoreClock,
    pub(super) weather: Weather,
    traces: bool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    ops: BTreeMap<u64, Op>,
    faults: Vec<(Fault, String)>,
    trace: String,
    entered: u64,
}

impl Witness {
    pub(super) fn new(clock: StoreClock, weather: Weather, traces: bool) -> Arc<Self> {
        Arc::new(Self { clock, weather, traces, seen: Mutex::default() })
    }

    pub(super) fn note(&self, text: impl FnOnce() -> String) {
        if self.traces {
            let at = self.clock.elapsed();
            let _ = writeln!(self.seen().trace, "{:>12.6} {}", at.as_secs_f64(), text());
        }
    }

    pub(super) fn fault(&self, fault: Fault, text: impl FnOnce() -> String) {
        let text = text();
        self.note(|| format!("!! {fault:?}: {text}"));
        self.seen().faults.push((fault, text));
    }

    pub(super) fn begin(&self, machine: usize, wish: &Wish) -> u64 {
        let started = self.clock.elapsed();
        let mut seen = self.seen();
        let op = u64::try_from(seen.ops.len()).unwrap_or_default() + 1;
        let entry = Op {
            machine,
            wish: wish.clone(),
            started,
            waiting: true,
            forced: None,
            disturbed: false,
            unanswered_renewals: 0,
            store_said_lost: false,
            body_alive: false,
            lost: false,
            belief: None,
        };
        seen.ops.insert(op, entry);
        drop(seen);
        self.note(|| format!("op {op} on machine {machine}: {wish:?}"));
        op
    }

    /// Looks at one request, or changes it.
    pub(super) fn op<T>(&self, op: u64, look: impl FnOnce(&mut Op) -> T) -> Option<T> {
        self.seen().ops.get_mut(&op).map(look)
    }

    /// The guards of others that have one of the keys of `op`.
    pub(super) fn rivals(&self, op: u64) -> Vec<(u64, Held)> {
        let seen = self.seen();
        let Some(mine) = seen.ops.get(&op).and_then(|mine| mine.belief.as_ref()) else { return Vec::new() };
        let shares =
            |theirs: &Belief| theirs.tokens.iter().any(|(key, _)| mine.tokens.iter().any(|(k, _)| k == key));
        let now = self.clock.elapsed();
        let others = seen.ops.iter().filter(|(other, theirs)| **other != op && !theirs.is_excused(now));
        others
            .filter_map(|(other, theirs)| Some((*other, theirs.belief.as_ref()?)))
            .filter(|(_, belief)| !belief.ended && shares(belief))
            .map(|(other, belief)| (other, belief.held.clone()))
            .collect()
    }

    pub(super) fn entered(&self, op: u64, belief: Belief) {
        let mut seen = self.seen();
        seen.entered += 1;
        if let Some(entry) = seen.ops.get_mut(&op) {
            entry.waiting = false;
            entry.belief = Some(belief);
        }
    }

    /// The store has granted `key`, which was free since then. Nobody may have waited for it all the while.
    pub(super) fn taken(&self, key: &str, free_since: Duration, now: Duration) {
        if !self.weather.is_calm() {
            return;
        }
        let most = Duration::from_millis(1_100) + self.weather.delay * 6;
        let idle: Vec<_> = {
            let seen = self.seen();
            let waiting = seen.ops.iter().filter(|(_, op)| op.waiting && op.wish.waits_only_for(key));
            waiting.map(|(op, entry)| (*op, now.saturating_sub(entry.started.max(free_since)))).collect()
        };
        for (op, idle) in idle {
            if idle > most {
                self.fault(Fault::IdleKey, || format!("{key} was free for {idle:?} while {op} waited"));
            }
        }
    }

    pub(super) fn store_said_lost(&self, op: u64) {
        self.op(op, |op| op.store_said_lost = true);
    }

    pub(super) fn forced(&self, op: u64) {
        let now = self.clock.elapsed();
        self.op(op, |op| op.forced = Some(now));
    }

    /// Everything that runs on this machine was held up, or ended early.
    pub(super) fn disturbed(&self, machine: usize) {
        for op in self.seen().ops.values_mut().filter(|op| op.machine == machine) {
            op.disturbed = true;
        }
    }

    /// The store is about to end a lease for its holder.
    pub(super) fn releasing(&self, op: u64, key: &str, token: u64) {
        let under_body = self
            .op(op, |op| op.body_alive && op.belief.as_ref().is_some_and(|belief| belief.has(key, token)));
        if under_body == Some(true) {
            self.fault(Fault::ReleasedUnderBody, || {
                format!("{key} of {op} was released and its body is there")
            });
        }
    }

    /// A lease that was released with a minimum hold went to the next `held_for` after its grant.
    pub(super) fn check_min_hold(&self, op: u64, key: &str, token: u64, held_for: Duration) {
        if !self.weather.is_calm() {
            return;
        }
        let least = self.op(op, |op| {
            let entered = op.belief.as_ref().is_some_and(|belief| belief.has(key, token));
            op.wish.min_hold.filter(|_| entered && !op.lost && op.forced.is_none() && !op.disturbed)
        });
        // Where the keeper keeps it, it counts from the sending, by its own clock.
        let slack = self.weather.delay * 2 + Duration::from_millis(5);
        if let Some(Some(least)) = least
            && held_for + slack + least / 50 < least
        {
            self.fault(Fault::MinHold, || format!("{key} of {op} was kept for {held_for:?} of {least:?}"));
        }
    }

    /// A renewal is on its way, or has come back well.
    pub(super) fn renewing(&self, op: u64, well: bool) {
        self.op(op, |op| op.unanswered_renewals = if well { 0 } else { op.unanswered_renewals + 1 });
    }

    pub(super) fn report(&self) -> Report {
        let seen = &mut *self.seen();
        Report {
            faults: std::mem::take(&mut seen.faults),
            trace: std::mem::take(&mut seen.trace),
            entered: seen.entered,
            stale: 0,
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) faults: Vec<(Fault, String)>,
    pub(super) trace: String,
    /// How many locks were taken.
    pub(super) entered: u64,
    /// How many stale writes a register took that does not check tokens.
    pub(super) stale: u64,
}
