//! A simulated machine: its own clock over the caller's paused runtime, its own chance from a seed, and a
//! switch that stops everything on it, as a paused process is stopped.
//!
//! Invariant: with the same seed and the same program, everything happens in the same order.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::env::Environment;
use crate::lease::Owner;
use crate::lock::Locker;
use crate::store::{Boxed, Store};
use crate::time::Moment;

/// A machine (or process) of a simulation. Clones are the same machine.
///
/// ```
/// # use std::time::Duration;
/// use lockattr_runtime::{Locker, SimMachine, store::MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// let machine = SimMachine::new(7);
/// let locker = Locker::simulated(MemoryStore::new(), &machine);
/// let guard = locker.lock("k").acquire().await.unwrap();
/// machine.jump(Duration::from_secs(120)); // as after a suspend
/// assert!(!guard.is_held());
/// # }
/// ```
#[derive(Clone)]
pub struct SimMachine(Arc<Machine>);

struct Machine {
    state: Mutex<State>,
    jumped: Notify,
}

struct State {
    /// Where the clock stood, on both clocks, when its rate or offset changed last.
    anchor: (Instant, Moment),
    /// How much faster than the runtime's clock it runs, in parts per million.
    drift: i64,
    paused: bool,
    stopped: Vec<Waker>,
    chance: u64,
}

impl SimMachine {
    /// A machine whose chance follows from `seed`. Its clock starts at one hour.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let start = Moment::from_nanos(3_600_000_000_000);
        Self(Arc::new(Machine {
            state: Mutex::new(State {
                anchor: (Instant::now(), start),
                drift: 0,
                paused: false,
                stopped: Vec::new(),
                chance: seed ^ 0x9E37_79B9_7F4A_7C15,
            }),
            jumped: Notify::new(),
        }))
    }

    /// This machine's clock.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.state().now()
    }

    /// Lets the clock jump forward, as it does over a suspend.
    pub fn jump(&self, by: Duration) {
        {
            let mut state = self.state();
            let now = state.now();
            state.anchor = (Instant::now(), now + by);
        }
        self.0.jumped.notify_waiters();
    }

    /// Lets the clock run faster (or slower) by `ppm` parts per million from now on.
    pub fn drift(&self, ppm: i64) {
        let mut state = self.state();
        state.anchor = (Instant::now(), state.now());
        state.drift = ppm;
    }

    /// Stops everything that runs on this machine until [`resume`](Self::resume). Its clock goes on.
    pub fn pause(&self) {
        self.state().paused = true;
    }

    /// Lets everything on this machine go on.
    pub fn resume(&self) {
        let stopped = {
            let mut state = self.state();
            state.paused = false;
            std::mem::take(&mut state.stopped)
        };
        stopped.into_iter().for_each(Waker::wake);
    }

    /// Runs `work` on this machine: it stops while the machine is paused.
    pub fn run<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        OnMachine { machine: self.clone(), work: Box::pin(work) }
    }

    /// The next number of this machine's chance (splitmix64).
    #[must_use]
    pub fn chance(&self) -> u64 {
        let mut state = self.state();
        state.chance = state.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn now(&self) -> Moment {
        let elapsed = u64::try_from(self.anchor.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let extra = i128::from(elapsed) * i128::from(self.drift) / 1_000_000;
        let local = u64::try_from(i128::from(elapsed) + extra).unwrap_or_default();
        self.anchor.1 + Duration::from_nanos(local)
    }
}

impl fmt::Debug for SimMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimMachine").field("now", &self.now()).finish()
    }
}

struct OnMachine<F> {
    machine: SimMachine,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for OnMachine<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut state = self.machine.state();
            if state.paused {
                state.stopped.push(cx.waker().clone());
                return Poll::Pending;
            }
        }
        self.work.as_mut().poll(cx)
    }
}

impl Environment for SimMachine {
    fn now(&self) -> Moment {
        Self::now(self)
    }

    fn start(&self) -> io::Result<()> {
        Ok(())
    }

    fn spawn(&self, work: Boxed<'static, ()>) {
        // A simulation whose runtime has ended has nothing left to run.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(self.run(work));
        }
    }

    fn sleep_until(&self, at: Moment) -> Boxed<'static, ()> {
        let machine = self.clone();
        Box::pin(async move {
            loop {
                let jumped = machine.0.jumped.notified();
                let left = machine.now().until(at);
                if left.is_zero() {
                    return;
                }
                // The runtime's timers have a millisecond's grain; a clock that drifts is looked at again.
                let sleep = tokio::time::sleep(left.max(Duration::from_millis(1)));
                crate::lock::either(pin!(jumped), pin!(sleep)).await;
            }
        })
    }

    fn random(&self) -> u64 {
        self.chance()
    }

    fn owner(&self) -> Owner {
        Owner::from_uuid(Uuid::from_u64_pair(self.chance(), self.chance()))
    }

    fn is_forked(&self) -> bool {
        false
    }

    fn may_block(&self) -> Result<(), &'static str> {
        Err("a simulated locker has no thread to wait for; use its async methods")
    }
}

impl Locker {
    /// A locker on a simulated machine: all it does happens on the caller's runtime, which may be paused
    /// (`tokio::time::pause`), and on that machine's clock. No thread is started.
    #[must_use]
    pub fn simulated(store: impl Store, machine: &SimMachine) -> Self {
        Self::on(Arc::new(store), Arc::new(machine.clone()))
    }
}
