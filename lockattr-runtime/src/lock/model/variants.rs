//! The rules, and rules that are broken in one place each, which the checker must find.
//!
//! Each breaks what is between the real parts, or around them; none of these switches is in them.

use std::time::Duration;

use super::system::{TICK, moment};
use crate::lease::{Lease, Released, Renewed};
use crate::store::clock::Reading;
use crate::store::entry::{self, Entries};
use crate::time::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// As they are.
    Sound,
    /// A lease is believed from when its answer came, not from before its request was sent.
    ValidityFromReceipt,
    /// A renewal sets the expiry, even to sooner.
    RenewalShortens,
    /// The store frees the key whoever asks.
    ReleaseByAnyone,
    /// An answer to one attempt is taken for an answer to all.
    OneAnswerEndsAllDoubt,
    /// The register applies every write.
    RegisterWithoutCheck,
    /// The store may restart without its record.
    StoreForgets,
    /// The same, and its tokens are a plain counter, without the clock.
    StoreForgetsItsCounter,
}

impl Rules {
    /// From when on a lease counts that was asked for at `sent`, of which the answer came at `received`.
    pub(super) fn counted_from(self, sent: Moment, received: Moment) -> Moment {
        if self == Self::ValidityFromReceipt { received } else { sent }
    }

    /// Whether "taken" or "spent" is thought to say that an earlier attempt without an answer holds nothing.
    pub(super) fn one_answer_ends_all_doubt(self) -> bool {
        self == Self::OneAnswerEndsAllDoubt
    }

    pub(super) fn renew(self, entries: &mut Entries, lease: &Lease, at: Reading) -> Renewed {
        let renewed = entry::renew(entries, lease, at);
        if self == Self::RenewalShortens
            && let (Renewed::Renewed { .. }, Some(entry)) = (renewed, entries.get_mut(&lease.key))
        {
            entry.expires = Some(at.now + lease.ttl);
            entry.ttl = lease.ttl;
            return Renewed::Renewed { remaining: lease.ttl };
        }
        renewed
    }

    pub(super) fn release(self, entries: &mut Entries, lease: &Lease, at: Reading) -> Released {
        let holder = entries.get(&lease.key).and_then(|entry| entry.owner);
        if let (Self::ReleaseByAnyone, Some(owner)) = (self, holder) {
            return entry::release(entries, &Lease { owner, ..lease.clone() }, None, at);
        }
        entry::release(entries, lease, None, at)
    }

    /// Whether the register refuses a write with `token` after one with `highest`.
    pub(super) fn refuses(self, token: u64, highest: u64) -> bool {
        self != Self::RegisterWithoutCheck && token < highest
    }

    pub(super) fn forgets(self) -> bool {
        matches!(self, Self::StoreForgets | Self::StoreForgetsItsCounter)
    }

    /// The store's wall clock, of which tokens are made. It has a microsecond a tick, so that tokens come from
    /// it after a tick, and from the last one within it.
    pub(super) fn wall(self, now: Moment) -> Duration {
        if self == Self::StoreForgetsItsCounter {
            return Duration::ZERO;
        }
        let ticks = now.since(moment(0)).as_nanos() / TICK.as_nanos();
        Duration::from_micros(100 + u64::try_from(ticks).unwrap_or_default())
    }
}
