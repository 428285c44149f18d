//! The wait loop: one request from its check to its guard.

use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::claim::Claim;
use super::guard::Guard;
use super::many::Plan;
use super::pursuit::{Answer, Pursuit, Reason, Step};
use super::queue::{Seen, Ticket};
use super::shared::{Shared, either, until};
use super::{Locker, scope, watch};
use crate::error::{self, LockError, Locked};
use crate::held::{Origin, Tenure};
use crate::lease::{Acquired, AcquiredMany, FencingToken, Holder, Lease};
use crate::observe;
use crate::options::{LockOptions, Wait};
use crate::store::{Feature, StoreError};
use crate::term::{Standing, Term};
use crate::time::Moment;
use tracing::Instrument as _;

/// What the last answers said, for the error.
#[derive(Default)]
struct Answers {
    taken: Option<(usize, Option<Arc<Holder>>)>,
    failure: Option<Arc<StoreError>>,
}

impl Answers {
    /// Whether the store certainly did nothing.
    fn was_refused(&self, answer: Answer) -> bool {
        let failure = self.failure.as_ref().filter(|_| answer == Answer::Failed { undone: false });
        failure.is_some_and(|failure| !failure.is_unknown())
    }

    /// What those who wait behind get to know of `answer`.
    fn to_tell(&self, answer: Answer, me: &Arc<Holder>) -> Seen {
        match (answer, &self.failure, &self.taken) {
            (Answer::Failed { .. }, Some(failure), _) => Seen::Failed(Arc::clone(failure)),
            (Answer::Taken { .. }, _, Some((_, holder))) => Seen::Taken(holder.clone()),
            (Answer::Granted { .. }, ..) => Seen::Taken(Some(Arc::clone(me))),
            _ => Seen::Nothing,
        }
    }
}

impl Locker {
    /// Takes all of `keys` (in any order, duplicates once; at least one) or none.
    ///
    /// `place` is where that was asked for.
    pub(crate) async fn enter(
        &self,
        keys: Vec<Locked>,
        options: LockOptions,
        place: &'static Location<'static>,
    ) -> Result<Guard, LockError> {
        let shared = &self.shared;
        let name = keys.first().cloned().unwrap_or_else(|| Locked::plain(""));
        let started = shared.env.now();
        let mut unfinished = Unfinished { shared, name: &name, started, armed: true };
        let span = observe::acquiring(&name, shared.store.name());
        let waits = options.wait != Wait::AtMost(Duration::ZERO);
        let entered = Box::pin(self.pursue(keys, &options, place, started)).instrument(span).await;
        unfinished.armed = false;
        if let Err(error) = &entered {
            let waited = shared.env.now().since(started);
            observe::not_acquired(error, shared.store.name(), waited, waits);
        }
        entered
    }

    pub(super) async fn pursue(
        &self,
        keys: Vec<Locked>,
        options: &LockOptions,
        place: &'static Location<'static>,
        started: Moment,
    ) -> Result<Guard, LockError> {
        let shared = &self.shared;
        let plan = Plan::new(self, keys, options, place)?;
        if let Some(guard) = self.enter_again(&plan, options)? {
            return Ok(guard);
        }
        self.refuse_early(&plan)?;
        let ticket = match options.wait {
            Wait::AtMost(limit) if limit.is_zero() => None,
            Wait::AtMost(_) | Wait::Forever => Some(self.wait_in_line(&plan, options, started).await?),
        };
        let mut pursuit = Pursuit::new(plan.terms, options.wait, started);
        let mut claim = Claim::new(shared, plan.leases(shared.env.owner()), plan.names[0].clone());
        let mut seen = Answers::default();
        loop {
            let sent = shared.env.now();
            claim.sending(sent);
            let (answer, tokens) = attempt(shared, claim.leases(), &pursuit, &mut seen).await;
            if matches!(answer, Answer::Taken { .. } | Answer::Spent) || seen.was_refused(answer) {
                claim.holds_nothing();
            }
            if let Some(ticket) = &ticket {
                let taken = seen.taken.as_ref().filter(|_| matches!(answer, Answer::Taken { .. }));
                let blocked_by = taken.map(|(index, _)| *index);
                ticket.tell(seen.to_tell(answer, &claim.leases()[0].holder), blocked_by);
            }
            match pursuit.answered(sent, shared.env.now(), answer, shared.env.random()) {
                Step::Enter(term) => {
                    let locked = plan.names[0].clone();
                    let guard = self.guard(plan, claim, tokens, term, options, started);
                    // Asked now that it is on the list of what is held: a shutdown sees one or the other.
                    return if shared.is_closing() {
                        Err(LockError::ShuttingDown { locked })
                    } else {
                        Ok(guard)
                    };
                }
                Step::GiveUp(reason) => return Err(self.failed(&plan, reason, seen, started)),
                Step::Again { at, fresh } => {
                    if fresh {
                        // The old claim goes, and gives back what it may hold.
                        let leases = plan.leases(shared.env.owner());
                        claim = Claim::new(shared, leases, plan.names[0].clone());
                    }
                    // A hint says that somebody gave the key back; after anything but "taken" that was us.
                    let hints = ticket.as_ref().filter(|_| matches!(answer, Answer::Taken { .. }));
                    self.pause(&plan, at, hints).await?;
                }
            }
        }
    }

