//! Waiters of one process: for each set of keys a line, in order of arrival. Only its head asks the store.
//!
//! Invariant: a place that is left, however it is left, passes the turn on.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::lease::Holder;
use crate::store::StoreError;

/// The keys of one request as the store has them, in byte order.
pub(crate) type KeySet = Arc<[Arc<str>]>;

#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    of_keys: HashMap<KeySet, Line>,
    /// Which lines wait for a key.
    of_key: HashMap<Arc<str>, Vec<KeySet>>,
    waiting: usize,
    next: u64,
}

#[derive(Debug, Default)]
struct Line {
    places: BTreeMap<u64, Arc<Place>>,
    seen: Seen,
    /// Which key its head waits for; `None` while that is not known.
    blocked_by: Option<usize>,
}

/// What the store last said to the head of a line, for those behind it, who do not ask.
#[derive(Clone, Debug, Default)]
pub(crate) enum Seen {
    #[default]
    Nothing,
    Taken(Option<Arc<Holder>>),
    Failed(Arc<StoreError>),
}

#[derive(Debug, Default)]
struct Place {
    turn: Notify,
    hint: Notify,
}

/// A place in a line.
#[derive(Debug)]
pub(crate) struct Ticket {
    queues: Arc<Queues>,
    keys: KeySet,
    number: u64,
    place: Arc<Place>,
}

impl Queues {
    /// Joins the line for `keys`; `Err` says how many wait when that is `limit` already.
    pub(crate) fn join(self: &Arc<Self>, keys: KeySet, limit: usize) -> Result<Ticket, usize> {
        let mut guard = self.lines();
        let lines = &mut *guard;
        if lines.waiting >= limit {
            return Err(lines.waiting);
        }
        lines.waiting += 1;
        lines.next += 1;
        let number = lines.next;
        let place = Arc::new(Place::default());
        let line = lines.of_keys.entry(Arc::clone(&keys)).or_default();
        if line.places.is_empty() {
            place.turn.notify_one();
            for key in keys.iter() {
                lines.of_key.entry(Arc::clone(key)).or_default().push(Arc::clone(&keys));
            }
        }
        line.places.insert(number, Arc::clone(&place));
        Ok(Ticket { queues: Arc::clone(self), keys, number, place })
    }

    /// Wakes the heads that wait for `key`: it may be free.
    ///
    /// Not those that another of their keys keeps waiting: what they give back themselves, and take again at
    /// the next attempt, would wake them for ever.
    pub(crate) fn hint(&self, key: &str) {
        let mut guard = self.lines();
        let lines = &mut *guard;
        for keys in lines.of_key.get(key).into_iter().flatten() {
            let Some(line) = lines.of_keys.get_mut(keys) else { continue };
            if line.blocked_by.is_some_and(|index| *keys[index] != *key) {
                continue;
            }
            // Who had it may have it no longer.
            line.seen = Seen::Nothing;
            if let Some((_, head)) = line.head() {
                head.hint.notify_one();
            }
        }
    }

    /// Wakes every head.
    pub(crate) fn hint_all(&self) {
        let lines = self.lines();
        let mut heads: Vec<_> = lines.of_keys.values().filter_map(Line::head).collect();
        heads.sort_unstable_by_key(|(number, _)| **number);
        for (_, head) in heads {
            head.hint.notify_one();
        }
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lines().waiting
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn head(&self) -> Option<(&u64, &Arc<Place>)> {
        self.places.first_key_value()
    }
}

impl Ticket {
    /// Tells those behind what the store said, and which of the keys was not free.
    pub(crate) fn tell(&self, seen: Seen, blocked_by: Option<usize>) {
        if let Some(line) = self.queues.lines().of_keys.get_mut(&self.keys) {
            line.seen = seen;
            line.blocked_by = blocked_by;
        }
    }

    /// What the store last said to the head of the line, and about which of the keys.
    pub(crate) fn seen(&self) -> (Seen, usize) {
        let lines = self.queues.lines();
        let line = lines.of_keys.get(&self.keys);
        line.map(|line| (line.seen.clone(), line.blocked_by.unwrap_or_default())).unwrap_or_default()
    }

    /// Waits until this is the head of its line.
    pub(crate) async fn turn(&self) {
        self.place.turn.notified().await;
    }

    /// Waits for a hint that a key may be free.
    pub(crate) async fn hint(&self) {
        self.place.hint.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut guard = self.queues.lines();
        let lines = &mut *guard;
        lines.waiting -= 1;
        let Some(line) = lines.of_keys.get_mut(&self.keys) else { return };
        let was_head = line.head().is_some_and(|(number, _)| *number == self.number);
        line.places.remove(&self.number);
        if was_head {
            line.blocked_by = None;
        }
        match line.head() {
            Some((_, head)) if was_head => head.turn.notify_one(),
            Some(_) => {}
            None => {
                lines.of_keys.remove(&self.keys);
                for key in self.keys.iter() {
                    if let Some(sets) = lines.of_key.get_mut(key) {
                        sets.retain(|keys| keys != &self.keys);
                        if sets.is_empty() {
                            lines.of_key.remove(key);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> KeySet {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    fn ready(future: impl Future<Output = ()>) -> bool {
        let mut future = std::pin::pin!(future);
        future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn the_turn_goes_in_order_and_past_those_who_left() {
        let queues = Arc::new(Queues::default());
        let join = || queues.join(keys(&["k"]), 10).expect("there is room");
        let (first, second, third) = (join(), join(), join());
        assert!(ready(first.turn()) && !ready(second.turn()) && !ready(third.turn()));
        drop(second);
        drop(first);
        assert!(ready(third.turn()));
        drop(third);
        assert_eq!(queues.waiting(), 0);
        assert!(queues.lines().of_keys.is_empty() && queues.lines().of_key.is_empty());
    }

    #[test]
    fn a_hint_reaches_the_head_of_every_line_with_the_key() {
        let queues = Arc::new(Queues::default());
        let one = queues.join(keys(&["a"]), 10).expect("there is room");
        let both = queues.join(keys(&["a", "b"]), 10).expect("there is room");
        let behind = queues.join(keys(&["a"]), 10).expect("there is room");
        queues.hint("a");
        assert!(ready(one.hint()) && ready(both.hint()) && !ready(behind.hint()));
        queues.hint("b");
        assert!(!ready(one.hint()) && ready(both.hint()));
    }

    #[test]
    fn the_number_of_waiters_is_bounded() {
        let queues = Arc::new(Queues::default());
        let first = queues.join(keys(&["a"]), 1).expect("there is room");
        assert_eq!(queues.join(keys(&["b"]), 1).expect_err("it is full"), 1);
        drop(first);
        assert!(queues.join(keys(&["b"]), 1).is_ok());
    }
}
