//! The rows of the table: which store is disturbed by what, and what that may and must break.

use std::time::Duration;

use crate::broken::Fault;
use crate::nemesis::Nemesis;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// No two believe at once to hold a key.
    Overlap,
    /// Tokens of a key are unique and grow in the order of its grants.
    TokenOrder,
    /// The register that checks tokens loses no update.
    StaleApplied,
    /// Nor does the one that does not.
    LostUpdate,
    /// Nobody gets a dead holder's key before its lease is over.
    EarlyTakeover,
    /// Somebody gets it soon after that.
    LateTakeover,
    /// Nothing is held for nobody.
    Orphan,
    /// Nobody loses a lock without a reason.
    FalseLoss,
    /// No store failure is reported when the store does not fail.
    Failure,
    /// Every call ends in a way that is documented, and clients see nothing that must not be.
    Undeclared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Sqlite,
    Redis,
    Postgres,
    Broken(Fault),
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) nemesis: Nemesis,
    /// How long it takes in a short run.
    pub(crate) seconds: u64,
}

impl Row {
    pub(crate) fn store(self) -> String {
        match self.kind {
            Kind::Memory => "memory".to_owned(),
            Kind::Sqlite => "sqlite".to_owned(),
            Kind::Redis => "redis".to_owned(),
            Kind::Postgres => "postgres".to_owned(),
            Kind::Broken(fault) => {
                let name = Fault::ALL.iter().find(|(known, _)| *known == fault).map_or("", |(_, name)| name);
                format!("broken:{name}")
            }
        }
    }

    /// The lease of every lock. A shorter one is lost when a loaded machine stands still for a moment; where nobody
    /// dies it is longer, so that what is not given back is told from what has ended by itself.
    pub(crate) fn ttl(self) -> Duration {
        let gives_back =
            matches!(self.nemesis, Nemesis::Cancel | Nemesis::NoRuntime | Nemesis::Panic | Nemesis::Fork);
        Duration::from_secs(if gives_back { 4 } else { 1 })
    }

    /// Asked of every locker.
    pub(crate) fn lock_delay(self) -> Duration {
        if self.nemesis == Nemesis::ClockForwardDelay { self.ttl() } else { Duration::ZERO }
    }

    /// What this run breaks by itself; it is reported.
    pub(crate) fn may(self) -> &'static [Rule] {
        use Rule::{
            EarlyTakeover, Failure, FalseLoss, LateTakeover, LostUpdate, Orphan, Overlap, StaleApplied,
            TokenOrder,
        };
        match (self.kind, self.nemesis) {
            (Kind::Broken(_), _) => &[
                Overlap,
                TokenOrder,
                StaleApplied,
                LostUpdate,
                EarlyTakeover,
                LateTakeover,
                Orphan,
                FalseLoss,
                Failure,
            ],
            // A client that is stopped in a transaction of SQLite keeps the others out of the database.
            (_, Nemesis::Pause) => &[LostUpdate, FalseLoss, Failure],
            // A grant that comes in while its caller's thread is blocked may be over when it is looked at.
            (_, Nemesis::Busy) => &[Failure],
            (_, Nemesis::Force) => &[Overlap, LostUpdate, FalseLoss],
            (_, nemesis) if nemesis.takes_away() => &[Overlap, LostUpdate, FalseLoss, Failure],
            (_, Nemesis::ClockBack) => &[],
            (_, Nemesis::ClockForwardDelay) => &[FalseLoss],
            (_, nemesis) if nemesis.is_of_servers() => &[FalseLoss, Failure],
            _ => &[],
        }
    }

    /// What this run has to break, or the checker does not see it.
    pub(crate) fn must(self) -> &'static [Rule] {
        match (self.kind, self.nemesis) {
            (Kind::Broken(fault), _) => match fault {
                Fault::GrantsTwice => {
                    &[Rule::Overlap, Rule::TokenOrder, Rule::StaleApplied, Rule::LostUpdate]
                }
                Fault::TokensGoBack => &[Rule::TokenOrder],
                Fault::ForgetsReleases => &[Rule::Orphan],
                Fault::ForgetsRenewals => &[Rule::Overlap],
                Fault::EndsEarly => &[Rule::EarlyTakeover],
                Fault::EndsLate => &[Rule::LateTakeover],
                Fault::SaysLost => &[Rule::FalseLoss],
                Fault::Refuses => &[Rule::Failure],
                Fault::Panics => &[Rule::Undeclared],
            },
            (_, Nemesis::Pause) => &[Rule::LostUpdate],
            (_, nemesis) if nemesis.takes_away() => &[Rule::Overlap],
            _ => &[],
        }
    }
}

