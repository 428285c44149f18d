//! Redis servers of the tests: each in a directory of its own, and ended with the process that started it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lockattr::store::RedisStore;
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(20);

/// Starts the server in the directory and tells its process id. When the test has gone, however that went, or
/// says so with a line, the server is killed; without a line its directory goes as well.
const KEEP: &str = r#"cd "$1" || exit 1; shift; "$@" >log 2>&1 & echo $!
    if read -r _; then kill -9 $!; else kill -9 $!; wait $!; rm -r "$PWD"; fi"#;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    keeper: Child,
    pid: Pid,
    directory: PathBuf,
    port: u16,
    args: Vec<String>,
}

impl Server {
    /// A server that keeps nothing over a restart, with these options besides; it listens on a socket only.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_in(&directory(), 0, args)
    }

    /// The same, which listens on a port of the loopback interface as well.
    pub(crate) fn start_with_port(args: &[&str]) -> Self {
        Self::start_in(&directory(), free_port(), args)
    }

    fn start_in(directory: &Path, port: u16, args: &[&str]) -> Self {
        let args = args.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (keeper, pid) = run(directory, port, &args);
        let server = Self { keeper, pid, directory: directory.to_owned(), port, args };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&self) {
        let started = Instant::now();
        loop {
            let answer =
                self.client().get_connection().and_then(|mut admin| redis::cmd("PING").exec(&mut admin));
            let Err(error) = answer else { return };
            if started.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                panic!("redis-server does not answer: {error}\n{log}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Of the user that may do everything.
    pub(crate) fn url(&self) -> String {
        url(&self.directory)
    }

    pub(crate) fn url_as(&self, user: &str, password: &str) -> String {
        format!("{}?user={user}&pass={password}", self.url())
    }

    pub(crate) fn port(&self) -> u16 {
        assert_ne!(self.port, 0, "this server has a socket only");
        self.port
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
        kill_process(self.pid, Signal::STOP).unwrap();
    }

    pub(crate) fn resume(&self) {
        kill_process(self.pid, Signal::CONT).unwrap();
    }

    /// Ends the server as a crash does.
    pub(crate) fn kill(&mut self) {
        self.keeper.stdin.take().unwrap().write_all(b"\n").unwrap();
        self.keeper.wait().unwrap();
    }

    /// Starts the killed server again, on what it has left.
    pub(crate) fn start_again(&mut self) {
        (self.keeper, self.pid) = run(&self.directory, self.port, &self.args);
        self.wait_until_ready();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().ok();
    }
}

fn url(directory: &Path) -> String {
    format!("redis+unix://{}", directory.join("s").to_str().unwrap())
}

fn run(directory: &Path, port: u16, args: &[String]) -> (Child, Pid) {
    // A path from the environment may be that of another server of the same protocol, as Valkey.
    let program = std::env::var_os("LOCKATTR_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    let found = Command::new(&program).arg("--version").stdout(Stdio::null()).status();
    assert!(
        found.is_ok_and(|status| status.success()),
        "these tests need {}: on Debian and Ubuntu, `apt-get install redis-server` brings it",
        program.display()
    );
    fs::remove_file(directory.join("s")).ok();
    let mut command = Command::new("sh");
    command.args(["-c", KEEP, "sh"]).arg(directory).arg(program);
    if args.first().is_some_and(|arg| Path::new(arg).is_absolute()) {
        command.args(args);
    } else {
        command.args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no"]).args(args);
    }
    command.args(["--port", &port.to_string()]);
    command.arg("--unixsocket").arg(directory.join("s")).arg("--dir").arg(directory);
    let mut keeper = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh starts");
    let mut pid = String::new();
    BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    (keeper, Pid::from_raw(pid.trim().parse().unwrap()).unwrap())
}

/// Below the system's directory for temporary files: the path of a socket has at most some hundred bytes.
fn directory() -> PathBuf {
    tempfile::Builder::new().prefix("lockattr-redis-").tempdir().unwrap().keep()
}

/// Nobody has it now; a server that does not get it fails its test.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// A storage of the conformance suite: a database of one server that all storages of a process share, and
/// the processes that it starts. It ends with the process.
pub(crate) async fn storage(name: String) -> RedisStore {
    static URL: OnceLock<String> = OnceLock::new();
    let url = URL.get_or_init(|| {
        let of = |pid: u32| std::env::temp_dir().join(format!("lockattr-redis-of-{pid}"));
        let (parents, own) = (of(parent_id()), of(std::process::id()));
        if parents.is_dir() {
            return url(&parents);
        }
        fs::remove_dir_all(&own).ok();
        fs::create_dir(&own).unwrap();
        std::mem::forget(Server::start_in(&own, 0, &["--databases", "1000"]));
        url(&own)
    });
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
