//! All that takes part in a run, and what must hold whenever one of them looks at its lock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockattr::{Held, LockError, Locker, LossCause, SimMachine, Wait};

use super::actor::Ended;
use super::chance::Chance;
use super::clock::StoreClock;
use super::ledger::Ledger;
use super::weather::{Flaw, Weather};
use super::wire::{OneByOne, Wire};
use super::witness::{Belief, Fault, Op, Witness};

pub(super) struct Scene {
    pub(super) weather: Weather,
    pub(super) clock: StoreClock,
    pub(super) witness: Arc<Witness>,
    pub(super) ledger: Arc<Ledger>,
    hosts: Mutex<Vec<Host>>,
    registers: Mutex<Registers>,
}

/// One machine and the process on it.
pub(super) struct Host {
    pub(super) machine: SimMachine,
    pub(super) wire: Wire,
    pub(super) locker: Locker,
    /// How often it was shut down and started again.
    pub(super) generation: u64,
    /// It is being shut down.
    pub(super) closing: bool,
    pub(super) crashed: bool,
}

/// What the locks protect: the last token written for each key, and how often an older one came after it.
#[derive(Default)]
struct Registers {
    last: BTreeMap<String, u64>,
    unchecked: BTreeMap<String, u64>,
    stale: u64,
}

impl Scene {
    pub(super) fn new(weather: &Weather, chance: &mut Chance, traces: bool) -> Arc<Self> {
        let clock = StoreClock::new();
        let witness = Witness::new(clock.clone(), weather.clone(), traces);
        let ledger = Arc::new(Ledger::new(clock.clone(), Arc::clone(&witness), weather.flaw));
        let hosts = (0..weather.machines)
            .map(|_| {
                let machine = SimMachine::new(chance.number());
                let wire =
                    Wire::new(Arc::clone(&ledger), Arc::clone(&witness), weather.clone(), chance.split());
                let locker = start(weather, &wire, &machine);
                machine.drift(drift(weather, chance));
                Host { machine, wire, locker, generation: 0, closing: false, crashed: false }
            })
            .collect();
        Arc::new(Self {
            weather: weather.clone(),
            clock,
            witness,
            ledger,
            hosts: Mutex::new(hosts),
            registers: Mutex::default(),
        })
    }

    /// Looks at one machine, or changes it.
    pub(super) fn host<T>(&self, machine: usize, look: impl FnOnce(&mut Host) -> T) -> T {
        look(&mut self.hosts()[machine])
    }

