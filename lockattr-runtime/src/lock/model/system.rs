//! The whole: two clients, a store and a register, the network between them, and a clock; and what must hold.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use stateright::{Model, Property};

use super::client::{Client, Name};
use super::moves::{Left, Move};
use super::network::{Message, Network};
use super::server::Server;
use super::variants::Rules;
use crate::lease::Lease;
use crate::time::Moment;

/// One step of the clock, which all share. Anything may happen any number of times between two steps.
pub(super) const TICK: Duration = Duration::from_secs(1);

pub(super) const ONE_BELIEVER: &str = "never two believers";
pub(super) const GRANTS: &str = "grants never overlap";
pub(super) const TOKENS: &str = "tokens grow in the order of grants";
pub(super) const WRITES: &str = "a stale write is never applied";
pub(super) const LEFT_OVER: &str = "what nobody knows of is being given back";

/// How far the model goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How long a lease lasts, in ticks.
    pub(super) ttl: u8,
    /// How long a client waits while the other holds the key, in ticks.
    pub(super) wait: u8,
    /// When the clock stops.
    pub(super) ticks: u8,
    /// How many owners the clients draw, together. Those that the core draws by itself may come on top.
    pub(super) owners: u8,
    /// How many requests to take or to renew they send, together.
    pub(super) requests: u8,
    /// How many messages arrive twice, of all.
    pub(super) doubles: u8,
    /// Whether a renewal may also ask for one tick instead of the ttl.
    pub(super) short_renewals: bool,
}

impl Bounds {
    pub(super) fn ttl(self) -> Duration {
        TICK * u32::from(self.ttl)
    }

    pub(super) fn wait(self) -> Duration {
        TICK * u32::from(self.wait)
    }

    /// The ttls that a renewal may ask for.
    pub(super) fn renewals(self) -> impl Iterator<Item = Duration> {
        [Some(self.ttl()), self.short_renewals.then_some(TICK)].into_iter().flatten()
    }
}

/// The moment `ticks` after the start. Away from zero, where moments saturate.
pub(super) fn moment(ticks: u8) -> Moment {
    Moment::from_nanos(1_000_000_000_000) + TICK * u32::from(ticks)
}

pub(super) fn key() -> Arc<str> {
    static KEY: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("key"));
    Arc::clone(&KEY)
}

#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) rules: Rules,
    pub(super) bounds: Bounds,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    ticks: u8,
    clients: [Client; 2],
    network: Network,
    server: Server,
    requests: u8,
    doubled: u8,
}

impl State {
    fn now(&self) -> Moment {
        moment(self.ticks)
    }

    fn believers(&self) -> usize {
        self.clients.iter().filter(|client| client.believes(self.now())).count()
    }

    /// Whether somebody knows of what the store holds, or it is being given back.
    fn is_looked_after(&self) -> bool {
        self.server.holder(self.now()).is_none_or(|owner| {
            self.clients[usize::from(owner.client)].knows_of(owner) || self.network.gives_back(owner)
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Tick,
    Client(u8, Move),
    Deliver(Message),
    /// It arrives, and will arrive once more.
    Double(Message),
    /// The store restarts without its record, which takes a tick.
    Forget,
}

impl System {
    fn deliver(&self, state: &mut State, message: Message) {
        let (rules, now) = (self.rules, state.now());
        let lease = |owner: Name, ttl| Lease::new(key(), owner.owner(), ttl);
        match message {
            Message::Acquire { owner, awaited } => {
                let lease = lease(owner, self.bounds.ttl());
                let answer = state.server.acquire(rules, &lease, owner, now);
                if awaited {
                    state.network.send(Message::Answer { to: owner.client, answer });
                }
            }
            Message::Renew { owner, ttl, awaited } => {
                let answer = state.server.renew(rules, &lease(owner, ttl), owner, now);
                if awaited {
                    state.network.send(Message::Answer { to: owner.client, answer });
                }
            }
            Message::Release { owner } => {
                state.server.release(rules, &lease(owner, self.bounds.ttl()), owner, now);
            }
            Message::Write { token, grant } => {
                state.server.write(rules, token, grant);
                for client in &mut state.clients {
                    client.has_written(grant);
                }
            }
            Message::Answer { to, answer } => {
                state.clients[usize::from(to)].hear(rules, now, &mut state.network, answer);
            }
        }
    }
}

impl Model for System {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            ticks: 0,
            clients: [Client::new(0), Client::new(1)],
            network: Network::default(),
            server: Server::default(),
            requests: 0,
            doubled: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.ticks < self.bounds.ticks {
            actions.push(Action::Tick);
            if self.rules.forgets() && state.server.knows_something() {
                actions.push(Action::Forget);
            }
        }
        let drawn = state.clients.iter().map(|client| client.owners).sum();
        let left = Left {
            owners: self.bounds.owners.saturating_sub(drawn),
            requests: self.bounds.requests - state.requests,
        };
        // The clients are alike: the first to begin is called 0.
        let begun = if drawn > 0 { 2 } else { 1 };
        let mut moves = Vec::new();
        for (index, client) in (0..).zip(&state.clients[..begun]) {
            client.moves(self.bounds, left, state.now(), &mut moves);
            actions.extend(moves.drain(..).map(|todo| Action::Client(index, todo)));
        }
        for message in state.network.distinct() {
            actions.push(Action::Deliver(message));
            // A release stays anyway, and a second copy of an answer finds nobody waiting.
            let once = matches!(message, Message::Release { .. } | Message::Answer { .. });
            if !once && state.doubled < self.bounds.doubles {
                actions.push(Action::Double(message));
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        match action {
            Action::Tick | Action::Forget => {
                if action == Action::Forget {
                    state.server.forget();
                }
                state.ticks += 1;
                let now = state.now();
                state.server.look(now);
                for client in &mut state.clients {
                    client.look(now, &mut state.network);
                }
            }
            Action::Client(index, todo) => {
                state.requests += u8::from(todo.asks());
                let now = state.now();
                state.clients[usize::from(index)].go(self.bounds, now, &mut state.network, todo);
            }
            Action::Deliver(message) => {
                state.network.take(message);
                self.deliver(&mut state, message);
            }
            Action::Double(message) => {
                state.doubled += 1;
                self.deliver(&mut state, message);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_BELIEVER, |_, state: &State| state.believers() < 2),
            Property::always(GRANTS, |_, state: &State| !state.server.broken.grants_overlapped),
            Property::always(TOKENS, |_, state: &State| !state.server.broken.token_did_not_grow),
            Property::always(WRITES, |_, state: &State| !state.server.broken.stale_write_applied),
            // A request that arrives again after all answers may leave something: a store remembers one owner.
            Property::always(LEFT_OVER, |model: &Self, state: &State| {
                model.bounds.doubles > 0 || state.is_looked_after()
            }),
            Property::sometimes("a lock is taken", |_, state: &State| state.believers() > 0),
            Property::sometimes("a lock is taken over after it ran out", |_, state: &State| {
                state.server.took_over() && state.believers() > 0
            }),
            Property::sometimes("a lock is renewed", |model: &Self, state: &State| {
                state.clients.iter().any(|client| client.has_renewed(model.bounds.ttl()))
            }),
            Property::sometimes("an answer is lost and asking again helps", |_, state: &State| {
                state.clients.iter().any(Client::was_told_again)
            }),
        ]
    }
}
