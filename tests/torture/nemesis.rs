//! What may disturb a run, and what each disturbance may and must show.

use serde::{Deserialize, Serialize};

/// What disturbs a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Nemesis {
    Calm,
    /// Clients are killed and started again.
    Kill,
    /// Clients are stopped for a fifth of a lease up to three, and go on.
    Pause,
    /// Calls are dropped at any moment.
    Cancel,
    /// Guards are dropped on threads without a runtime, and after theirs has ended.
    NoRuntime,
    Panic,
    Fork,
    /// Bodies block their executor for longer than the lease.
    Busy,
    /// The database's files are deleted while it is used.
    FileDelete,
    /// An operator ends leases that are held.
    Force,
    /// The server is stopped and goes on.
    ServerPause,
    /// The server is killed and started on what it has written to disk.
    ServerRestart,
    /// The server is killed and started with nothing.
    ServerForgets,
    /// The server removes records, to have memory for others.
    ServerEvicts,
    /// The server's wall clock is set back, by up to an hour.
    ClockBack,
    /// The server's wall clock is set forward, by about a lease and more.
    ClockForward,
    /// The same by less than the lock delay.
    ClockForwardDelay,
    /// Requests arrive, and their answers do not.
    ReplyLost,
    /// One way of the connection is slow.
    Delay,
    /// Nothing arrives, and nobody is told.
    BlackHole,
    /// Connections are reset before or after a request got through.
    Reset,
    /// The server's side of a connection is gone and the client's is not.
    HalfOpen,
    /// Connections are reset, and what was asked there arrives later.
    Late,
}

impl Nemesis {
    pub(crate) const ALL: [(Self, &str); 23] = [
        (Self::Calm, "calm"),
        (Self::Kill, "kill"),
        (Self::Pause, "pause"),
        (Self::Cancel, "cancel"),
        (Self::NoRuntime, "no-runtime"),
        (Self::Panic, "panic"),
        (Self::Fork, "fork"),
        (Self::Busy, "busy"),
        (Self::FileDelete, "file-delete"),
        (Self::Force, "force"),
        (Self::ServerPause, "server-pause"),
        (Self::ServerRestart, "server-restart"),
        (Self::ServerForgets, "server-forgets"),
        (Self::ServerEvicts, "server-evicts"),
        (Self::ClockBack, "clock-back"),
        (Self::ClockForward, "clock-forward"),
        (Self::ClockForwardDelay, "clock-forward-delay"),
        (Self::ReplyLost, "reply-lost"),
        (Self::Delay, "delay"),
        (Self::BlackHole, "black-hole"),
        (Self::Reset, "reset"),
        (Self::HalfOpen, "half-open"),
        (Self::Late, "late"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(nemesis, _)| *nemesis == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(nemesis, _)| *nemesis)
    }

    /// Whether it needs a server.
    pub(crate) fn is_of_servers(self) -> bool {
        matches!(self, Self::ServerPause | Self::ServerRestart | Self::ServerForgets | Self::ServerEvicts)
            || self.is_of_the_clock()
            || self.is_of_the_proxy()
    }

    /// Whether it needs a server whose clock can be set.
    pub(crate) fn is_of_the_clock(self) -> bool {
        matches!(self, Self::ClockBack | Self::ClockForward | Self::ClockForwardDelay)
    }

    /// Whether it needs a server that can be reached through the proxy.
    pub(crate) fn is_of_the_proxy(self) -> bool {
        matches!(
            self,
            Self::ReplyLost | Self::Delay | Self::BlackHole | Self::Reset | Self::HalfOpen | Self::Late
        )
    }

    /// Whether it needs clients that are processes of their own.
    pub(crate) fn is_of_processes(self) -> bool {
        matches!(self, Self::Kill | Self::Pause)
    }

    /// Whether keys go to others while their holders cannot know it yet.
    pub(crate) fn takes_away(self) -> bool {
        matches!(
            self,
            Self::FileDelete | Self::ServerForgets | Self::ServerEvicts | Self::ClockForward | Self::Force
        )
    }
}
