//! The one seam to the outside: clock, executor and chance. Thread and boot-time clock in production,
//! the caller's paused runtime in simulations.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::keeper::{self, Keeper};
use crate::lease::Owner;
use crate::store::Boxed;
use crate::time::Moment;

/// Clock, executor and chance of a locker.
pub(crate) trait Environment: Send + Sync + fmt::Debug {
    fn now(&self) -> Moment;
    /// Makes sure that work can be run.
    fn start(&self) -> io::Result<()>;
    /// Runs `work` to its end, whatever happens to the caller. Never blocks.
    fn spawn(&self, work: Boxed<'static, ()>);
    /// Ready once the clock has reached `at`.
    fn sleep_until(&self, at: Moment) -> Boxed<'static, ()>;
    fn random(&self) -> u64;
    fn owner(&self) -> Owner;
    fn is_forked(&self) -> bool;
    /// Whether the caller's thread may wait for what it [spawns](Self::spawn); otherwise why not.
    fn may_block(&self) -> Result<(), &'static str>;
}

pub(crate) type Env = Arc<dyn Environment>;

/// The environment of this machine. Its keeper starts with the first lock.
#[derive(Debug)]
pub(crate) struct Machine {
    keeper: OnceLock<Arc<Keeper>>,
    pid: u32,
    chance: AtomicU64,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let seed = Owner::random().as_uuid().as_u64_pair().1;
        Self { keeper: OnceLock::new(), pid: std::process::id(), chance: AtomicU64::new(seed) }
    }

    fn keeper(&self) -> io::Result<&Arc<Keeper>> {
        if let Some(keeper) = self.keeper.get() {
            return Ok(keeper);
        }
        let keeper = Keeper::get()?;
        Ok(self.keeper.get_or_init(|| keeper))
    }
}

impl Environment for Machine {
    fn now(&self) -> Moment {
        Moment::now()
    }

    fn start(&self) -> io::Result<()> {
        self.keeper().map(drop)
    }

    fn spawn(&self, work: Boxed<'static, ()>) {
        match self.keeper() {
            Ok(keeper) => drop(keeper.spawn(work)),
            Err(error) => tracing::error!(%error, "the keeper thread cannot be started"),
        }
    }

    fn sleep_until(&self, at: Moment) -> Boxed<'static, ()> {
        let keeper = self.keeper().ok().cloned();
        Box::pin(async move {
            match keeper {
                Some(keeper) => keeper.sleep_until(at).await,
                // Nothing was taken without a keeper, so there is nothing to wait for.
                None => std::future::pending().await,
            }
        })
    }

    /// Spreads pauses; nobody need fear that it is guessed, so it is not worth a system call each time.
    fn random(&self) -> u64 {
        // SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014).
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.chance.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn owner(&self) -> Owner {
        Owner::random()
    }

    fn is_forked(&self) -> bool {
        self.pid != std::process::id()
    }

    fn may_block(&self) -> Result<(), &'static str> {
        if keeper::is_this_thread() {
            return Err(
                "this is the keeper's own thread, which would wait for itself; take the lock on another",
            );
        }
        Ok(())
    }
}
