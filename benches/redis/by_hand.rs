//! The driver without us: with our scripts and what they are given, and as it is mostly done.

use lockattr::lease::Owner;
use redis::aio::MultiplexedConnection;
use redis::{Client, Script, Value};

const TTL: u64 = 60_000;
const RETENTION: u64 = 7 * 24 * 60 * 60 * 1000;
const CHANNEL: &str = "lockattr:freed:0";

/// A script of the store, of the parts that it is made of.
macro_rules! script {
    ($($part:literal)+) => {
        concat!($(include_str!(concat!("../../lockattr-runtime/src/store/redis/lua/", $part, ".lua"))),+)
    };
}

/// Sends the store's own scripts, with the arguments of the store.
#[derive(Clone)]
pub(crate) struct SameScripts {
    connection: MultiplexedConnection,
    acquire: &'static str,
    release: &'static str,
}

impl SameScripts {
    pub(crate) async fn connect(client: &Client) -> Self {
        let mut connection = connected(client).await;
        let acquire = script!("now" "free" "acquire");
        let release = script!("now" "free" "release");
        let (acquire, release) = (load(&mut connection, acquire).await, load(&mut connection, release).await);
        Self { connection, acquire, release }
    }

    pub(crate) async fn cycle(self, id: u32) {
        let (mut connection, key) = (self.connection, format!("same:{id}"));
        let (owner, holder) = (owner(), format!("{}\n{}\n{}", "host", 4711, key));
        let mut acquire = redis::cmd("EVALSHA");
        acquire.arg(self.acquire).arg(1).arg(&key).arg(RETENTION).arg(CHANNEL).arg(&owner);
        acquire.arg(TTL * 1000).arg(holder).arg("");
        let answer = connection.send_packed_command(&acquire).await.expect("the server answers");
        assert!(matches!(answer, Value::Int(token) if token > 0), "{answer:?}");
        let mut release = redis::cmd("EVALSHA");
        release.arg(self.release).arg(1).arg(&key).arg(RETENTION).arg(CHANNEL).arg(0).arg(&owner);
        let answer = connection.send_packed_command(&release).await.expect("the server answers");
        assert_eq!(answer, Value::Int(1));
    }
}

/// `SET NX PX`, then a compare-and-delete: no token, no holder, nobody told, and a key that eviction may drop.
#[derive(Clone)]
pub(crate) struct SetNx {
    connection: MultiplexedConnection,
    delete: &'static str,
}

impl SetNx {
    pub(crate) async fn connect(client: &Client) -> Self {
        let mut connection = connected(client).await;
        let delete =
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
        let delete = load(&mut connection, delete).await;
        Self { connection, delete }
    }

    pub(crate) async fn cycle(self, id: u32) {
        let (mut connection, key, owner) = (self.connection, format!("set:{id}"), owner());
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(&owner).arg("NX").arg("PX").arg(TTL);
        let answer = connection.send_packed_command(&set).await.expect("the server answers");
        assert_eq!(answer, Value::Okay);
        let mut delete = redis::cmd("EVALSHA");
        delete.arg(self.delete).arg(1).arg(&key).arg(&owner);
        let answer = connection.send_packed_command(&delete).await.expect("the server answers");
        assert_eq!(answer, Value::Int(1));
    }
}

fn owner() -> String {
    Owner::random().as_uuid().simple().to_string()
}

async fn connected(client: &Client) -> MultiplexedConnection {
    client.get_multiplexed_async_connection().await.expect("the server runs")
}

/// The hash by which a script is called from now on.
async fn load(connection: &mut MultiplexedConnection, text: &str) -> &'static str {
    let hash = Script::new(text).prepare_invoke().load_async(connection).await.expect("the script is right");
    Box::leak(hash.into_boxed_str())
}
