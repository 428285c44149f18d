//! The rules of the core, tried in every order of events within bounds: a model of two clients of one key.
//!
//! **Real** are the state machines [`Pursuit`](super::pursuit::Pursuit) and [`Term`](crate::term::Term), and
//! the steps of the store in `store/entry.rs`. **Written again** for the model is what is between them: when the
//! claim is in doubt (`claim.rs`), that a renewal is dropped before the release is sent (`guard.rs`), that one
//! renewal is on its way at a time (`renew.rs`).
//!
//! Anything that waits for a timer or an answer may go on at any moment: a pause of a pursuit ends at once (a
//! hint) or never, an answer is given up at once (an error) or never, a renewal is sent as soon as it is due or
//! much later. Messages arrive in any order, at any time, twice or never. A give-back in the background goes on
//! for ever. The register applies a write whose token is not below the last one's; the body looks at its lock,
//! and its write arrives at any time after that.
//!
//! **Not in it**: clocks of different rate or that jump, and anything shorter than a tick of one second, so
//! neither the margins of `time.rs`; random spread of renewals and pauses; lock delay, minimum hold, `max_hold`,
//! `once_per`, blocks of tokens; several keys, quorums, queues of waiters; more than two clients; threads. The
//! simulation and the torture have those.
//!
//! **Bounds**: see [`CASES`]. They are searched to the end, unless `LOCKATTR_MODEL_STATES` says after how many
//! states, counted with repetition, to stop. `LOCKATTR_MODEL_DEPTH=n` allows `n` ticks and `n` requests more:
//! each makes ten to twenty-five times as many states.

mod client;
mod moves;
mod network;
mod server;
mod system;
mod variants;

use std::fmt::Debug;
use std::str::FromStr;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Path};

use system::{Bounds, GRANTS, LEFT_OVER, ONE_BELIEVER, System, TOKENS, WRITES};
use variants::Rules;

/// One acquisition each, with a message that arrives twice.
const DOUBLED: Bounds =
    Bounds { ttl: 2, wait: 1, ticks: 3, owners: 2, requests: 3, doubles: 1, short_renewals: false };
/// Three acquisitions.
const THREE: Bounds = Bounds { owners: 3, doubles: 0, ..DOUBLED };
/// Renewals that ask for less than is left.
const SHORT: Bounds = Bounds { ttl: 3, ticks: 4, doubles: 0, short_renewals: true, ..DOUBLED };

const CASES: [(&str, Bounds); 3] = [("doubled", DOUBLED), ("three", THREE), ("short", SHORT)];

fn setting<T: FromStr<Err: Debug>>(name: &str) -> Option<T> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

fn holds(case: &str) {
    let (_, bounds) = CASES.into_iter().find(|(name, _)| *name == case).unwrap();
    let deeper: u8 = setting("LOCKATTR_MODEL_DEPTH").unwrap_or_default();
    let bounds = Bounds { ticks: bounds.ticks + deeper, requests: bounds.requests + deeper, ..bounds };
    let most: Option<usize> = setting("LOCKATTR_MODEL_STATES");
    let started = Instant::now();
    let search = System { rules: Rules::Sound, bounds }
        .checker()
        .target_state_count(most.unwrap_or(0))
        .finish_when(HasDiscoveries::AnyFailures);
    let checker = search.spawn_dfs().join();
    eprintln!(
        "{case}: {} states{}, at most {} steps deep, {:.1} s",
        checker.unique_state_count(),
        if most.is_some_and(|most| checker.state_count() >= most) { " and then stopped" } else { "" },
        checker.max_depth() - 1,
        started.elapsed().as_secs_f64(),
    );
    checker.assert_properties();
}

/// Searches until `property` is broken; shortest ways first.
fn breaks(rules: Rules, bounds: Bounds, property: &'static str) {
    let started = Instant::now();
    let until = HasDiscoveries::AnyOf([property].into());
    let checker = System { rules, bounds }.checker().finish_when(until).spawn_bfs().join();
    let way = checker.discovery(property).map(Path::into_actions).unwrap_or_default();
    eprintln!(
        "{rules:?}: \"{property}\" is broken in {} steps, after {} states, {:.1} s: {way:#?}",
        way.len(),
        checker.unique_state_count(),
        started.elapsed().as_secs_f64(),
    );
    assert!(!way.is_empty(), "{rules:?} was not found out");
}

#[test]
fn all_holds_while_messages_are_late_lost_and_doubled() {
    holds("doubled");
}

#[test]
fn all_holds_over_three_acquisitions() {
    holds("three");
}

#[test]
fn all_holds_when_renewals_ask_for_less() {
    holds("short");
}

#[test]
fn validity_from_receipt_makes_two_believers() {
    breaks(Rules::ValidityFromReceipt, DOUBLED, ONE_BELIEVER);
}

#[test]
fn a_renewal_that_shortens_makes_two_believers() {
    breaks(Rules::RenewalShortens, SHORT, ONE_BELIEVER);
}

#[test]
fn a_release_by_anyone_makes_two_believers() {
    breaks(Rules::ReleaseByAnyone, THREE, ONE_BELIEVER);
}

#[test]
fn one_answer_for_all_attempts_leaves_something_behind() {
    breaks(Rules::OneAnswerEndsAllDoubt, THREE, LEFT_OVER);
}

#[test]
fn a_register_that_does_not_check_applies_a_stale_write_after_a_pause() {
    breaks(Rules::RegisterWithoutCheck, Bounds { requests: 2, doubles: 0, ..DOUBLED }, WRITES);
}

#[test]
fn a_store_that_forgets_makes_two_believers() {
    breaks(Rules::StoreForgets, THREE, ONE_BELIEVER);
    breaks(Rules::StoreForgets, THREE, GRANTS);
}

#[test]
fn a_store_that_forgets_still_lets_no_stale_write_through() {
    let bounds = Bounds { requests: 2, doubles: 0, ..DOUBLED };
    let checker = System { rules: Rules::StoreForgets, bounds }.checker().spawn_dfs().join();
    let found = checker.discoveries();
    assert!(found.contains_key(ONE_BELIEVER), "it did not forget");
    assert!(!found.contains_key(TOKENS) && !found.contains_key(WRITES), "{found:#?}");
}

#[test]
fn a_store_that_forgets_its_counter_applies_a_stale_write() {
    breaks(Rules::StoreForgetsItsCounter, Bounds { requests: 2, doubles: 0, ..DOUBLED }, WRITES);
    breaks(Rules::StoreForgetsItsCounter, Bounds { requests: 2, doubles: 0, ..DOUBLED }, TOKENS);
}
