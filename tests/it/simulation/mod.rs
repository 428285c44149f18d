//! The real core over a simulated world: machines, their clocks, the network and the store, all on paused
//! time and all chance from one seed.
//!
//! `LOCKATTR_SIM_SEED=7` runs one seed and shows what happened; `LOCKATTR_SIM_SEEDS=100000` runs that many.

mod actor;
mod chance;
mod clock;
mod ledger;
mod nemesis;
mod run;
mod scene;
mod weather;
mod wire;
mod wish;
mod witness;

use std::collections::BTreeSet;

use run::run;
use weather::{Flaw, Weather};
use witness::Fault;

/// How many seeds a plain test run takes.
const SEEDS: u64 = 2_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}, which is no number")))
}

#[test]
fn the_promises_hold_in_any_weather() {
    if let Some(seed) = number("LOCKATTR_SIM_SEED") {
        let report = run(seed, true, |_| ());
        panic!("seed {seed}\n{}\n{} locks taken\n{:#?}", report.trace, report.entered, report.faults);
    }
    let (mut entered, mut failed) = (0, Vec::new());
    for seed in 0..number("LOCKATTR_SIM_SEEDS").unwrap_or(SEEDS) {
        let report = run(seed, false, |_| ());
        entered += report.entered;
        failed.extend(report.faults.into_iter().map(|(fault, text)| (seed, fault, text)));
    }
    if let Some(&(seed, ..)) = failed.first() {
        let count = failed.len();
        failed.dedup_by_key(|(seed, fault, _)| (*seed, *fault));
        failed.truncate(20);
        panic!(
            "{count} promises broken: {failed:#?}\nsee one with: LOCKATTR_SIM_SEED={seed} cargo test --test it simulation::the_promises"
        );
    }
    assert!(entered > SEEDS);
}

/// Undoing what an attempt got is a request of its own, and may land late: under what a later attempt got.
#[test]
fn several_keys_one_by_one_survive_requests_that_come_late() {
    for seed in 0..300 {
        let report = run(seed, false, |weather| {
            weather.atomic_many = false;
            weather.keys = 2;
            weather.machines = 2;
            weather.tasks = 3;
            weather.rounds = 3;
            (weather.lost, weather.late) = (15, 25);
            weather.delay = weather.small_delay();
        });
        assert!(report.faults.is_empty(), "seed {seed}: {:#?}", report.faults);
    }
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 0..40 {
        let (one, other) = (run(seed, true, |_| ()), run(seed, true, |_| ()));
        assert_eq!(one.trace, other.trace, "seed {seed}");
    }
}

/// Which promises are broken, over a set of seeds, when one thing is wrong; and the stale writes seen.
fn broken_by(flaw: Option<Flaw>) -> (BTreeSet<Fault>, u64) {
    let change = |weather: &mut Weather| {
        weather.flaw = flaw;
        weather.machines = weather.machines.max(2);
        weather.tasks = weather.tasks.max(2);
        weather.keys = 1;
        weather.forced = true;
        // What these do is seen in weather that has no other explanation for it.
        weather.pauses = !matches!(flaw, Some(Flaw::Lies | Flaw::ForgetsKeep));
    };
    let reports: Vec<_> = (0..60).map(|seed| run(seed, false, change)).collect();
    let stale = reports.iter().map(|report| report.stale).sum();
    (reports.into_iter().flat_map(|report| report.faults).map(|(fault, _)| fault).collect(), stale)
}

/// A checker that cannot fail proves nothing: each flaw must be seen, as what it is.
#[track_caller]
fn sees(flaw: Flaw, faults: &[Fault]) {
    let (broken, _) = broken_by(Some(flaw));
    for fault in faults {
        assert!(broken.contains(fault), "{flaw:?} was not seen as {fault:?}, only as {broken:?}");
    }
}

#[test]
fn a_store_that_forgets_is_seen() {
    sees(Flaw::Forgets, &[Fault::TwoGrants, Fault::TwoBelievers, Fault::StaleWrite]);
}

#[test]
fn a_store_whose_clock_jumps_forth_is_seen() {
    sees(Flaw::ClockJumpsForth, &[Fault::TwoBelievers, Fault::BeliefWithoutLease, Fault::StaleWrite]);
}

#[test]
fn a_store_that_gives_a_live_lease_away_is_seen() {
    sees(Flaw::StealsLive, &[Fault::TwoGrants, Fault::TwoBelievers]);
}

#[test]
fn a_release_that_frees_another_is_seen() {
    sees(Flaw::FreesForeign, &[Fault::TwoGrants, Fault::TwoBelievers]);
}

#[test]
fn a_renewal_that_does_not_look_at_the_owner_is_seen() {
    sees(Flaw::RenewsForeign, &[Fault::BeliefWithoutLease, Fault::TwoBelievers]);
}

#[test]
fn an_owner_that_is_not_known_again_is_seen() {
    sees(Flaw::ForgetsOwner, &[Fault::TokenOrder, Fault::Orphan]);
}

#[test]
fn a_store_that_lies_is_seen() {
    sees(Flaw::Lies, &[Fault::FalseBusy, Fault::FalseLoss, Fault::IdleKey]);
}

#[test]
fn a_minimum_hold_that_is_not_kept_is_seen() {
    sees(Flaw::ForgetsKeep, &[Fault::MinHold]);
}

#[test]
fn tokens_that_start_again_are_seen() {
    sees(Flaw::CountsFromOne, &[Fault::TokenOrder]);
}

#[test]
fn clocks_of_machines_that_run_too_slow_are_seen() {
    sees(Flaw::SlowMachines, &[Fault::BeliefWithoutLease, Fault::TwoBelievers]);
}

#[test]
fn a_register_that_does_not_check_tokens_takes_stale_writes() {
    let (broken, stale) = broken_by(None);
    assert!(broken.is_empty(), "{broken:?}");
    assert!(stale > 20, "{stale}");
}
