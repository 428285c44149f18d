//! Lock and unlock on Redis, compared with the same driver by hand: with the same scripts and the same
//! arguments, which shows what we cost, and with `SET NX PX` and a compare-and-delete, which shows what the
//! record costs. Starts a `redis-server` of its own on loopback and ends it.
//!
//! By hand, the connection's task runs on a thread of its own, as ours does, or on the caller's runtime.
//! Times differ from machine to machine; the ratios are the result.
//!
//! `cargo bench --bench redis`

#![allow(clippy::print_stdout, reason = "a report is what this is for")]

mod by_hand;
mod server;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use by_hand::{SameScripts, SetNx};
use lockattr::Locker;
use lockattr::lease::{Lease, Owner};
use lockattr::store::{RedisStore, Store};
use server::Server;
use support::Table;
use tokio::runtime::Builder;

const ROUNDS: usize = 41;
const CYCLES: u32 = 500;
const TASKS: u32 = 64;
const CYCLES_OF_A_TASK: u32 = 60;

const WAYS: [&str; 6] = [
    "same scripts by hand, task on a thread",
    "same scripts by hand, task on this runtime",
    "SET NX PX by hand, task on a thread",
    "SET NX PX by hand, task on this runtime",
    "the store's two requests",
    "acquire and release",
];

async fn by_store(store: RedisStore, id: u32) {
    let lease = Lease::new(format!("store:{id}"), Owner::random(), Duration::from_secs(60));
    store.acquire(&lease).await.expect("the store answers");
    store.release(&lease, None).await.expect("the store answers");
}

async fn by_api(locker: Locker, id: u32) {
    let guard = locker.lock(format!("api:{id}")).acquire().await.expect("it is free");
    guard.release().await.expect("it was ours");
}

/// Adds a round of each way to both tables: one cycle after the other, and as many tasks as there are keys.
macro_rules! rounds {
    ($alone:ident, $together:ident, $($way:literal: $state:ident => $cycle:expr;)+) => {
        for _ in 0..ROUNDS {
            $($alone.round($way, CYCLES, async |id| $cycle($state.clone(), id).await).await;)+
        }
        for _ in 0..ROUNDS {
            $({
                let state = $state.clone();
                $together.add($way, together(move |id| $cycle(state.clone(), id)).await);
            })+
        }
    };
}

/// The time of a cycle when as many tasks run as there are keys.
async fn together<F: Future<Output = ()> + Send + 'static>(
    cycle: impl Fn(u32) -> F + Clone + Send + 'static,
) -> Duration {
    let start = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|id| {
            let cycle = cycle.clone();
            tokio::spawn(async move {
                for _ in 0..CYCLES_OF_A_TASK {
                    cycle(id).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    start.elapsed() / (TASKS * CYCLES_OF_A_TASK)
}

/// A runtime on a thread of its own, as the keeper's.
fn thread() -> tokio::runtime::Handle {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = Server::start();
    let thread = thread();
    let client = server.client();
    let (same_apart, set_apart) = thread
        .spawn(async move { (SameScripts::connect(&client).await, SetNx::connect(&client).await) })
        .await
        .expect("no panic");
    let (same_here, set_here) =
        (SameScripts::connect(&server.client()).await, SetNx::connect(&server.client()).await);
    let store = RedisStore::connect(&server.url).await.expect("the server runs");
    let locker = Locker::new(store.clone());

    let (mut alone, mut many) = (Table::new(&WAYS), Table::new(&WAYS));
    rounds! { alone, many,
        0: same_apart => SameScripts::cycle;
        1: same_here => SameScripts::cycle;
        2: set_apart => SetNx::cycle;
        3: set_here => SetNx::cycle;
        4: store => by_store;
        5: locker => by_api;
    }
    alone.print("Redis, one cycle");
    many.print(&format!("Redis, {TASKS} tasks on {TASKS} keys, time a cycle"));
}
