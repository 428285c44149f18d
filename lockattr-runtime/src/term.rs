//! The life of a held lease, as a state machine without I/O: when to renew, when it is lost, and why.
//!
//! Invariants: the deadline only moves forward, a loss is final, and nothing is believed longer than the
//! store keeps it, counted from before the request was sent.

use std::time::Duration;

use crate::error::LossCause;
use crate::time::{Moment, valid_until};

/// The body must be out of the way this long before the store may give the key to another.
const LEAST_MARGIN: Duration = Duration::from_millis(50);
/// First pause after a renewal that failed.
const FIRST_RETRY: Duration = Duration::from_millis(50);

/// How a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    Held,
    Lost(LossCause),
    Closed,
}

/// What to do about a lease next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Due {
    Renew,
    At(Moment),
    /// It is lost or closed.
    Nothing,
}

/// What a caller decides about a lease once, when it takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Terms {
    pub(crate) ttl: Duration,
    pub(crate) renews: bool,
    pub(crate) max_hold: Option<Duration>,
}

/// A held lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    terms: Terms,
    entered: Moment,
    /// The time one grant or renewal gave, which margins and intervals are shares of.
    span: Duration,
    valid_until: Moment,
    renew_at: Moment,
    ends_at: Moment,
    failures: u32,
    stopped_by: LossCause,
    standing: Standing,
}

impl Term {
    /// A lease that was asked for at `sent`, and that the store, answering at `now`, says lasts `remaining`.
    pub(crate) fn granted(terms: Terms, sent: Moment, now: Moment, remaining: Duration, random: u64) -> Self {
        let mut term = Self {
            terms,
            entered: sent,
            span: terms.ttl,
            valid_until: sent,
            renew_at: Moment::NEVER,
            ends_at: terms.max_hold.map_or(Moment::NEVER, |most| now + most),
            failures: 0,
            stopped_by: LossCause::Expired,
            standing: Standing::Held,
        };
        term.extend(sent, remaining, random);
        term
    }

    /// The moment from which the lease is not to be believed any more.
    pub(crate) fn stop_at(&self) -> Moment {
        self.runs_out_at().min(self.ends_at)
    }

    /// The same, if it were not for `max_hold`.
    fn runs_out_at(&self) -> Moment {
        self.valid_until - (self.span / 10).max(LEAST_MARGIN)
    }

    pub(crate) fn entered(&self) -> Moment {
        self.entered
    }

    /// How it stood when it was last looked at.
    pub(crate) fn standing(&self) -> Standing {
        self.standing
    }

    /// How it stands at `now`. Once lost, always lost.
    pub(crate) fn check(&mut self, now: Moment) -> Standing {
        if self.standing == Standing::Held && now >= self.stop_at() {
            let cause = if now >= self.ends_at { LossCause::MaxHold } else { self.stopped_by };
            self.standing = Standing::Lost(cause);
        }
        self.standing
    }

    /// What to do next, as of `now`.
    pub(crate) fn due(&mut self, now: Moment) -> Due {
        if self.check(now) != Standing::Held {
            Due::Nothing
        } else if self.renew_at <= now {
            Due::Renew
        } else {
            Due::At(self.renew_at.min(self.stop_at()))
        }
    }

    /// How long a renewal sent at `now` may take before it is tried again.
    pub(crate) fn renewal_timeout(&self, now: Moment) -> Duration {
        let attempt = (self.span / 6).clamp(Duration::from_millis(20), Duration::from_secs(5));
        attempt.min(now.until(self.stop_at()))
    }

    /// The store renewed it; asked at `sent`. Says whether that came late: with less than a fifth left.
    pub(crate) fn renewed(&mut self, sent: Moment, now: Moment, remaining: Duration, random: u64) -> bool {
        if self.check(now) != Standing::Held {
            return false;
        }
        let late = now.until(self.valid_until) < self.span / 5;
        self.extend(sent, remaining, random);
        late
    }

    /// A renewal failed. That is not a loss: it is tried again until the deadline.
    pub(crate) fn renewal_failed(&mut self, now: Moment, random: u64) {
        let most = self.span / 12;
        let pause = FIRST_RETRY.saturating_mul(1 << self.failures.min(10)).min(most);
        self.failures += 1;
        self.renew_at = now + share(pause, 50 + random % 51);
    }

    /// It is lost for this reason, unless it was lost or closed before.
    pub(crate) fn lose(&mut self, cause: LossCause) {
        if self.standing == Standing::Held {
            self.standing = Standing::Lost(cause);
        }
    }

    /// Renews no more; when the lease runs out, `cause` is why.
    pub(crate) fn stop_renewing(&mut self, cause: LossCause) {
        self.terms.renews = false;
        self.renew_at = Moment::NEVER;
        self.stopped_by = cause;
    }

