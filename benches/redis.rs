//! Lock and unlock on Redis, compared with the same driver by hand: `SET NX PX`, then a compare-and-delete
//! by `EVALSHA`. Starts a `redis-server` of its own on loopback and ends it.
//!
//! By hand, the connection's task runs on a thread of its own, as ours does, and in another row on the
//! caller's runtime. Times differ from machine to machine; the ratios are the result.
//!
//! `cargo bench --bench redis`

#![allow(clippy::print_stdout, reason = "a report is what this is for")]

mod support;

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lockattr::Locker;
use lockattr::lease::{Lease, Owner};
use lockattr::store::{RedisStore, Store};
use redis::aio::MultiplexedConnection;
use redis::{Client, IntoConnectionInfo as _, Script};
use support::Table;

const ROUNDS: usize = 21;
const CYCLES: u32 = 1_000;
const TASKS: u32 = 64;

/// A server that ends with this.
struct Server(Child, String);

impl Server {
    fn start() -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let url = format!("redis://127.0.0.1:{port}");
        let client = Client::open(&*url).expect("the URL is right");
        while client.get_connection().is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Self(process, url)
    }

    /// With the socket options of ours.
    fn client(&self) -> Client {
        let info = (&*self.1).into_connection_info().expect("the URL is right");
        let settings = info.tcp_settings().clone().set_nodelay(true);
        Client::open(info.set_tcp_settings(settings)).expect("the URL is right")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[derive(Clone)]
struct ByHand(MultiplexedConnection, &'static Script);

impl ByHand {
    async fn connect(client: &Client) -> Self {
        let script = Box::leak(Box::new(Script::new(
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
        )));
        Self(client.get_multiplexed_async_connection().await.expect("the server runs"), script)
    }

    async fn cycle(&self, id: u32) {
        let (mut connection, key, owner) = (self.0.clone(), format!("hand:{id}"), uuid());
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(&owner).arg("NX").arg("PX").arg(60_000);
        let _: () = set.query_async(&mut connection).await.expect("it is free");
        let _: u32 = self.1.key(&key).arg(&owner).invoke_async(&mut connection).await.expect("it is ours");
    }
}

fn uuid() -> String {
    Owner::random().as_uuid().to_string()
}

async fn by_store(store: &RedisStore, id: u32) {
    let lease = Lease::new(format!("store:{id}"), Owner::random(), Duration::from_secs(60));
    store.acquire(&lease).await.expect("the store answers");
    store.release(&lease, None).await.expect("the store answers");
}

async fn by_api(locker: &Locker, id: u32) {
    let guard = locker.lock(format!("api:{id}")).acquire().await.expect("it is free");
    guard.release().await.expect("it was ours");
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
                for _ in 0..100 {
                    cycle(id).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    start.elapsed() / (TASKS * 100)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = Server::start();
    let apart =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread");
    let client = server.client();
    let hand = apart.spawn(async move { ByHand::connect(&client).await }).await.expect("no panic");
    let here = ByHand::connect(&server.client()).await;
    let store = RedisStore::connect(&server.1).await.expect("the server runs");
    let locker = Locker::new(store.clone());

    let ways = [
        "by hand, on another thread",
        "by hand, on this runtime",
        "the store's two requests",
        "acquire and release",
    ];
    let mut table = Table::new(&ways);
    for _ in 0..ROUNDS {
        table.round(0, CYCLES, async |id| hand.cycle(id).await).await;
        table.round(1, CYCLES, async |id| here.cycle(id).await).await;
        table.round(2, CYCLES, async |id| by_store(&store, id).await).await;
        table.round(3, CYCLES, async |id| by_api(&locker, id).await).await;
    }
    table.print("Redis, one cycle");

    let mut table =
        Table::new(&["by hand, on another thread", "the store's two requests", "acquire and release"]);
    for _ in 0..ROUNDS {
        let ours = hand.clone();
        table.add(
            0,
            together(move |id| {
                let ours = ours.clone();
                async move { ours.cycle(id).await }
            })
            .await,
        );
        let ours = store.clone();
        table.add(
            1,
            together(move |id| {
                let ours = ours.clone();
                async move { by_store(&ours, id).await }
            })
            .await,
        );
        let ours = locker.clone();
        table.add(
            2,
            together(move |id| {
                let ours = ours.clone();
                async move { by_api(&ours, id).await }
            })
            .await,
        );
    }
    table.print(&format!("Redis, {TASKS} tasks on {TASKS} keys, time a cycle"));
    // A runtime may not be dropped inside another one.
    apart.shutdown_background();
}
