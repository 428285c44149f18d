//! What goes wrong while the program runs, and the end of all that.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::chance::Chance;
use super::scene::{Scene, drift};
use super::weather::Flaw;

#[derive(Clone, Copy)]
enum Blow {
    Cut,
    Pause,
    Jump,
    Crash,
    Force,
    ShutDown,
    StepBack,
    Drift,
    Flaw(Flaw),
}

/// Strikes until it is aborted.
pub(super) async fn strike(scene: Arc<Scene>, mut chance: Chance) {
    let weather = scene.weather.clone();
    let choice = [
        (weather.cuts, Blow::Cut),
        (weather.pauses, Blow::Pause),
        (weather.jumps, Blow::Jump),
        (weather.crashes, Blow::Crash),
        (weather.forced, Blow::Force),
        (weather.shutdowns, Blow::ShutDown),
        (weather.back_steps, Blow::StepBack),
        (weather.drift > 0, Blow::Drift),
    ];
    let mut blows: Vec<_> = choice.into_iter().filter_map(|(on, blow)| on.then_some(blow)).collect();
    if let Some(flaw @ (Flaw::Forgets | Flaw::ClockJumpsForth)) = weather.flaw {
        blows.push(Blow::Flaw(flaw));
    }
    if blows.is_empty() {
        return;
    }
    loop {
        sleep(Duration::from_millis(20) + chance.up_to(weather.longest_ttl() / 2)).await;
        let (blow, machine) = (chance.pick(&blows), chance.below(weather.machines));
        let time = chance.up_to(weather.longest_ttl() * 2);
        if !scene.host(machine, |host| host.crashed) {
            deal(&scene, blow, machine, time, &mut chance);
        }
    }
}

fn deal(scene: &Arc<Scene>, blow: Blow, machine: usize, time: Duration, chance: &mut Chance) {
    let note = |what: &str| scene.witness.note(|| format!("## machine {machine} {what} {time:?}"));
    match blow {
        Blow::Cut => {
            note("is cut off for");
            scene.host(machine, |host| host.wire.cut(true));
            after(scene, time, move |scene| scene.host(machine, |host| host.wire.cut(false)));
        }
        Blow::Pause => {
            note("stands still for");
            scene.witness.disturbed(machine);
            scene.host(machine, |host| host.machine.pause());
            after(scene, time, move |scene| {
                scene.witness.disturbed(machine);
                scene.host(machine, |host| {
                    if !host.crashed {
                        host.machine.resume();
                    }
                });
            });
        }
        Blow::Jump => {
            note("jumps by");
            scene.witness.disturbed(machine);
            scene.host(machine, |host| host.machine.jump(time));
        }
        Blow::Crash => {
            let alive = scene.hosts().iter().filter(|host| !host.crashed).count();
            if alive > 1 {
                note("crashes, never mind the");
                scene.host(machine, |host| {
                    host.crashed = true;
                    host.machine.pause();
                });
            }
        }
        Blow::Force => {
            let key = format!("key-{}", chance.below(scene.weather.keys));
            if let Some(page) = scene.ledger.page(&key) {
                let _ = scene.ledger.force_release(&key, lockattr::lease::FencingToken::new(page.token));
            }
        }
        Blow::ShutDown => shut_down(scene, machine, time / 4),
        Blow::StepBack => {
            note("or rather the store's clock goes back by");
            scene.clock.step_back(time);
        }
        Blow::Drift => {
            let ppm = drift(&scene.weather, chance);
            scene.host(machine, |host| host.machine.drift(ppm));
        }
        Blow::Flaw(Flaw::Forgets) => scene.ledger.forget_all(),
        Blow::Flaw(_) => {
            note("or rather the store's clock goes forth by");
            scene.clock.step_forth(time);
        }
    }
}

fn shut_down(scene: &Arc<Scene>, machine: usize, grace: Duration) {
    if scene.host(machine, |host| std::mem::replace(&mut host.closing, true)) {
        return;
    }
    scene.witness.note(|| format!("## machine {machine} shuts down within {grace:?}"));
    scene.witness.disturbed(machine);
    let (locker, on) = scene.host(machine, |host| (host.locker.clone(), host.machine.clone()));
    let ending = Arc::clone(scene);
    tokio::spawn(on.run(async move {
        let still = locker.shutdown(grace).await;
        ending.witness.note(|| format!("## machine {machine} has shut down, {} still held", still.len()));
        ending.witness.disturbed(machine);
        ending.restart(machine);
    }));
}

fn after(scene: &Arc<Scene>, time: Duration, then: impl FnOnce(&Scene) + Send + 'static) {
    let scene = Arc::clone(scene);
    tokio::spawn(async move {
        sleep(time).await;
        then(&scene);
    });
}

/// Everything that still runs goes on, over a network that works.
pub(super) fn calm_down(scene: &Scene) {
    scene.witness.note(|| "## all is calm".to_owned());
    for host in scene.hosts().iter_mut() {
        host.wire.heal();
        if !host.crashed {
            host.machine.resume();
        }
    }
}