    /// Another guard of the lock that the running body holds, if that covers all keys and the caller allows it.
    /// Nothing new is taken, so a shutdown does not keep a body that runs on from it.
    fn enter_again(&self, plan: &Plan, options: &LockOptions) -> Result<Option<Guard>, LockError> {
        if self.shared.env.is_forked() {
            return Err(LockError::Forked { locked: plan.names[0].clone() });
        }
        if !options.reentrant {
            return Ok(None);
        }
        let Some((tenure, _)) = scope::holder_of(self.shared.store_id(), &plan.keys[0]) else {
            return Ok(None);
        };
        if !plan.keys.iter().all(|key| tenure.leases.iter().any(|lease| lease.key == *key)) {
            return Ok(None);
        }
        match tenure.standing() {
            Standing::Lost(cause) => Err(tenure.lost_error(cause)),
            Standing::Held | Standing::Closed => Ok(Guard::again(&self.shared, &tenure, options)),
        }
    }

    /// What needs no store to be refused.
    fn refuse_early(&self, plan: &Plan) -> Result<(), LockError> {
        let locked = || plan.names[0].clone();
        if self.shared.is_closing() {
            return Err(LockError::ShuttingDown { locked: locked() });
        }
        self.shared.env.start().map_err(|error| LockError::Setup {
            reason: format!("the keeper thread cannot be started: {error}"),
        })?;
        for (key, name) in plan.keys.iter().zip(&plan.names) {
            if let Some((tenure, outer)) = scope::holder_of(self.shared.store_id(), key) {
                let (locked, outer_place) = (name.clone(), tenure.place);
                return Err(LockError::WouldDeadlock { locked, place: plan.place, outer, outer_place });
            }
        }
        Ok(())
    }

    async fn wait_in_line(
        &self,
        plan: &Plan,
        options: &LockOptions,
        started: Moment,
    ) -> Result<Ticket, LockError> {
        let shared = &self.shared;
        let locked = || plan.names[0].clone();
        let ticket = shared
            .queues
            .join(plan.line(), self.max_waiters)
            .map_err(|waiting| LockError::QueueFull { locked: locked(), waiting })?;
        shared.tell_population();
        watch::start(shared);
        let deadline = match options.wait {
            Wait::AtMost(limit) => started + limit,
            Wait::Forever => Moment::NEVER,
        };
        let closed = shared.closed.notified();
        let turn = until(either(pin!(closed), shared.env.sleep_until(deadline)), pin!(ticket.turn())).await;
        if shared.is_closing() {
            return Err(LockError::ShuttingDown { locked: locked() });
        }
        if turn.is_some() {
            return Ok(ticket);
        }
        let waited = shared.env.now().since(started);
        let (seen, index) = ticket.seen();
        Err(match seen {
            Seen::Failed(source) => {
                let (step, store) = (error::Step::Acquire, shared.store.name());
                LockError::Store { locked: locked(), step, store, source }
            }
            Seen::Taken(holder) => LockError::Busy { locked: plan.names[index].clone(), waited, holder },
            // Whether it is taken, nobody knows yet: this one asks as well, once.
            Seen::Nothing => return Ok(ticket),
        })
    }

