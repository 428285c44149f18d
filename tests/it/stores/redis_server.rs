//! Redis servers of the tests, and what they are asked.

use std::path::Path;

use lockattr::store::RedisStore;

use crate::servers::{self, Program, redis::Redis};

/// A running server of a test's own.
pub(crate) struct Server(servers::Server);

impl Server {
    /// A server that keeps nothing over a restart, with these options besides; it listens on a socket only.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self(servers::Server::start_without_port(Redis::with(args)).unwrap())
    }

    /// The same, which listens on a port of the loopback interface as well.
    pub(crate) fn start_with_port(args: &[&str]) -> Self {
        Self(servers::Server::start(Redis::with(args)).unwrap())
    }

    /// Of the user that may do everything.
    pub(crate) fn url(&self) -> String {
        url(&self.0.place.directory)
    }

    pub(crate) fn url_as(&self, user: &str, password: &str) -> String {
        format!("{}?user={user}&pass={password}", self.url())
    }

    pub(crate) fn port(&self) -> u16 {
        assert_ne!(self.0.place.port, 0, "this server has a socket only");
        self.0.place.port
    }

    pub(crate) fn client(&self) -> redis::Client {
        redis::Client::open(self.url()).unwrap()
    }

    /// Sends a command as the user that may do everything.
    pub(crate) fn tell(&self, command: &[&str]) -> redis::Value {
        self.try_tell(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    pub(crate) fn try_tell(&self, command: &[&str]) -> redis::RedisResult<redis::Value> {
        let mut admin = self.client().get_connection()?;
        redis::cmd(command[0]).arg(&command[1..]).query(&mut admin)
    }

    /// The value of a command's answer, as the type that is wanted.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        redis::from_redis_value(self.tell(command)).unwrap()
    }

    pub(crate) async fn store(&self) -> RedisStore {
        RedisStore::connect(&self.url()).await.unwrap()
    }

    pub(crate) fn pause(&self) {
        self.0.pause().unwrap();
    }

    pub(crate) fn resume(&self) {
        self.0.resume().unwrap();
    }

    /// Ends the server as a crash does.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Starts the killed server again, on what it has left.
    pub(crate) fn start_again(&mut self) {
        self.0.start_again().unwrap();
    }
}

fn url(directory: &Path) -> String {
    format!("redis+unix://{}", Redis::socket(directory).to_str().unwrap())
}

/// A storage of the conformance suite: a database of one server that all storages share.
pub(crate) async fn storage(name: String) -> RedisStore {
    let program = || -> Box<dyn Program> { Box::new(Redis::with(&["--databases", "1000"])) };
    let url = url(&servers::Server::shared("redis", program).unwrap().directory);
    let number = {
        let mut names = redis::Client::open(url.as_str()).unwrap().get_connection().unwrap();
        let number = "local n = redis.call('HGET', KEYS[1], ARGV[1]) \
             if not n then n = redis.call('HLEN', KEYS[1]) + 1 redis.call('HSET', KEYS[1], ARGV[1], n) end return n";
        let number: redis::Value =
            redis::cmd("EVAL").arg(number).arg(1).arg("names").arg(name).query(&mut names).unwrap();
        redis::from_redis_value::<i64>(number).unwrap()
    };
    RedisStore::connect(&format!("{url}?db={number}")).await.unwrap()
}
