//! Renewal of all that a locker holds: one list by time, one task, and a task a renewal.
//!
//! Invariants: a lease is on the list before its guard is handed out; renewal never re-creates a record;
//! an error is not a loss; this and `Tenure::standing` are the only places that decide a loss.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::shared::{Shared, WeakShared, either, until};
use crate::error::LossCause;
use crate::held::Tenure;
use crate::lease::Renewed;
use crate::observe;
use crate::store::StoreError;
use crate::term::{Due, Standing};
use crate::time::Moment;

#[derive(Debug, Default)]
pub(crate) struct Renewals {
    agenda: Mutex<Agenda>,
    changed: Notify,
}

#[derive(Debug)]
struct Agenda {
    entries: BTreeMap<(Moment, u64), Weak<Tenure>>,
    /// When the task wakes by itself: entries later than that need not wake it.
    asleep_until: Moment,
    running: bool,
    ended: bool,
}

impl Default for Agenda {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), asleep_until: Moment::NEVER, running: false, ended: false }
    }
}

impl Renewals {
    /// Looks after `tenure` from now on, or puts it back on the list.
    pub(crate) fn watch(self: &Arc<Self>, shared: &Arc<Shared>, tenure: &Arc<Tenure>) {
        let now = shared.env.now();
        let at = match tenure.step(|term| term.due(now)) {
            Due::Renew => now,
            Due::At(at) => at,
            Due::Nothing => return,
        };
        *tenure.due.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        let (wake, start) = {
            let mut agenda = self.agenda();
            agenda.entries.insert((at, tenure.id), Arc::downgrade(tenure));
            (at < agenda.asleep_until, !std::mem::replace(&mut agenda.running, true))
        };
        if start {
            shared.env.spawn(Box::pin(run(Arc::clone(self), Arc::downgrade(shared))));
        }
        if wake {
            self.changed.notify_one();
        }
    }

    /// Takes `tenure` off the list.
    pub(crate) fn forget(&self, tenure: &Tenure) {
        let due = tenure.due.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(at) = due {
            self.agenda().entries.remove(&(at, tenure.id));
        }
    }

    /// Ends the task; the locker is gone.
    pub(crate) fn end(&self) {
        self.agenda().ended = true;
        self.changed.notify_one();
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is due at `now`, and when to look again; `None` once the locker is gone.
    fn take_due(&self, now: Moment) -> Option<(Vec<Arc<Tenure>>, Moment)> {
        let mut agenda = self.agenda();
        if agenda.ended {
            return None;
        }
        let later = agenda.entries.split_off(&(now + Duration::from_nanos(1), 0));
        let due = std::mem::replace(&mut agenda.entries, later);
        let next = agenda.entries.first_key_value().map_or(Moment::NEVER, |(key, _)| key.0);
        agenda.asleep_until = next;
        Some((due.into_values().filter_map(|tenure| tenure.upgrade()).collect(), next))
    }
}

async fn run(renewals: Arc<Renewals>, shared: WeakShared) {
    loop {
        let Some(env) = shared.upgrade().map(|shared| Arc::clone(&shared.env)) else { return };
        let Some((due, next)) = renewals.take_due(env.now()) else { return };
        if let Some(shared) = shared.upgrade() {
            for tenure in due {
                env.spawn(Box::pin(attend(Arc::clone(&shared), tenure)));
            }
        }
        if next == Moment::NEVER {
            renewals.changed.notified().await;
        } else {
            either(env.sleep_until(next), pin!(renewals.changed.notified())).await;
        }
    }
}

/// Says that the renewal is over, and that the lease is lost if it ended by a panic or with its runtime.
struct Alarm<'a> {
    tenure: &'a Tenure,
    armed: bool,
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        *self.tenure.renewal.running.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.tenure.renewal.idle.notify_waiters();
        if self.armed {
            self.tenure.step(|term| term.lose(LossCause::RenewalDied));
        }
    }
}

/// Does what is due for one tenure, once.
async fn attend(shared: Arc<Shared>, tenure: Arc<Tenure>) {
    {
        let mut running = tenure.renewal.running.lock().unwrap_or_else(PoisonError::into_inner);
        if tenure.last_standing() == Standing::Closed {
            return;
        }
        *running = true;
    }
    let mut alarm = Alarm { tenure: &tenure, armed: true };
    let now = shared.env.now();
    if tenure.step(|term| term.due(now)) == Due::Renew {
        renew(&shared, &tenure, now).await;
    }
    alarm.armed = false;
    drop(alarm);
    if tenure.standing() == Standing::Held {
        look_at_body(&shared, &tenure);
        shared.renewals.watch(&shared, &tenure);
    }
}

async fn renew(shared: &Shared, tenure: &Tenure, sent: Moment) {
    let limit = tenure.step(|term| term.renewal_timeout(sent));
    let stop = tenure.renewal.stop.notified();
    if tenure.last_standing() != Standing::Held {
        return;
    }
    let timeout = shared.env.sleep_until(sent + limit);
    let answer = until(either(pin!(stop), timeout), pin!(renew_all(shared, tenure))).await;
    let (now, random) = (shared.env.now(), shared.env.random());
    match answer {
        Some(Ok(Some(remaining))) => {
            let late = tenure.step(|term| term.renewed(sent, now, remaining, random));
            observe::renewed(tenure, shared.store.name(), late);
        }
        Some(Ok(None)) => tenure.step(|term| term.lose(LossCause::NotOurs)),
        Some(Err(error)) => {
            tenure.step(|term| term.renewal_failed(now, random));
            observe::renewal_failed(tenure, shared.store.name(), Some(&error));
        }
        None if tenure.last_standing() != Standing::Held => {}
        None => {
            tenure.step(|term| term.renewal_failed(now, random));
            observe::renewal_failed(tenure, shared.store.name(), None);
        }
    }
}

/// The shortest time that any of the leases lasts; `None` when one is lost.
async fn renew_all(shared: &Shared, tenure: &Tenure) -> Result<Option<Duration>, StoreError> {
    let mut shortest = Duration::MAX;
    for lease in tenure.leases.iter() {
        match shared.store.renew(lease).await? {
            Renewed::Renewed { remaining } => shortest = shortest.min(remaining),
            Renewed::Lost => return Ok(None),
        }
    }
    Ok(Some(shortest))
}

/// A body that nobody polls would be renewed for ever. One that only waits is woken and shows itself.
fn look_at_body(shared: &Shared, tenure: &Tenure) {
    let Some(polled) = tenure.last_polled() else { return };
    let idle = shared.env.now().since(polled);
    let ttl = tenure.leases[0].ttl;
    if idle > ttl * 10 {
        if tenure.body.warn_once() {
            observe::body_not_polled(tenure, idle);
        }
    } else if idle > ttl * 8 {
        tenure.wake_bodies();
    }
}
