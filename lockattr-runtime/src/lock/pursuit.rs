//! Getting a lease, as a state machine without I/O: what an answer means, and what to do next.
//!
//! Invariants: busy is only said after the store said "taken"; a store failure is never busy; the last
//! sleep ends at the deadline and one last attempt follows it.

use std::time::Duration;

use super::retry::{drawn, full_jitter};
use crate::options::Wait;
use crate::term::{Term, Terms};
use crate::time::Moment;

/// Waiters that know when a lease ends come a little after that, each at its own time.
const AFTER_EXPIRY: Duration = Duration::from_millis(25);
/// An owner that is answered "spent" this often in one pursuit means a store that breaks the contract.
const MOST_SPENT: u32 = 3;

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Granted {
        remaining: Duration,
    },
    /// `undone`: other keys of the same attempt had been granted and were given back.
    Taken {
        remaining: Duration,
        undone: bool,
    },
    Spent,
    /// Refused, unknown, or no answer in time.
    Failed {
        /// Keys of the same attempt may have been given back, and a request that does so may still be on its
        /// way: with the same owner, it would end what a later attempt gets.
        undone: bool,
    },
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Enter(Term),
    /// Ask again at that moment, or sooner on a hint; with a new owner if the old one is used up.
    Again {
        at: Moment,
        fresh: bool,
    },
    GiveUp(Reason),
}

/// Why a pursuit ended without a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    Busy,
    Store,
    /// Grants came too late to be believed, or for owners that the store called spent.
    TooLate,
}

/// One caller's way to a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pursuit {
    terms: Terms,
    started: Moment,
    deadline: Moment,
    attempts: u32,
    failures: u32,
    spent: u32,
    /// Until when an earlier owner of this pursuit may be who has the key, and why it was left behind.
    in_own_way: (Moment, Reason),
}

impl Pursuit {
    pub(crate) fn new(terms: Terms, wait: Wait, now: Moment) -> Self {
        let deadline = match wait {
            Wait::AtMost(limit) => now + limit,
            Wait::Forever => Moment::NEVER,
        };
        Self {
            terms,
            started: now,
            deadline,
            attempts: 0,
            failures: 0,
            spent: 0,
            in_own_way: (now, Reason::Busy),
        }
    }

    /// How long an attempt sent at `now` may take. The last one gets at least a second.
    pub(crate) fn attempt_timeout(&self, now: Moment) -> Duration {
        let most = (self.terms.ttl / 6).clamp(Duration::from_secs(1), Duration::from_secs(5));
        if self.deadline == self.started {
            return most;
        }
        most.min(now.until(self.deadline).max(Duration::from_secs(1)))
    }

    /// An attempt sent at `sent` was answered at `now`.
    pub(crate) fn answered(&mut self, sent: Moment, now: Moment, answer: Answer, random: u64) -> Step {
        let step = match answer {
            Answer::Granted { remaining } => {
                let term = Term::granted(self.terms, sent, now, remaining, random);
                if now < term.stop_at() {
                    Step::Enter(term)
                } else {
                    self.in_own_way = (now + remaining, Reason::TooLate);
                    self.again(sent, now, Reason::TooLate, None, true, random)
                }
            }
            Answer::Taken { remaining, undone } => {
                let (until, why) = self.in_own_way;
                let reason = if sent < until { why } else { Reason::Busy };
                self.again(sent, now, reason, Some(remaining), undone, random)
            }
            Answer::Spent => {
                self.spent += 1;
                if self.spent <= MOST_SPENT {
                    Step::Again { at: now, fresh: true }
                } else {
                    Step::GiveUp(Reason::TooLate)
                }
            }
            Answer::Failed { undone } => {
                self.failures += 1;
                if undone {
                    self.in_own_way = (now + self.terms.ttl, Reason::Store);
                }
                if self.deadline == self.started && self.failures == 1 {
                    Step::Again { at: now, fresh: undone }
                } else {
                    self.again(sent, now, Reason::Store, None, undone, random)
                }
            }
        };
        self.attempts += 1;
        step
    }

    fn again(
        &self,
        sent: Moment,
        now: Moment,
        reason: Reason,
        remaining: Option<Duration>,
        fresh: bool,
        random: u64,
    ) -> Step {
        if sent >= self.deadline {
            return Step::GiveUp(reason);
        }
        let mut pause = full_jitter(self.attempts, random);
        if let Some(remaining) = remaining.filter(|remaining| !remaining.is_zero()) {
            pause = pause.min(remaining + drawn(AFTER_EXPIRY, random));
        }
        Step::Again { at: (now + pause).min(self.deadline.max(now)), fresh }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(1_000_000_000_000) + Duration::from_millis(millis)
    }