    pub(super) fn hosts(&self) -> MutexGuard<'_, Vec<Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn generation(&self, machine: usize) -> u64 {
        self.host(machine, |host| host.generation)
    }

    pub(super) fn locker_of(&self, op: u64) -> Locker {
        let machine = self.witness.op(op, |op| op.machine).unwrap_or_default();
        self.host(machine, |host| host.locker.clone())
    }

    /// Starts the process of a machine anew, after its locker was shut down.
    pub(super) fn restart(&self, machine: usize) {
        self.host(machine, |host| {
            host.locker = start(&self.weather, &host.wire, &host.machine);
            host.generation += 1;
            host.closing = false;
        });
    }

    /// `op` has its lock.
    pub(super) fn believes(&self, op: u64, held: &Held) {
        let tokens =
            held.keys().filter_map(|key| Some((key.to_owned(), held.token_of(key)?.get()))).collect();
        self.witness.note(|| format!("op {op} has {tokens:?}"));
        self.witness.entered(op, Belief { tokens, held: held.clone(), ended: false });
        let machine = self.witness.op(op, |op| op.machine).unwrap_or_default();
        if self.host(machine, |host| host.closing) {
            self.witness.fault(Fault::AfterShutdown, || format!("{op} got its lock from a locker that ends"));
        }
        self.look(op);
    }

    /// The body of `op` is about to be polled.
    pub(super) fn polled(&self, op: u64, stops: bool) {
        let held = self.look(op);
        if stops && !held {
            self.witness.fault(Fault::PolledAfterLoss, || format!("the body of {op} is polled"));
        }
    }

    /// Whether `op` believes that it has its lock; and if so, nobody else may, and the store must agree.
    fn look(&self, op: u64) -> bool {
        let Some(Some(belief)) = self.witness.op(op, |op| op.belief.clone()) else { return false };
        let held = belief.held.is_held();
        if !held {
            self.witness.op(op, |op| op.belief.as_mut().map(|belief| belief.ended = true));
            return false;
        }
        if belief.ended {
            self.witness.fault(Fault::StillBelieved, || format!("{op} says it is held after it was not"));
        }
        if self.is_excused(op) {
            return true;
        }
        for (key, token) in &belief.tokens {
            if let Err(reason) = self.ledger.is_live(key, *token) {
                self.witness
                    .fault(Fault::BeliefWithoutLease, || format!("{op} says it is held, and {reason}"));
            }
        }
        for (other, theirs) in self.witness.rivals(op) {
            if theirs.is_held() {
                self.witness.fault(Fault::TwoBelievers, || format!("{op} and {other} say they hold it"));
            }
        }
        true
    }

    fn is_excused(&self, op: u64) -> bool {
        let now = self.clock.elapsed();
        self.witness.op(op, |op| op.is_excused(now)) == Some(true)
    }

    /// A write at the very instant at which the lock was held.
    pub(super) fn write(&self, op: u64, key: &str, token: u64) {
        let last = self.registers().last.insert(key.to_owned(), token);
        let forced = self.is_excused(op);
        if last.is_some_and(|last| last > token) && !forced {
            self.witness.fault(Fault::StaleWrite, || format!("{op} wrote {token} after {last:?}"));
        }
        self.write_unchecked(key, token);
    }

    /// A write that arrives now, whenever it was sent, at a register that does not check its token.
    pub(super) fn write_unchecked(&self, key: &str, token: u64) {
        let registers = &mut *self.registers();
        let last = registers.unchecked.insert(key.to_owned(), token);
        if last.is_some_and(|last| last > token) {
            registers.stale += 1;
        }
    }

    pub(super) fn stale_writes(&self) -> u64 {
        self.registers().stale
    }

    fn registers(&self) -> MutexGuard<'_, Registers> {
        self.registers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request `op` has ended: in one of the declared ways, and with a reason.
    pub(super) fn ended(&self, op: u64, generation: u64, ended: &Ended) {
        self.witness.note(|| format!("op {op} ends: {ended:?}"));
        self.look(op);
        let still = self.witness.op(op, |op| {
            op.waiting = false;
            op.lost = matches!(ended, Some(Err(LockError::Lost { .. })));
            op.belief.as_ref().is_some_and(|belief| belief.held.is_held())
        });
        if still == Some(true) {
            self.witness
                .fault(Fault::StillBelieved, || format!("{op} gave it back and its handle says held"));
        }
        let Some(Err(error)) = ended else { return };
        let weather = &self.weather;
        let explained = match error {
            LockError::Busy { locked, holder, .. } => {
                self.check_busy(op, locked.key(), holder.is_some());
                self.witness.op(op, |op| op.wish.wait != Wait::Forever)
            }
            LockError::Store { .. } => Some(!weather.is_calm()),
            LockError::ShuttingDown { .. } => self.witness.op(op, |op| {
                let host = |host: &mut Host| host.closing || host.generation != generation;
                self.host(op.machine, host)
            }),
            LockError::Lost { cause, .. } => {
                let explained = self.witness.op(op, |op| explains(op, *cause, weather, self.clock.elapsed()));
                if explained == Some(false) {
                    self.witness.fault(Fault::FalseLoss, || format!("{op}: {error}"));
                }
                Some(true)
            }
            _ => Some(false),
        };
        if explained != Some(true) {
            self.witness.fault(Fault::Undeclared, || format!("{op}: {error}"));
        }
    }

    /// Busy is only said when another had the key at some time while it was asked for.
    fn check_busy(&self, op: u64, key: &str, told: bool) {
        // Those behind the head of a line know what it was told last, at most a pause ago.
        let pause = Duration::from_millis(1_100) + self.weather.delay * 4;
        let since = self.witness.op(op, |op| op.started.saturating_sub(pause)).unwrap_or_default();
        // What another owner of the same request left on its way may land and be in its own way.
        let others = told && !self.weather.is_belated() && !self.weather.back_steps;
        if others && !self.ledger.was_held_by_another(key, op, since) {
            self.witness.fault(Fault::FalseBusy, || format!("{op} was told that {key} is taken"));
        }
    }
}

fn start(weather: &Weather, wire: &Wire, machine: &SimMachine) -> Locker {
    let locker = if weather.atomic_many {
        Locker::simulated(wire.clone(), machine)
    } else {
        Locker::simulated(OneByOne(wire.clone()), machine)
    };
    locker.lock_delay(weather.lock_delay)
}

pub(super) fn drift(weather: &Weather, chance: &mut Chance) -> i64 {
    if weather.flaw == Some(Flaw::SlowMachines) {
        return -330_000;
    }
    let most = i64::try_from(weather.drift).unwrap_or_default();
    i64::try_from(chance.number() % (2 * weather.drift + 1)).unwrap_or_default() - most
}

/// Whether something happened that a loss for this reason comes from.
fn explains(op: &Op, cause: LossCause, weather: &Weather, now: Duration) -> bool {
    match cause {
        LossCause::NotOurs => op.forced.is_some() || (op.store_said_lost && !weather.is_calm()),
        LossCause::Expired => {
            !op.wish.renew || op.disturbed || (op.unanswered_renewals > 0 && !weather.is_calm())
        }
        LossCause::MaxHold => op
            .wish
            .max_hold
            .is_some_and(|most| op.disturbed || now.saturating_sub(op.started) + most / 50 >= most),
        LossCause::ShutDown => op.disturbed,
        _ => false,
    }
}
