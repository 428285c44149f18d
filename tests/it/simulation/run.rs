//! One run from its seed to its report.

use std::sync::Arc;
use std::time::Duration;

use lockattr::store::Store as _;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::actor::act;
use super::chance::Chance;
use super::nemesis::{calm_down, strike};
use super::scene::Scene;
use super::weather::{Flaw, Weather};
use super::witness::{Fault, Report};

/// Runs the weather of `seed`, as `adjust` has it.
pub(super) fn run(seed: u64, traces: bool, adjust: impl FnOnce(&mut Weather)) -> Report {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async move {
        let mut chance = Chance::new(seed);
        let mut weather = Weather::of(&mut chance);
        adjust(&mut weather);
        let scene = Scene::new(&weather, &mut chance, traces);
        scene.witness.note(|| format!("{weather:?}"));
        play(&scene, &mut chance).await;
        let mut report = scene.witness.report();
        report.stale = scene.stale_writes();
        report
    })
}

async fn play(scene: &Arc<Scene>, chance: &mut Chance) {
    let weather = &scene.weather;
    let mut actors = Vec::new();
    for machine in 0..weather.machines {
        for _ in 0..weather.tasks {
            let on = scene.host(machine, |host| host.machine.clone());
            let act = act(Arc::clone(scene), machine, chance.split());
            actors.push((machine, tokio::spawn(on.run(act))));
        }
    }
    let striking = tokio::spawn(strike(Arc::clone(scene), chance.split()));
    let storm = weather.longest_ttl() * 4;
    let mut ends: Vec<_> = actors.iter().map(|_| None).collect();
    let _ = timeout(storm, async {
        for ((_, actor), end) in actors.iter_mut().zip(&mut ends) {
            *end = Some(actor.await);
        }
    })
    .await;
    striking.abort();
    calm_down(scene);
    let rounds = u32::try_from(actors.len() * weather.rounds).unwrap_or(u32::MAX);
    let end = Instant::now() + (weather.longest_ttl() * 4 + Duration::from_secs(20)) * rounds;
    for ((machine, actor), ended) in actors.into_iter().zip(ends) {
        if ended.is_none() && scene.host(machine, |host| host.crashed) {
            continue;
        }
        let ended = match ended {
            Some(ended) => Ok(ended),
            None => timeout_at(end, actor).await,
        };
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => std::panic::resume_unwind(error.into_panic()),
            Err(_) => scene.witness.fault(Fault::Stuck, || format!("a task of machine {machine}")),
        }
    }
    aftermath(scene).await;
}

/// All has ended: nothing may be left, and nothing may go on.
async fn aftermath(scene: &Scene) {
    let weather = &scene.weather;
    let mut wait = weather.delay * 8 + Duration::from_millis(100);
    if !weather.is_calm() {
        // A request that was on its way when the network came back may first have to be given up.
        wait += Duration::from_secs(12);
    }
    if !weather.keep {
        wait += weather.longest_ttl();
    }
    if weather.jumps {
        // By a clock that jumped, a lease is over that the store still has.
        wait += weather.longest_ttl();
    }
    if weather.is_belated() {
        wait += weather.belated() + weather.longest_ttl();
    }
    sleep(wait).await;
    for (key, op) in scene.ledger.held() {
        let machine = scene.witness.op(op, |op| op.machine).unwrap_or_default();
        if !scene.host(machine, |host| host.crashed) {
            scene.witness.fault(Fault::Orphan, || format!("{key} of {op} is held after {wait:?}"));
        }
    }
    sleep(weather.longest_ttl() * 4).await;
    let calls = scene.ledger.calls();
    sleep(Duration::from_secs(3_000)).await;
    if scene.ledger.calls() != calls {
        scene.witness.fault(Fault::Leak, || format!("{} requests more", scene.ledger.calls() - calls));
    }
    for host in scene.hosts().iter().filter(|host| !host.crashed) {
        for held in host.locker.held() {
            scene.witness.fault(Fault::Leak, || format!("{held:?} is on the list"));
        }
    }
    let left = scene.ledger.store().list("", None, 100).await.expect("the memory store answers");
    if weather.flaw != Some(Flaw::ForgetsOwner) && !left.is_empty() {
        scene.witness.fault(Fault::Orphan, || format!("{left:?}"));
    }
}
