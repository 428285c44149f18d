//! A client: the real pursuit and the real term, and around them what the wait loop, the claim, the keeper
//! and the guard make of answers. What a client does by itself is in `moves.rs`.

use std::time::Duration;

use uuid::Uuid;

use super::network::{Answer, Message, Network};
use super::variants::Rules;
use crate::error::LossCause;
use crate::lease::Owner;
use crate::lock::pursuit::{Answer as Attempt, Pursuit, Step};
use crate::term::{Standing, Term};
use crate::time::Moment;

/// An owner, as the model writes it: the how-manieth that a client has drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) client: u8,
    number: u8,
}

impl Name {
    pub(super) fn owner(self) -> Owner {
        Owner::from_uuid(Uuid::from_u128(u128::from(self.client) << 8 | u128::from(self.number)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) me: u8,
    /// How many owners it has drawn; the last is in use.
    pub(super) owners: u8,
    pub(super) phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Acquiring {
        pursuit: Pursuit,
        claim: Claim,
        /// When the attempt that it waits for was sent; none between two attempts.
        sent: Option<Moment>,
    },
    Holding(Holding),
    /// Lost, and the body perhaps not gone yet.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holding {
    pub(super) term: Term,
    pub(super) token: u64,
    pub(super) grant: u8,
    /// When the renewal that it waits for was sent.
    pub(super) renewing: Option<Moment>,
    pub(super) body: Body,
    /// Whether an answer was lost, and the same owner asked again and was told of the same grant.
    after_lost_answer: bool,
}

/// What the body has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Body {
    #[default]
    Running,
    /// It has seen that the lock is held, and is about to write, however long that takes it.
    Writing,
    Done,
}

/// Whether the store may hold something for the owner that nobody knows of; as `claim.rs` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    doubt: bool,
    earlier: bool,
}

impl Claim {
    pub(super) fn sending(&mut self) {
        self.earlier = self.doubt;
        self.doubt = true;
    }

    fn holds_nothing(&mut self, rules: Rules) {
        self.doubt = self.earlier && !rules.one_answer_ends_all_doubt();
    }
}

impl Client {
    pub(super) fn new(me: u8) -> Self {
        Self { me, owners: 0, phase: Phase::Idle }
    }

    /// The owner in use.
    pub(super) fn name(&self) -> Name {
        Name { client: self.me, number: self.owners }
    }

    /// Whether its guard says, at `now`, that the lock is held.
    pub(super) fn believes(&self, now: Moment) -> bool {
        matches!(&self.phase, Phase::Holding(holding) if holding.term.clone().check(now) == Standing::Held)
    }

    /// Whether it acquires, holds or ends what belongs to `owner`.
    pub(super) fn knows_of(&self, owner: Name) -> bool {
        self.name() == owner && self.phase != Phase::Idle
    }

    /// Whether a renewal has moved the deadline of what it holds, of leases of `ttl`.
    pub(super) fn has_renewed(&self, ttl: Duration) -> bool {
        matches!(&self.phase, Phase::Holding(Holding { term, .. }) if term.stop_at() > term.entered() + ttl)
    }

    /// Whether what it holds was told to it after an answer had been lost.
    pub(super) fn was_told_again(&self) -> bool {
        matches!(self.phase, Phase::Holding(Holding { after_lost_answer: true, .. }))
    }

    /// What the claim does when it is dropped.
    pub(super) fn give_up(&self, claim: Claim, network: &mut Network) {
        network.forget(self.me);
        if claim.doubt {
            network.send(Message::Release { owner: self.name() });
        }
    }

    /// It takes it that no answer comes any more.
    pub(super) fn hear_nothing(&mut self, now: Moment, network: &mut Network) {
        network.forget(self.me);
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Acquiring { pursuit, claim, sent: Some(sent) } => {
                self.attempted(pursuit, claim, sent, now, Attempt::Failed { undone: false }, network);
            }
            Phase::Holding(mut holding) => {
                holding.renewing = None;
                holding.term.renewal_failed(now, 0);
                self.phase = Phase::Holding(holding);
            }
            phase => unreachable!("nothing is waited for in {phase:?}"),
        }
    }

    /// An answer has come to what it waits for.
    pub(super) fn hear(&mut self, rules: Rules, now: Moment, network: &mut Network, answer: Answer) {
        network.forget(self.me);
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Acquiring { pursuit, mut claim, sent: Some(sent) } => {
                let attempt = match answer {
                    Answer::Granted { remaining, .. } => Attempt::Granted { remaining },
                    // How long it is taken only says when to ask again, and that may be at any time here.
                    Answer::Taken => Attempt::Taken { remaining: Duration::ZERO, undone: false },
                    Answer::Spent => Attempt::Spent,
                    Answer::Renewed { .. } | Answer::Lost => unreachable!("an answer to another request"),
                };
                if matches!(attempt, Attempt::Taken { .. } | Attempt::Spent) {
                    claim.holds_nothing(rules);
                }
                self.attempted(pursuit, claim, rules.counted_from(sent, now), now, attempt, network);
                if let (Phase::Holding(holding), Answer::Granted { token, grant, again, .. }) =
                    (&mut self.phase, answer)
                {
                    (holding.token, holding.grant) = (token, grant);
                    holding.after_lost_answer = again && claim.earlier;
                }
            }
            Phase::Holding(mut holding) => {
                let sent = holding.renewing.take().expect("a renewal that is waited for");
                if let Answer::Renewed { remaining } = answer {
                    holding.term.renewed(rules.counted_from(sent, now), now, remaining, 0);
                } else {
                    holding.term.lose(LossCause::NotOurs);
                }
                self.phase = Phase::Holding(holding);
                self.look(now, network);
            }
            phase => unreachable!("nothing is waited for in {phase:?}"),
        }
    }

    fn attempted(
        &mut self,
        mut pursuit: Pursuit,
        claim: Claim,
        sent: Moment,
        now: Moment,
        answer: Attempt,
        network: &mut Network,
    ) {
        self.phase = match pursuit.answered(sent, now, answer, 0) {
            Step::Enter(term) => Phase::Holding(Holding {
                term,
                token: 0,
                grant: 0,
                renewing: None,
                body: Body::Running,
                after_lost_answer: false,
            }),
            Step::Again { fresh: false, .. } => Phase::Acquiring { pursuit, claim, sent: None },
            Step::Again { fresh: true, .. } => {
                self.give_up(claim, network);
                self.owners += 1;
                Phase::Acquiring { pursuit, claim: Claim::default(), sent: None }
            }
            Step::GiveUp(_) => {
                self.give_up(claim, network);
                Phase::Idle
            }
        };
    }

    /// The write of this grant has arrived.
    pub(super) fn has_written(&mut self, written: u8) {
        if let Phase::Holding(Holding { grant, body, .. }) = &mut self.phase
            && *grant == written
        {
            *body = Body::Done;
        }
    }

    /// Time has passed: a lease that is over is lost, whether or not anybody looks right now, since a term
    /// that is asked later says the same.
    pub(super) fn look(&mut self, now: Moment, network: &mut Network) {
        if let Phase::Holding(holding) = &mut self.phase
            && holding.term.check(now) != Standing::Held
        {
            network.forget(self.me);
            self.phase = Phase::Lost;
        }
    }
}