/// Every row that there is.
pub(crate) fn all() -> Vec<Row> {
    let row = |kind, nemesis, seconds| Row { kind, nemesis, seconds };
    let mut rows = Vec::new();
    for (nemesis, seconds) in [
        (Nemesis::Calm, 2),
        (Nemesis::Cancel, 2),
        (Nemesis::Panic, 2),
        (Nemesis::NoRuntime, 2),
        (Nemesis::Fork, 2),
        (Nemesis::Busy, 5),
    ] {
        rows.push(row(Kind::Memory, nemesis, seconds));
    }
    for (nemesis, seconds) in [
        (Nemesis::Calm, 4),
        (Nemesis::Kill, 10),
        (Nemesis::Pause, 10),
        (Nemesis::Cancel, 4),
        (Nemesis::Panic, 3),
        (Nemesis::NoRuntime, 3),
        (Nemesis::Fork, 3),
        (Nemesis::Busy, 6),
        (Nemesis::FileDelete, 5),
        (Nemesis::Force, 4),
    ] {
        rows.push(row(Kind::Sqlite, nemesis, seconds));
    }
    for (nemesis, seconds) in [
        (Nemesis::Calm, 3),
        (Nemesis::Kill, 8),
        (Nemesis::Pause, 8),
        (Nemesis::Cancel, 3),
        (Nemesis::Panic, 2),
        (Nemesis::NoRuntime, 2),
        (Nemesis::Fork, 2),
        (Nemesis::Busy, 5),
        (Nemesis::Force, 4),
        (Nemesis::ServerPause, 6),
        (Nemesis::ServerRestart, 6),
        (Nemesis::ServerForgets, 6),
        (Nemesis::ServerEvicts, 6),
        (Nemesis::ClockBack, 6),
        (Nemesis::ClockForward, 6),
        (Nemesis::ClockForwardDelay, 6),
        (Nemesis::ReplyLost, 6),
        (Nemesis::Delay, 6),
        (Nemesis::BlackHole, 6),
        (Nemesis::Reset, 6),
        (Nemesis::HalfOpen, 6),
        (Nemesis::Late, 6),
    ] {
        rows.push(row(Kind::Redis, nemesis, seconds));
    }
    for (nemesis, seconds) in [
        (Nemesis::Calm, 3),
        (Nemesis::Kill, 8),
        (Nemesis::Pause, 8),
        (Nemesis::Cancel, 3),
        (Nemesis::Panic, 2),
        (Nemesis::NoRuntime, 2),
        (Nemesis::Fork, 2),
        (Nemesis::Busy, 5),
        (Nemesis::Force, 4),
        (Nemesis::ServerPause, 6),
        (Nemesis::ServerRestart, 6),
        (Nemesis::ClockBack, 6),
        (Nemesis::ClockForward, 6),
        (Nemesis::ClockForwardDelay, 6),
        (Nemesis::ReplyLost, 6),
        (Nemesis::Delay, 6),
        (Nemesis::BlackHole, 6),
        (Nemesis::Reset, 6),
        (Nemesis::HalfOpen, 6),
        (Nemesis::Late, 6),
    ] {
        rows.push(row(Kind::Postgres, nemesis, seconds));
    }
    for (fault, _) in Fault::ALL {
        let (nemesis, seconds) = match fault {
            Fault::EndsEarly | Fault::EndsLate => (Nemesis::Kill, 8),
            _ => (Nemesis::Calm, 3),
        };
        rows.push(row(Kind::Broken(fault), nemesis, seconds));
    }
    rows
}
