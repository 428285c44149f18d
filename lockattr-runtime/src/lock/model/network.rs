//! Messages between clients, store and register: unordered, late, lost, doubled.
//!
//! A lost message is one that is never delivered. An answer that nobody waits for any more is taken out,
//! since its delivery would do nothing: requests are answered on the connection that they came from.

use std::time::Duration;

use super::client::Name;

/// What is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    Acquire {
        owner: Name,
        awaited: bool,
    },
    Renew {
        owner: Name,
        ttl: Duration,
        awaited: bool,
    },
    /// All tries of the one that gives back in the background. It stays, since any of them may come late.
    Release {
        owner: Name,
    },
    /// What a body does after it has checked the lock, and after any pause.
    Write {
        token: u64,
        grant: u8,
    },
    Answer {
        to: u8,
        answer: Answer,
    },
}

/// What the store said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Answer {
    /// The grant is the store's how-manieth; `again` if it was given before.
    Granted {
        token: u64,
        remaining: Duration,
        grant: u8,
        again: bool,
    },
    Taken,
    Spent,
    Renewed {
        remaining: Duration,
    },
    Lost,
}

/// All messages on their way, in no order but that of their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Network(Vec<Message>);

impl Network {
    pub(super) fn send(&mut self, message: Message) {
        let at = self.0.partition_point(|other| *other < message);
        let kept = matches!(message, Message::Release { .. });
        if !(kept && self.0.get(at) == Some(&message)) {
            self.0.insert(at, message);
        }
    }

    /// Takes out one copy, unless the message is one that stays.
    pub(super) fn take(&mut self, message: Message) {
        if !matches!(message, Message::Release { .. })
            && let Ok(at) = self.0.binary_search(&message)
        {
            self.0.remove(at);
        }
    }

    /// `client` waits for no answer any more. Its request may still arrive.
    pub(super) fn forget(&mut self, client: u8) {
        for message in std::mem::take(&mut self.0) {
            match message {
                Message::Answer { to, .. } if to == client => {}
                Message::Acquire { owner, awaited: true } if owner.client == client => {
                    self.send(Message::Acquire { owner, awaited: false });
                }
                Message::Renew { owner, ttl, awaited: true } if owner.client == client => {
                    self.send(Message::Renew { owner, ttl, awaited: false });
                }
                message => self.send(message),
            }
        }
    }

    /// Whether the owner's lease is being given back.
    pub(super) fn gives_back(&self, owner: Name) -> bool {
        self.0.binary_search(&Message::Release { owner }).is_ok()
    }

    /// Each message once.
    pub(super) fn distinct(&self) -> impl Iterator<Item = Message> + '_ {
        let mut last = None;
        self.0.iter().copied().filter(move |message| last.replace(*message) != Some(*message))
    }
}
