//! What one request asks for, and what its holder does with the lock.

use std::time::Duration;

use lockattr::{LockBuilder, Locker, OnLost, Wait};

use super::chance::Chance;
use super::weather::Weather;

#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) keys: Vec<String>,
    pub(super) expires: Duration,
    pub(super) wait: Wait,
    pub(super) renew: bool,
    pub(super) min_hold: Option<Duration>,
    pub(super) max_hold: Option<Duration>,
    pub(super) way: Way,
    pub(super) steps: usize,
    /// The body panics after that many steps.
    pub(super) panics: Option<usize>,
    pub(super) cancel: Option<Cancel>,
}

/// How the lock is taken and given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A guard that is released.
    Release,
    /// A guard that is dropped.
    Drop,
    /// A body that stops with the lock.
    Run,
    /// A body that runs on without it.
    RunOn,
    /// A body that asks for its own key again.
    Again,
    /// A body that enters again under its own lock, works there, and goes on after.
    Reentrant,
}

/// When the request, or what it led to, is given up by dropping its future.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cancel {
    Polls(usize),
    After(Duration),
}

impl Wish {
    pub(super) fn draw(weather: &Weather, chance: &mut Chance) -> Self {
        let many = if chance.percent(70) { 1 } else { 2 + chance.below(2) };
        let keys = (0..many).map(|_| format!("key-{}", chance.below(weather.keys))).collect();
        let expires = chance.pick(weather.ttls);
        let wait = match chance.below(5) {
            0 => Wait::AtMost(Duration::ZERO),
            1 => Wait::AtMost(chance.up_to(expires / 2)),
            2 => Wait::AtMost(chance.up_to(expires * 3)),
            _ => Wait::Forever,
        };
        let steps = chance.below(4);
        let min_hold = chance.percent(12).then(|| chance.up_to(expires));
        Self {
            keys,
            expires,
            wait,
            renew: chance.percent(88),
            min_hold,
            max_hold: chance
                .percent(10)
                .then(|| min_hold.unwrap_or_default() + chance.up_to(expires) + MOMENT),
            way: chance.pick(&[
                Way::Release,
                Way::Drop,
                Way::Run,
                Way::Run,
                Way::Run,
                Way::RunOn,
                Way::Again,
                Way::Reentrant,
            ]),
            steps,
            panics: chance.percent(weather.panics).then(|| chance.below(steps + 1)),
            cancel: chance.percent(weather.cancelled).then(|| {
                if chance.percent(50) {
                    Cancel::Polls(chance.below(12))
                } else {
                    Cancel::After(chance.up_to(expires * 2))
                }
            }),
        }
    }

    pub(super) fn builder(&self, locker: &Locker, op: u64) -> LockBuilder {
        let mut builder = locker
            .lock_many(&self.keys)
            .label(op.to_string())
            .expires(self.expires)
            .wait(self.wait)
            .renew(self.renew)
            .on_lost(if self.way == Way::RunOn { OnLost::Continue } else { OnLost::Cancel });
        if let Some(least) = self.min_hold {
            builder = builder.min_hold(least);
        }
        if let Some(most) = self.max_hold {
            builder = builder.max_hold(most);
        }
        builder
    }

    /// Whether it waits for this key and no other.
    pub(super) fn waits_only_for(&self, key: &str) -> bool {
        self.wait != Wait::AtMost(Duration::ZERO) && self.keys.iter().all(|mine| mine == key)
    }
}

const MOMENT: Duration = Duration::from_millis(1);
