//! A task of the program under test: takes locks, works under them, gives them back, gives up.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use lockattr::{Held, LockError, Wait};
use tokio::time::{sleep, timeout};

use super::chance::Chance;
use super::scene::Scene;
use super::wish::{Cancel, Way, Wish};
use super::witness::Fault;

/// How a request ended; `None` when its future was dropped.
pub(super) type Ended = Option<Result<(), LockError>>;

pub(super) async fn act(scene: Arc<Scene>, machine: usize, mut chance: Chance) {
    for _ in 0..scene.weather.rounds {
        sleep(chance.up_to(scene.weather.longest_ttl() / 4)).await;
        let wish = Wish::draw(&scene.weather, &mut chance);
        let op = scene.witness.begin(machine, &wish);
        let generation = scene.generation(machine);
        let done = Catch(Box::pin(pursue(Arc::clone(&scene), op, wish.clone(), chance.split())));
        let ended: Ended = match wish.cancel {
            None => done.await,
            Some(Cancel::Polls(polls)) => GiveUp { left: polls, work: done }.await,
            Some(Cancel::After(time)) => timeout(time, done).await.ok().flatten(),
        };
        scene.ended(op, generation, &ended);
    }
}

async fn pursue(scene: Arc<Scene>, op: u64, wish: Wish, mut chance: Chance) -> Result<(), LockError> {
    let locker = scene.locker_of(op);
    let builder = wish.builder(&locker, op);
    match wish.way {
        Way::Release | Way::Drop => {
            let guard = builder.acquire().await?;
            scene.believes(op, &guard.held());
            Watched::new(&scene, op, false, work(&scene, op, &wish, guard.held(), chance)).await;
            if wish.way == Way::Release { guard.release().await } else { Ok(()) }
        }
        Way::Run | Way::RunOn | Way::Again | Way::Reentrant => {
            let stops = wish.way != Way::RunOn;
            let body = async |held: Held| {
                scene.believes(op, &held);
                if wish.way == Way::Again {
                    let again = locker.lock(held.key()).wait(Wait::Forever).acquire().await;
                    if !matches!(again, Err(LockError::WouldDeadlock { .. } | LockError::ShuttingDown { .. }))
                    {
                        scene
                            .witness
                            .fault(Fault::Undeclared, || format!("{op} locked its own key: {again:?}"));
                    }
                }
                if wish.way == Way::Reentrant {
                    let inner = chance.split();
                    let again = locker.lock(held.key()).reentrant(true).run(async |again| {
                        if again.token() != held.token() {
                            scene
                                .witness
                                .fault(Fault::Undeclared, || format!("{op} has another token inside"));
                        }
                        Watched::new(&scene, op, stops, work(&scene, op, &wish, again, inner)).await;
                    });
                    let again = again.await;
                    if !matches!(again, Ok(()) | Err(LockError::Lost { .. })) {
                        scene
                            .witness
                            .fault(Fault::Undeclared, || format!("{op} did not enter again: {again:?}"));
                    }
                }
                Watched::new(&scene, op, stops, work(&scene, op, &wish, held, chance)).await;
            };
            builder.run(body).await
        }
    }
}

/// What is done under the lock: writes at once, and writes that arrive later.
async fn work(scene: &Arc<Scene>, op: u64, wish: &Wish, held: Held, mut chance: Chance) {
    for step in 0..=wish.steps {
        if wish.panics == Some(step) {
            // Without the hook, which would print it.
            resume_unwind(Box::new(BodyPanics));
        }
        for key in held.keys() {
            let token = held.token_of(key).map_or(0, u64::from);
            if held.is_held() {
                scene.write(op, key, token);
            }
            if chance.percent(30) {
                let (scene, key, late) = (Arc::clone(scene), key.to_owned(), chance.up_to(wish.expires * 2));
                tokio::spawn(async move {
                    sleep(late).await;
                    scene.write_unchecked(&key, token);
                });
            }
        }
        if step == wish.steps || (wish.way != Way::RunOn && held.check().is_err()) {
            return;
        }
        sleep(chance.up_to(wish.expires / 2)).await;
    }
}

/// A body that is looked at before each poll, and whose end is noticed.
struct Watched<'a, F> {
    scene: &'a Arc<Scene>,
    op: u64,
    stops: bool,
    work: Pin<Box<F>>,
}

impl<'a, F: Future> Watched<'a, F> {
    fn new(scene: &'a Arc<Scene>, op: u64, stops: bool, work: F) -> Self {
        scene.witness.op(op, |op| op.body_alive = true);
        Self { scene, op, stops, work: Box::pin(work) }
    }
}

impl<F: Future> Future for Watched<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.scene.polled(self.op, self.stops);
        self.work.as_mut().poll(cx)
    }
}

impl<F> Drop for Watched<'_, F> {
    fn drop(&mut self) {
        self.scene.witness.op(self.op, |op| op.body_alive = false);
    }
}

struct BodyPanics;

/// Ends with `None` when the body panics.
struct Catch<F>(Pin<Box<F>>);

impl<F: Future<Output = Result<(), LockError>>> Future for Catch<F> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(panic) if panic.is::<BodyPanics>() => Poll::Ready(None),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// Drops the work after some polls.
struct GiveUp<F> {
    left: usize,
    work: Catch<F>,
}

impl<F: Future<Output = Result<(), LockError>>> Future for GiveUp<F> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let Some(left) = self.left.checked_sub(1) else { return Poll::Ready(None) };
        self.left = left;
        Pin::new(&mut self.work).poll(cx)
    }
}
