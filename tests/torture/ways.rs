//! The ways to lock that the public interface has, each with the same body: read both registers, think, write both.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lockattr::{Guard, Held, LockBuilder, LockError, Locker, distributed_lock};

use crate::belief::{Belief, Recorder};
use crate::cut::Told;
use crate::mischief;
use crate::register::Client;

/// What a client works with.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) locker: Locker,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) register: Client,
    pub(crate) ttl: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Attribute,
    Run,
    Guard,
    /// A guard that is dropped on a thread without a runtime.
    DroppedElsewhere,
    /// A guard from a runtime that has ended.
    OutlivesItsRuntime,
    /// A guard whose process is forked while it is held; the child drops its copy.
    Forked,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) op: u64,
    pub(crate) keys: Vec<String>,
    pub(crate) way: Way,
    pub(crate) wait: Duration,
    pub(crate) think: Duration,
    /// Whether the body blocks its thread while it thinks, so that nothing can stop it there.
    pub(crate) blocking: bool,
    pub(crate) panics: bool,
}

impl Tools {
    fn builder(&self, call: &Call) -> LockBuilder {
        let builder = match call.keys.as_slice() {
            [key] => self.locker.lock(key),
            keys => self.locker.lock_many(keys),
        };
        builder.expires(self.ttl).wait(call.wait)
    }
}

pub(crate) async fn perform(tools: &Tools, call: &Call) -> Result<(), LockError> {
    match (call.way, call.keys.as_slice()) {
        (Way::Attribute, [key]) => of_one(tools, key, call).await,
        (Way::Attribute, keys) => of_several(tools, keys, call).await,
        (Way::Run, _) => tools.builder(call).run(async |held| work(tools, &held, call).await).await?,
        (Way::Guard, _) => {
            let guard = tools.builder(call).acquire().await?;
            work(tools, &guard.held(), call).await?;
            guard.release().await
        }
        (Way::DroppedElsewhere, _) => {
            let guard = tools.builder(call).acquire().await?;
            work(tools, &guard.held(), call).await?;
            dropped_elsewhere(tools, guard);
            Ok(())
        }
        (Way::OutlivesItsRuntime, _) => {
            let guard = in_a_runtime_of_its_own(tools, call)?;
            work(tools, &guard.held(), call).await?;
            dropped_elsewhere(tools, guard);
            Ok(())
        }
        (Way::Forked, _) => {
            let guard = tools.builder(call).acquire().await?;
            let held = guard.held();
            let guard = mischief::fork(tools, guard, &call.keys[0]);
            work(tools, &held, call).await?;
            guard.release().await
        }
    }
}

#[distributed_lock(key = "{key}", expires = tools.ttl, wait = call.wait, locker = tools.locker, lease = lease)]
async fn of_one(tools: &Tools, key: &str, call: &Call) -> Result<(), LockError> {
    work(tools, &lease, call).await
}

#[distributed_lock(keys = keys, expires = tools.ttl, wait = call.wait, locker = tools.locker, lease = lease)]
async fn of_several(tools: &Tools, keys: &[String], call: &Call) -> Result<(), LockError> {
    work(tools, &lease, call).await
}

fn dropped_elsewhere(tools: &Tools, guard: Guard) {
    if thread::spawn(move || drop(guard)).join().is_err() {
        tools.recorder.wrong("dropping a guard without a runtime panicked");
    }
}

fn in_a_runtime_of_its_own(tools: &Tools, call: &Call) -> Result<Guard, LockError> {
    let request = tools.builder(call);
    thread::scope(|scope| {
        let acquired = scope.spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .map(|runtime| runtime.block_on(request.acquire()))
        });
        match acquired.join() {
            Ok(Ok(acquired)) => acquired,
            _ => Err(LockError::busy("there is no thread or no runtime")),
        }
    })
}

/// The body.
async fn work(tools: &Tools, held: &Held, call: &Call) -> Result<(), LockError> {
    let (op, register) = (call.op, &tools.register);
    let belief = Belief::enter((&tools.recorder, register), op, held, call.blocking);
    let mut read = Vec::new();
    for key in held.keys() {
        let token = held.token_of(key).map_or(0, lockattr::lease::FencingToken::get);
        read.push((key, token, register.read(op, key, token, call.blocking)));
    }
    if call.blocking {
        thread::sleep(call.think);
    } else {
        tokio::time::sleep(call.think).await;
        let stops_by_itself = matches!(call.way, Way::Attribute | Way::Run);
        if !held.is_held() && stops_by_itself {
            tools.recorder.wrong(format!("a body went on after its lock was lost (call {op})"));
        }
        held.check()?;
    }
    if call.panics {
        std::panic::panic_any(Told);
    }
    for (key, token, values) in read {
        register.write(op, key, token, values);
    }
    belief.finish();
    Ok(())
}
