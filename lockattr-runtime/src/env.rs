//! The one seam to the outside: clock, executor and chance. Thread and boot-time clock in production,
//! the caller's paused runtime in simulations.

use std::fmt;
use std::io;
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
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self { keeper: OnceLock::new(), pid: std::process::id() }
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

    fn random(&self) -> u64 {
        self.owner().as_uuid().as_u64_pair().1
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