    /// It is being given back. Returns how it stood until then.
    pub(crate) fn close(&mut self, now: Moment) -> Standing {
        let before = self.check(now);
        if before == Standing::Held {
            self.standing = Standing::Closed;
        }
        before
    }

    fn extend(&mut self, sent: Moment, remaining: Duration, random: u64) {
        self.span = remaining.min(self.terms.ttl);
        self.valid_until = self.valid_until.max(valid_until(sent, remaining));
        self.failures = 0;
        if self.terms.renews {
            // What is left of a grant that was asked for again may be too short for a third to come in time.
            let in_time = sent.until(self.runs_out_at()) * 2 / 3;
            self.renew_at = sent + share((self.span / 3).min(in_time), 90 + random % 21);
        }
    }
}

fn share(of: Duration, percent: u64) -> Duration {
    of * u32::try_from(percent).unwrap_or(100) / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(1_000_000_000_000) + Duration::from_millis(millis)
    }

    fn term(renews: bool, max_hold: Option<Duration>) -> Term {
        Term::granted(Terms { ttl: TTL, renews, max_hold }, at(0), at(0), TTL, 10)
    }

    #[test]
    fn it_is_renewed_after_a_third_with_a_tenth_of_spread() {
        for random in 0..100 {
            let mut term =
                Term::granted(Terms { ttl: TTL, renews: true, max_hold: None }, at(0), at(0), TTL, random);
            assert!(matches!(term.due(at(17_999)), Due::At(when) if when > at(17_999) && when <= at(22_000)));
            assert_eq!(term.due(at(22_000)), Due::Renew);
        }
    }

    #[test]
    fn it_is_lost_a_tenth_before_the_store_may_give_it_away() {
        let mut term = term(false, None);
        // 60 s less 1 % and 2 ms, less a tenth.
        assert_eq!(term.check(at(53_397)), Standing::Held);
        assert_eq!(term.check(at(53_398)), Standing::Lost(LossCause::Expired));
    }

    #[test]
    fn a_loss_is_final_even_when_a_renewal_comes_in_later() {
        let mut term = term(true, None);
        assert_eq!(term.check(at(54_000)), Standing::Lost(LossCause::Expired));
        term.renewed(at(53_000), at(54_100), TTL, 0);
        assert_eq!(term.check(at(54_200)), Standing::Lost(LossCause::Expired));
    }

    #[test]
    fn a_renewal_counts_from_its_sending_and_never_pulls_the_deadline_in() {
        let mut term = term(true, None);
        let before = term.stop_at();
        term.renewed(at(20_000), at(25_000), TTL, 0);
        assert_eq!(term.stop_at(), before + Duration::from_secs(20));
        term.renewed(at(21_000), at(25_500), Duration::from_secs(1), 0);
        assert!(term.valid_until >= before + Duration::from_secs(20));
    }

    #[test]
    fn a_failed_renewal_is_tried_again_until_the_deadline_and_is_no_loss() {
        let mut term = term(true, None);
        let mut now = at(20_000);
        let mut tries = 0;
        while let Due::Renew | Due::At(_) = term.due(now) {
            if term.due(now) == Due::Renew {
                tries += 1;
                term.renewal_failed(now, 7);
            }
            now = now + Duration::from_millis(10);
        }
        assert!(tries > 8, "{tries}");
        assert_eq!(term.check(now), Standing::Lost(LossCause::Expired));
        assert!(now >= at(53_398));
    }

    #[test]
    fn max_hold_ends_it_however_well_it_is_renewed() {
        let mut term = term(true, Some(Duration::from_secs(30)));
        term.renewed(at(20_000), at(20_001), TTL, 0);
        assert_eq!(term.check(at(29_999)), Standing::Held);
        assert_eq!(term.check(at(30_000)), Standing::Lost(LossCause::MaxHold));
    }

    #[test]
    fn what_is_left_of_a_grant_is_renewed_in_time_however_short_it_is() {
        let terms = Terms { ttl: Duration::from_millis(100), renews: true, max_hold: None };
        for (left, random) in (55..100).flat_map(|left| [(left, 0), (left, 20)]) {
            let mut term = Term::granted(terms, at(0), at(0), Duration::from_millis(left), random);
            assert!(matches!(term.due(at(0)), Due::At(when) if when < term.stop_at()), "{left} ms left");
        }
    }

    #[test]
    fn the_shortest_ttl_leaves_time_to_renew() {
        let terms = Terms { ttl: Duration::from_millis(100), renews: true, max_hold: None };
        let mut term = Term::granted(terms, at(0), at(0), terms.ttl, 20);
        assert_eq!(term.due(at(37)), Due::Renew);
        assert_eq!(term.check(at(46)), Standing::Held);
        assert_eq!(term.check(at(47)), Standing::Lost(LossCause::Expired));
    }
}