    /// Sleeps until `at`, or less on a hint.
    async fn pause(&self, plan: &Plan, at: Moment, ticket: Option<&Ticket>) -> Result<(), LockError> {
        let shared = &self.shared;
        let closed = shared.closed.notified();
        if !shared.is_closing() && at > shared.env.now() {
            let sleep = shared.env.sleep_until(at);
            match ticket {
                Some(ticket) => either(pin!(closed), either(pin!(ticket.hint()), sleep)).await,
                None => either(pin!(closed), sleep).await,
            }
        }
        if shared.is_closing() {
            return Err(LockError::ShuttingDown { locked: plan.names[0].clone() });
        }
        Ok(())
    }

    fn guard(
        &self,
        plan: Plan,
        claim: Claim,
        tokens: Vec<FencingToken>,
        term: Term,
        options: &LockOptions,
        started: Moment,
    ) -> Guard {
        let shared = &self.shared;
        let env = Arc::clone(&shared.env);
        let origin = Origin {
            id: shared.next_id(),
            store: shared.store_id(),
            place: plan.place,
            min_hold: options.min_hold,
        };
        let tenure = Tenure::new(origin, plan.names, claim.settle(), tokens, term, env);
        let guard = Guard::new(shared, tenure, options);
        let limit = match options.wait {
            Wait::AtMost(limit) => Some(limit),
            Wait::Forever => None,
        };
        observe::acquired(guard.tenure(), shared.store.name(), shared.env.now().since(started), limit);
        self.collect_sometimes();
        guard
    }

    fn failed(&self, plan: &Plan, reason: Reason, seen: Answers, started: Moment) -> LockError {
        let store = self.shared.store.name();
        let step = error::Step::Acquire;
        let waited = self.shared.env.now().since(started);
        let (index, holder) = seen.taken.unwrap_or_default();
        match reason {
            Reason::Busy => LockError::Busy { locked: plan.names[index].clone(), waited, holder },
            Reason::Store => LockError::Store {
                locked: plan.names[0].clone(),
                step,
                store,
                source: seen.failure.unwrap_or_else(|| Arc::new(StoreError::unknown("no answer in time"))),
            },
            Reason::TooLate => LockError::Store {
                locked: plan.names[0].clone(),
                step,
                store,
                source: Arc::new(StoreError::unknown(
                    "its answers came too late: the lease was over, or nearly, by then; use a longer `expires`",
                )),
            },
        }
    }
}

/// Sends one attempt, and says what came of it.
async fn attempt(
    shared: &Shared,
    leases: &[Lease],
    pursuit: &Pursuit,
    seen: &mut Answers,
) -> (Answer, Vec<FencingToken>) {
    let limit = pursuit.attempt_timeout(shared.env.now());
    let undone = leases.len() > 1 && !shared.store.supports(Feature::AtomicMany);
    let answer = match leases {
        [lease] => shared
            .within(limit, shared.store.acquire(lease))
            .await
            .map(|answer| answer.map(AcquiredMany::from)),
        leases => shared.within(limit, shared.store.acquire_many(leases)).await,
    };
    match answer {
        Some(Ok(AcquiredMany::Granted { tokens, remaining })) => (Answer::Granted { remaining }, tokens),
        Some(Ok(AcquiredMany::Taken { index, remaining, holder })) => {
            seen.taken = Some((index, holder));
            (Answer::Taken { remaining, undone: index > 0 }, Vec::new())
        }
        Some(Ok(AcquiredMany::Spent { .. })) => (Answer::Spent, Vec::new()),
        Some(Err(error)) => {
            seen.failure = Some(Arc::new(error));
            (Answer::Failed { undone }, Vec::new())
        }
        None => {
            seen.failure = Some(Arc::new(StoreError::unknown(format!("no answer within {limit:?}"))));
            (Answer::Failed { undone }, Vec::new())
        }
    }
}

impl From<Acquired> for AcquiredMany {
    fn from(one: Acquired) -> Self {
        match one {
            Acquired::Granted { token, remaining } => Self::Granted { tokens: vec![token], remaining },
            Acquired::Taken { remaining, holder, .. } => Self::Taken { index: 0, remaining, holder },
            Acquired::Spent => Self::Spent { index: 0 },
        }
    }
}

/// Reports that an acquisition is over, and one whose future was dropped.
struct Unfinished<'a> {
    shared: &'a Shared,
    name: &'a Locked,
    started: Moment,
    armed: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.shared.env.is_forked() {
            return;
        }
        self.shared.tell_population();
        if self.armed {
            let waited = self.shared.env.now().since(self.started);
            observe::acquire_cancelled(self.name, self.shared.store.name(), waited);
        }
    }
}
