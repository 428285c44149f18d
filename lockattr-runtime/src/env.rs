//! The one seam to the outside: clock, executor and chance. Thread and boot-time clock in production,
//! the caller's paused runtime in simulations.

use std::fmt;
use std::sync::Arc;

use crate::keeper::Keeper;
use crate::lease::Owner;
use crate::store::Boxed;
use crate::time::Moment;

/// Clock, executor and chance of a locker.
pub(crate) trait Environment: Send + Sync + fmt::Debug {
    fn now(&self) -> Moment;
    /// Runs `work` to its end, whatever happens to the caller. Never blocks.
    fn spawn(&self, work: Boxed<'static, ()>);
    /// Ready once the clock has reached `at`.
    fn sleep_until(&self, at: Moment) -> Boxed<'static, ()>;
    fn random(&self) -> u64;
    fn owner(&self) -> Owner;
    fn is_forked(&self) -> bool;
}

pub(crate) type Env = Arc<dyn Environment>;

/// The environment of this machine.
#[derive(Debug)]
pub(crate) struct Machine(pub(crate) Arc<Keeper>);

impl Environment for Machine {
    fn now(&self) -> Moment {
        Moment::now()
    }

    fn spawn(&self, work: Boxed<'static, ()>) {
        self.0.spawn(work);
    }

    fn sleep_until(&self, at: Moment) -> Boxed<'static, ()> {
        let keeper = Arc::clone(&self.0);
        Box::pin(async move { keeper.sleep_until(at).await })
    }

    fn random(&self) -> u64 {
        self.owner().as_uuid().as_u64_pair().1
    }

    fn owner(&self) -> Owner {
        Owner::random()
    }

    fn is_forked(&self) -> bool {
        self.0.is_forked()
    }
}
