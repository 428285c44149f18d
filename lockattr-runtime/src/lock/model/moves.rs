//! What a client does by itself, at any moment at which the rules allow it: so early that no timer was late,
//! or so late that its process had been paused.

use std::time::Duration;

use super::client::{Body, Claim, Client, Phase};
use super::network::{Message, Network};
use super::system::Bounds;
use crate::lock::pursuit::Pursuit;
use crate::options::Wait;
use crate::term::{Due, Standing, Terms};
use crate::time::Moment;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Move {
    /// Begins an acquisition.
    Acquire,
    /// Sends the next attempt: because its pause is over, or sooner because of a hint.
    AskAgain,
    /// Takes it that no answer comes any more.
    HearNothing,
    /// The caller drops the future.
    DropFuture,
    Renew {
        ttl: Duration,
    },
    /// The body checks the lock and sets about writing.
    Write,
    /// The guard is given back; after a loss, once the body was dropped.
    Release,
}

impl Move {
    /// Whether it sends a request to take or to renew.
    pub(super) fn asks(self) -> bool {
        matches!(self, Self::Acquire | Self::AskAgain | Self::Renew { .. })
    }
}

/// What the bounds still allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub(super) owners: u8,
    pub(super) requests: u8,
}

impl Client {
    pub(super) fn moves(&self, bounds: Bounds, left: Left, now: Moment, moves: &mut Vec<Move>) {
        let may_ask = left.requests > 0;
        match &self.phase {
            Phase::Idle => {
                if may_ask && left.owners > 0 {
                    moves.push(Move::Acquire);
                }
            }
            Phase::Acquiring { sent, .. } => {
                if sent.is_some() {
                    moves.push(Move::HearNothing);
                } else if may_ask {
                    moves.push(Move::AskAgain);
                }
                moves.push(Move::DropFuture);
            }
            Phase::Holding(holding) => {
                if holding.renewing.is_some() {
                    moves.push(Move::HearNothing);
                } else if may_ask && holding.term.clone().due(now) == Due::Renew {
                    moves.extend(bounds.renewals().map(|ttl| Move::Renew { ttl }));
                }
                if holding.body == Body::Running && self.believes(now) {
                    moves.push(Move::Write);
                }
                // A guard is given back once its body has ended; one that is lost may drop it anywhere.
                if holding.body != Body::Writing {
                    moves.push(Move::Release);
                }
            }
            Phase::Lost => moves.push(Move::Release),
        }
    }

    /// Does one of [`Client::moves`].
    pub(super) fn go(&mut self, bounds: Bounds, now: Moment, network: &mut Network, todo: Move) {
        match todo {
            Move::Acquire => {
                self.owners += 1;
                let terms = Terms { ttl: bounds.ttl(), renews: true, max_hold: None };
                let pursuit = Pursuit::new(terms, Wait::AtMost(bounds.wait()), now);
                self.ask(pursuit, Claim::default(), now, network);
            }
            Move::AskAgain => {
                if let Phase::Acquiring { pursuit, claim, .. } = self.leave() {
                    self.ask(pursuit, claim, now, network);
                }
            }
            Move::HearNothing => self.hear_nothing(now, network),
            Move::DropFuture => {
                if let Phase::Acquiring { claim, .. } = self.leave() {
                    self.give_up(claim, network);
                }
            }
            Move::Renew { ttl } => {
                network.send(Message::Renew { owner: self.name(), ttl, awaited: true });
                if let Phase::Holding(holding) = &mut self.phase {
                    holding.renewing = Some(now);
                }
            }
            Move::Write => {
                if let Phase::Holding(holding) = &mut self.phase {
                    holding.body = Body::Writing;
                    network.send(Message::Write { token: holding.token, grant: holding.grant });
                }
            }
            Move::Release => {
                // A renewal on its way is stopped before the release is sent; the store may still see it.
                network.forget(self.me);
                network.send(Message::Release { owner: self.name() });
                if let Phase::Holding(mut holding) = self.leave() {
                    holding.term.close(now);
                    assert!(holding.term.check(now) == Standing::Closed, "what is given back is not held");
                }
            }
        }
    }

    fn leave(&mut self) -> Phase {
        std::mem::replace(&mut self.phase, Phase::Idle)
    }

    fn ask(&mut self, pursuit: Pursuit, mut claim: Claim, now: Moment, network: &mut Network) {
        claim.sending();
        network.send(Message::Acquire { owner: self.name(), awaited: true });
        self.phase = Phase::Acquiring { pursuit, claim, sent: Some(now) };
    }
}
