//! What a run is like: how many take part, what the network does, and what else goes wrong.
//!
//! Invariant: all of it follows from the seed.

use std::time::Duration;

use super::chance::Chance;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const TTLS: &[&[Duration]] =
    &[&[ms(100), ms(250), ms(1_000)], &[ms(1_000), ms(3_000)], &[ms(2_000), ms(10_000)], &[ms(60_000)]];

/// One thing that is wrong for good, mostly with the store, for runs that must be seen to violate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It loses all records now and then, as without persistence.
    Forgets,
    /// Its clock jumps forward.
    ClockJumpsForth,
    /// It gives a live lease of another away.
    StealsLive,
    /// It releases whatever the key has, whoever asks.
    FreesForeign,
    /// It renews without looking at the owner.
    RenewsForeign,
    /// It does not know the owner of a repeated request again.
    ForgetsOwner,
    /// Its token is a counter that starts again with each record.
    CountsFromOne,
    /// It says that a key is taken which is free, and that a lease is lost which is there.
    Lies,
    /// It does not keep what it is told to keep.
    ForgetsKeep,
    /// Clocks of machines run slow by a third.
    SlowMachines,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that may happen")]
#[derive(Clone, Debug)]
pub(super) struct Weather {
    pub(super) machines: usize,
    pub(super) tasks: usize,
    pub(super) keys: usize,
    pub(super) rounds: usize,
    /// Which ttls are used.
    pub(super) ttls: &'static [Duration],
    /// Longest way of a request, and of an answer.
    pub(super) delay: Duration,
    /// Of a hundred requests, how many are lost, or their answers.
    pub(super) lost: u64,
    pub(super) refused: u64,
    /// How many arrive a second time.
    pub(super) repeated: u64,
    /// How many fail for their caller and arrive all the same, later.
    pub(super) late: u64,
    pub(super) cuts: bool,
    pub(super) pauses: bool,
    pub(super) jumps: bool,
    pub(super) crashes: bool,
    pub(super) forced: bool,
    pub(super) shutdowns: bool,
    pub(super) back_steps: bool,
    /// Largest drift of a machine's clock, in parts per million.
    pub(super) drift: u64,
    /// Of a hundred requests for locks, how many are given up half way.
    pub(super) cancelled: u64,
    pub(super) panics: u64,
    pub(super) lock_delay: Duration,
    pub(super) atomic_many: bool,
    pub(super) keep: bool,
    pub(super) hints: bool,
    pub(super) flaw: Option<Flaw>,
}

impl Weather {
    pub(super) fn of(chance: &mut Chance) -> Self {
        let stormy = chance.percent(60);
        let noisy = stormy && chance.percent(70);
        let share = |chance: &mut Chance, most: usize| {
            if noisy { u64::try_from(chance.below(most)).unwrap_or_default() } else { 0 }
        };
        let ttls = chance.pick(TTLS);
        let delays = [ms(0), ms(1), ms(5), ms(30), ms(400)];
        let mut weather = Self {
            machines: 1 + chance.below(3),
            tasks: 1 + chance.below(4),
            keys: 1 + chance.below(3),
            rounds: 1 + chance.below(3),
            ttls,
            delay: chance.pick(if stormy { &delays } else { &delays[..3] }),
            lost: share(chance, 25),
            refused: share(chance, 10),
            repeated: share(chance, 15),
            late: share(chance, 15),
            cuts: stormy && chance.percent(40),
            pauses: stormy && chance.percent(40),
            jumps: stormy && chance.percent(25),
            crashes: stormy && chance.percent(25),
            forced: chance.percent(20),
            shutdowns: chance.percent(15),
            back_steps: stormy && chance.percent(25),
            drift: if chance.percent(50) { 10_000 } else { 0 },
            cancelled: chance.pick(&[0, 0, 15, 50]),
            panics: chance.pick(&[0, 0, 10]),
            lock_delay: chance.pick(&[ms(0), ms(0), ms(250)]),
            atomic_many: chance.percent(50),
            keep: chance.percent(70),
            hints: chance.percent(60),
            flaw: None,
        };
        if weather.is_calm() {
            weather.delay = weather.small_delay();
        }
        weather
    }

    /// So small that the shortest lease has room for a few round trips, and none is lost.
    pub(super) fn small_delay(&self) -> Duration {
        let shortest = self.ttls.iter().copied().min().unwrap_or_default();
        self.delay.min(shortest / 40)
    }

    /// Nothing goes wrong: no lease may be lost, and no free key may stay unused.
    pub(super) fn is_calm(&self) -> bool {
        self.lost + self.refused + self.repeated + self.late == 0
            && !(self.cuts || self.pauses || self.jumps || self.crashes || self.back_steps)
    }

    /// Requests may land long after their caller has gone.
    pub(super) fn is_belated(&self) -> bool {
        self.repeated + self.late > 0
    }

    pub(super) fn longest_ttl(&self) -> Duration {
        self.ttls.iter().copied().max().unwrap_or_default()
    }

    /// How late a belated request may land.
    pub(super) fn belated(&self) -> Duration {
        self.longest_ttl() * 2
    }
}
