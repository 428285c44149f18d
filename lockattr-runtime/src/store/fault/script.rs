//! What goes wrong, when, and how often.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::store::Feature;

/// A request of the contract, as [`Faults`] name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// `acquire`, and `acquire_many`: one request where it is one step, otherwise one a key.
    Acquire,
    /// `renew`.
    Renew,
    /// `release`, and `release_many`: one request where it is one step, otherwise one a key.
    Release,
    /// `inspect`.
    Inspect,
    /// `list`.
    List,
    /// `force_release`.
    ForceRelease,
    /// `collect`.
    Collect,
    /// `audit`.
    Audit,
}

/// One way in which a request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The request reaches the store only after this long, even when its caller has gone away.
    LateRequest(Duration),
    /// The store does it at once, and its answer comes this much later.
    LateAnswer(Duration),
    /// It is done and answered as usual, and done a second time after this long.
    Repeat(Duration),
    /// The store does it, and the caller gets an unknown outcome.
    LoseAnswer,
    /// The store never sees it, and the caller gets an unknown outcome.
    LoseRequest,
    /// The store does nothing and says so.
    Refuse,
    /// The store never sees it, and there is never an answer.
    Hang,
}

/// The script of a [`FaultStore`](super::FaultStore). Clones are the same script.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    next: HashMap<Verb, VecDeque<Fault>>,
    always: HashMap<Verb, Fault>,
    cut: Option<Fault>,
    hidden: HashSet<Feature>,
    calls: HashMap<Verb, usize>,
}

impl Faults {
    /// The next request of this verb that has no fault yet gets this one.
    pub fn once(&self, verb: Verb, fault: Fault) {
        self.times(verb, 1, fault);
    }

    /// The next `count` requests of this verb that have no fault yet get this one.
    pub fn times(&self, verb: Verb, count: usize, fault: Fault) {
        self.script().next.entry(verb).or_default().extend(std::iter::repeat_n(fault, count));
    }

    /// Every request of this verb gets this fault, after those of [`once`](Self::once) and
    /// [`times`](Self::times), until [`heal`](Self::heal).
    pub fn always(&self, verb: Verb, fault: Fault) {
        self.script().always.insert(verb, fault);
    }

    /// Every request is lost, whatever else the script says, until [`heal`](Self::heal).
    pub fn cut(&self) {
        self.cut_with(Fault::LoseRequest);
    }

    /// Every request gets this fault, whatever else the script says, until [`heal`](Self::heal).
    pub fn cut_with(&self, fault: Fault) {
        self.script().cut = Some(fault);
    }

    /// Forgets every fault. Requests that hang or are late stay so.
    pub fn heal(&self) {
        let mut script = self.script();
        script.cut = None;
        script.next.clear();
        script.always.clear();
    }

    /// The store no longer supports this, as if it had never been able to.
    pub fn hide(&self, feature: Feature) {
        self.script().hidden.insert(feature);
    }

    /// How many requests of this verb were made so far.
    #[must_use]
    pub fn calls(&self, verb: Verb) -> usize {
        self.script().calls.get(&verb).copied().unwrap_or_default()
    }

    pub(super) fn hides(&self, feature: Feature) -> bool {
        self.script().hidden.contains(&feature)
    }

    /// Counts a request, and says what goes wrong with it.
    pub(super) fn take(&self, verb: Verb) -> Option<Fault> {
        let mut script = self.script();
        *script.calls.entry(verb).or_default() += 1;
        script
            .cut
            .or_else(|| script.next.get_mut(&verb).and_then(VecDeque::pop_front))
            .or_else(|| script.always.get(&verb).copied())
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
