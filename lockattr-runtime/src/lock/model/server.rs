//! The store and the register, and a witness that remembers what the store has promised.
//!
//! The store is one record and the real steps of the contract on it. The register is the resource behind
//! the lock. The witness believes answers, not the record, so it sees a store that forgets or cuts a lease.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::client::Name;
use super::network::Answer;
use super::system::key;
use super::variants::Rules;
use crate::lease::{Acquired, Lease, Released, Renewed};
use crate::store::clock::Reading;
use crate::store::entry::{self, Entries, Entry};
use crate::time::Moment;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    record: Record,
    last: Option<Grant>,
    grants: u8,
    register: Register,
    pub(super) broken: Broken,
}

/// What the last grant was, by the answers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Grant {
    owner: Name,
    token: u64,
    end: End,
    /// Whether the grant before it had run out, and was not given back.
    took_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum End {
    At(Moment),
    Expired,
    Released,
}

/// The last write that was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Register {
    token: u64,
    grant: u8,
}

/// Which promises were broken, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Broken {
    pub(super) grants_overlapped: bool,
    pub(super) token_did_not_grow: bool,
    pub(super) stale_write_applied: bool,
}

impl Server {
    /// The grant that is under way began when the one before it had run out.
    pub(super) fn took_over(&self) -> bool {
        self.last.is_some_and(|grant| grant.took_over && matches!(grant.end, End::At(_)))
    }

    pub(super) fn acquire(&mut self, rules: Rules, lease: &Lease, owner: Name, now: Moment) -> Answer {
        let answer = self.record.step(|entries| entry::acquire(entries, lease, reading(rules, now)));
        match answer.expect("a token below the largest") {
            Acquired::Granted { token, remaining } => {
                let again = self.granted(owner, token.get(), now, now + remaining);
                Answer::Granted { token: token.get(), remaining, grant: self.grants, again }
            }
            Acquired::Taken { .. } => Answer::Taken,
            Acquired::Spent => Answer::Spent,
        }
    }

    /// Notes a grant; says whether it is the last one again.
    fn granted(&mut self, owner: Name, token: u64, now: Moment, until: Moment) -> bool {
        let mut took_over = false;
        if let Some(last) = self.last {
            if (last.owner, last.token) == (owner, token) {
                return true;
            }
            self.broken.token_did_not_grow |= token <= last.token;
            self.broken.grants_overlapped |= matches!(last.end, End::At(end) if end > now);
            took_over = last.end == End::Expired;
        }
        self.grants += 1;
        self.last = Some(Grant { owner, token, end: End::At(until), took_over });
        false
    }

    pub(super) fn renew(&mut self, rules: Rules, lease: &Lease, owner: Name, now: Moment) -> Answer {
        match self.record.step(|entries| rules.renew(entries, lease, reading(rules, now))) {
            Renewed::Renewed { remaining } => {
                if let Some(Grant { owner: last, end: End::At(end), .. }) = &mut self.last
                    && *last == owner
                {
                    *end = (*end).max(now + remaining);
                }
                Answer::Renewed { remaining }
            }
            Renewed::Lost => Answer::Lost,
        }
    }

    pub(super) fn release(&mut self, rules: Rules, lease: &Lease, owner: Name, now: Moment) {
        let answer = self.record.step(|entries| rules.release(entries, lease, reading(rules, now)));
        if let Some(last) = &mut self.last
            && (last.owner, answer) == (owner, Released::Released)
        {
            last.end = End::Released;
        }
    }

    pub(super) fn write(&mut self, rules: Rules, token: u64, grant: u8) {
        if rules.refuses(token, self.register.token) {
            return;
        }
        self.broken.stale_write_applied |= grant < self.register.grant;
        self.register = Register { token, grant };
    }

    /// A restart without persistence.
    pub(super) fn forget(&mut self) {
        self.record = Record::default();
    }

    pub(super) fn knows_something(&self) -> bool {
        self.record.0.is_some()
    }

    /// Who has the key at `now`, by its last grant.
    pub(super) fn holder(&self, now: Moment) -> Option<Name> {
        let owner = self.record.0.as_ref().filter(|entry| entry.expires > Some(now))?.owner;
        self.last.map(|grant| grant.owner).filter(|last| Some(last.owner()) == owner)
    }

    pub(super) fn look(&mut self, now: Moment) {
        if let Some(Grant { end, .. }) = &mut self.last
            && matches!(*end, End::At(at) if at <= now)
        {
            *end = End::Expired;
        }
    }
}

fn reading(rules: Rules, now: Moment) -> Reading {
    Reading { now, wall: rules.wall(now) }
}

/// The record of the one key. Two that differ only in what no step of this model looks at are the same.
#[derive(Clone, Debug, Default)]
struct Record(Option<Entry>);

impl Record {
    fn step<T>(&mut self, step: impl FnOnce(&mut Entries) -> T) -> T {
        let mut entries = Entries::new();
        let key = key();
        if let Some(entry) = self.0.take() {
            entries.insert(Arc::clone(&key), entry);
        }
        let done = step(&mut entries);
        self.0 = entries.remove(&key);
        done
    }

    /// What the steps of this model look at.
    fn seen(&self) -> impl Hash + PartialEq {
        let entry = self.0.as_ref()?;
        Some((entry.owner, entry.last_owner, entry.token, entry.expires, entry.ttl))
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.seen() == other.seen()
    }
}

impl Eq for Record {}

impl Hash for Record {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.seen().hash(state);
    }
}