    fn pursuit(wait: Duration) -> Pursuit {
        Pursuit::new(Terms { ttl: TTL, renews: true, max_hold: None }, Wait::AtMost(wait), at(0))
    }

    const FAILED: Answer = Answer::Failed { undone: false };
    const TAKEN: Answer = Answer::Taken { remaining: TTL, undone: false };

    #[test]
    fn without_a_wait_one_answer_decides() {
        let mut pursuit = pursuit(Duration::ZERO);
        assert_eq!(pursuit.answered(at(0), at(1), TAKEN, 0), Step::GiveUp(Reason::Busy));
    }

    #[test]
    fn without_a_wait_a_failure_is_tried_once_more_with_the_same_owner() {
        let mut pursuit = pursuit(Duration::ZERO);
        assert_eq!(pursuit.answered(at(0), at(9), FAILED, 0), Step::Again { at: at(9), fresh: false });
        assert_eq!(pursuit.answered(at(9), at(20), FAILED, 0), Step::GiveUp(Reason::Store));
    }

    #[test]
    fn after_keys_were_given_back_on_the_way_the_owner_is_another() {
        for wait in [Duration::ZERO, Duration::from_secs(60)] {
            let mut pursuit = pursuit(wait);
            let failed = Answer::Failed { undone: true };
            assert!(matches!(pursuit.answered(at(0), at(9), failed, 0), Step::Again { fresh: true, .. }));
            // What the other owner left is no reason to call the keys taken.
            assert_eq!(pursuit.answered(at(60_000), at(60_001), TAKEN, 0), Step::GiveUp(Reason::Store));
        }
    }

    #[test]
    fn the_last_sleep_ends_at_the_deadline_and_one_attempt_follows() {
        let mut pursuit = pursuit(Duration::from_millis(500));
        let (mut now, mut attempts) = (at(0), 0);
        loop {
            attempts += 1;
            match pursuit.answered(now, now, TAKEN, u64::MAX / 3) {
                Step::Again { at: next, fresh } => {
                    assert!(!fresh && next >= now && next <= at(500));
                    now = next;
                }
                step => {
                    assert_eq!((step, now), (Step::GiveUp(Reason::Busy), at(500)));
                    break;
                }
            }
        }
        assert!(attempts > 2);
    }

    #[test]
    fn a_grant_that_comes_too_late_is_not_believed() {
        let mut pursuit = pursuit(Duration::from_secs(100));
        let granted = Answer::Granted { remaining: TTL };
        assert!(matches!(pursuit.answered(at(0), at(53_398), granted, 0), Step::Again { fresh: true, .. }));
        assert!(matches!(pursuit.answered(at(0), at(53_397), granted, 0), Step::Enter(_)));
    }

    #[test]
    fn what_a_grant_that_came_too_late_left_behind_is_not_busy() {
        let mut pursuit = pursuit(Duration::from_secs(60));
        let granted = Answer::Granted { remaining: TTL };
        assert!(matches!(pursuit.answered(at(0), at(54_000), granted, 0), Step::Again { fresh: true, .. }));
        let mut later = pursuit.clone();
        assert_eq!(pursuit.answered(at(60_000), at(60_001), TAKEN, 0), Step::GiveUp(Reason::TooLate));
        assert_eq!(later.answered(at(114_000), at(114_001), TAKEN, 0), Step::GiveUp(Reason::Busy));
    }

    #[test]
    fn a_spent_owner_is_replaced_but_not_for_ever() {
        let mut pursuit = pursuit(Duration::from_secs(100));
        for _ in 0..MOST_SPENT {
            let step = pursuit.answered(at(0), at(1), Answer::Spent, 0);
            assert_eq!(step, Step::Again { at: at(1), fresh: true });
        }
        assert_eq!(pursuit.answered(at(0), at(1), Answer::Spent, 0), Step::GiveUp(Reason::TooLate));
    }

    #[test]
    fn a_known_expiry_shortens_the_pause() {
        let mut pursuit = pursuit(Duration::from_secs(100));
        let taken = Answer::Taken { remaining: Duration::from_millis(3), undone: false };
        for _ in 0..20 {
            let Step::Again { at: next, .. } = pursuit.answered(at(0), at(0), taken, u64::MAX / 5) else {
                panic!("it gave up")
            };
            assert!(next <= at(28));
        }
    }

    #[test]
    fn a_failure_after_taken_is_a_store_failure() {
        let mut pursuit = pursuit(Duration::from_millis(100));
        pursuit.answered(at(0), at(1), TAKEN, 0);
        assert_eq!(pursuit.answered(at(100), at(101), FAILED, 0), Step::GiveUp(Reason::Store));
    }
}
