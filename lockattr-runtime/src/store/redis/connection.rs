//! The connection of a store: made on the keeper with the first request, and again with the first one after
//! it broke.
//!
//! Invariant: a request is sent at most once on one connection; one that finds none, and no attempt under
//! way, begins an attempt, or is refused at once while the last failure is fresh.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ProtocolVersion, PushInfo, PushKind, RedisError,
    Value,
};
use tokio::sync::Notify;

use super::failure;
use super::link::{Link, watch_over};
use super::options::RedisOptions;
use super::scripts::Script;
use super::server::Server;
use crate::keeper::Keeper;
use crate::store::StoreError;
use crate::store::hints::Hints;
use crate::store::traits::Watch;
use crate::time::Moment;

/// How long connecting may take, handshake included.
const CONNECT: Duration = Duration::from_secs(4);
/// After a failure the next attempt is made no sooner; doubled each time.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Requests that wait in the queue of a connection before their senders do.
const QUEUE: usize = 1024;

pub(super) struct Connection {
    client: Client,
    options: RedisOptions,
    channel: String,
    pid: u32,
    keeper: OnceLock<Arc<Keeper>>,
    state: Mutex<State>,
    changed: Notify,
    number: AtomicU64,
    cluster: AtomicBool,
    hints: Hints,
    watched: AtomicBool,
}

enum State {
    Idle,
    Connecting,
    Up(Arc<Link>),
    Down { why: Arc<str>, failures: u32, until: Moment },
}

impl Connection {
    pub(super) fn new(client: &Client, options: RedisOptions) -> Arc<Self> {
        let info = client.get_connection_info().clone();
        let settings =
            info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
        let channel = format!("{}freed:{}", super::DEFAULT_PREFIX, settings.db());
        let tcp = tcp_settings(info.tcp_settings().clone());
        let client = Client::open(info.set_redis_settings(settings).set_tcp_settings(tcp))
            .unwrap_or_else(|_| client.clone());
        Arc::new(Self {
            client,
            options,
            channel,
            pid: std::process::id(),
            keeper: OnceLock::new(),
            state: Mutex::new(State::Idle),
            changed: Notify::new(),
            number: AtomicU64::new(0),
            cluster: AtomicBool::new(false),
            hints: Hints::default(),
            watched: AtomicBool::new(false),
        })
    }

    /// Address and database, for people.
    pub(super) fn place(&self) -> String {
        let info = self.client.get_connection_info();
        format!("{}, database {}", info.addr(), info.redis_settings().db())
    }

    /// What releases are published on.
    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Whether the server was a node of a cluster when it was last connected.
    pub(super) fn is_cluster(&self) -> bool {
        self.cluster.load(Ordering::Relaxed)
    }

    /// Runs a script whose keys and arguments `fill` appends.
    pub(super) async fn run(
        self: &Arc<Self>,
        script: &Script,
        fill: impl Fn(&mut Cmd) + Send,
    ) -> Result<Value, StoreError> {
        self.try_run(script, fill).await?.map_err(|error| failure::of_request(&error, Some(script)))
    }

    /// The same, with the server's own error.
    pub(super) async fn try_run(
        self: &Arc<Self>,
        script: &Script,
        fill: impl Fn(&mut Cmd) + Send,
    ) -> Result<Result<Value, RedisError>, StoreError> {
        let link = self.link().await?;
        let command = |verb: &str, script: &str| {
            // Room for what one key needs, in one piece.
            let mut command = Cmd::with_capacity(12, 256);
            command.arg(verb).arg(script);
            fill(&mut command);
            command
        };
        let mut answer = link.ask(&command("EVALSHA", &script.hash)).await;
        if answer.as_ref().is_err_and(failure::is_no_script) {
            answer = link.ask(&command("EVAL", script.text)).await;
        }
        Ok(answer.inspect_err(|error| self.look_at(&link, error)))
    }

    /// Sends a command.
    pub(super) async fn ask(self: &Arc<Self>, command: &Cmd) -> Result<Value, StoreError> {
        let link = self.link().await?;
        link.ask(command).await.map_err(|error| {
            self.look_at(&link, &error);
            failure::of_request(&error, None)
        })
    }

    /// What the server says of itself now.
    pub(super) async fn server(self: &Arc<Self>) -> Result<Server, StoreError> {
        let answer = self.ask(&redis::cmd("INFO")).await?;
        server(answer).map_err(|error| failure::of_request(&error, None))
    }

    /// The hints of other stores' releases. Whether the user may listen shows only when the server is asked;
    /// then the stream stays silent.
    pub(super) fn watch(self: &Arc<Self>) -> Option<Watch> {
        if self.is_forked() {
            return None;
        }
        let keeper = self.keeper().ok()?;
        if !self.watched.swap(true, Ordering::AcqRel) {
            keeper.spawn(listen_again(Arc::downgrade(self)));
        }
        let (mut hints, alive) = (self.hints.watch(), Arc::clone(self));
        Some(Watch::new(move |cx| {
            let _connection = &alive;
            hints.poll(cx)
        }))
    }

    /// The connection there is, or a new one.
    pub(super) async fn link(self: &Arc<Self>) -> Result<Arc<Link>, StoreError> {
        if self.is_forked() {
            return Err(StoreError::refused(
                "this process was forked after the store was made; make it again in the child",
            ));
        }
        loop {
            let changed = self.changed.notified();
            if let Some(link) = self.found()? {
                return Ok(link);
            }
            changed.await;
        }
    }

    /// The link that is up; `None` while one is being made.
    fn found(self: &Arc<Self>) -> Result<Option<Arc<Link>>, StoreError> {
        let mut state = self.state();
        let failures = match &*state {
            State::Up(link) => return Ok(Some(Arc::clone(link))),
            State::Down { why, until, .. } if Moment::now() < *until => {
                return Err(StoreError::refused(why.to_string()));
            }
            State::Connecting => return Ok(None),
            State::Down { failures, .. } => *failures,
            State::Idle => 0,
        };
        let keeper = self.keeper().map_err(StoreError::refused)?;
        *state = State::Connecting;
        keeper.spawn(Arc::clone(self).establish(failures));
        Ok(None)
    }

    async fn establish(self: Arc<Self>, failures: u32) {
        let connection = Arc::clone(&self);
        // A task of its own, so that not even a panic leaves the state as it is.
        let attempt = tokio::spawn(async move {
            let limited = tokio::time::timeout(CONNECT, connection.shake_hands()).await;
            limited.unwrap_or_else(|_| Err(connection.silence()))
        });
        let outcome = attempt.await.unwrap_or_else(|error| Err(error.to_string()));
        let link = outcome.as_ref().ok().cloned();
        *self.state() = match outcome {
            Ok(link) => State::Up(link),
            Err(why) => {
                let pause = PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
                let why =
                    format!("there is no connection to the Redis server at {}: {why}", self.place()).into();
                State::Down { why, failures: failures + 1, until: Moment::now() + pause }
            }
        };
        self.changed.notify_waiters();
        if let Some(link) = link
            && self.watched.load(Ordering::Acquire)
        {
            self.listen(&link).await;
        }
    }

    fn silence(&self) -> String {
        let tls = match self.client.get_connection_info().addr() {
            ConnectionAddr::TcpTls { .. } => "; if it does not speak TLS, use `redis:`",
            _ => "",
        };
        format!("it does not answer within {CONNECT:?}{tls}")
    }

    async fn shake_hands(self: &Arc<Self>) -> Result<Arc<Link>, String> {
        #[cfg(feature = "redis-tls")]
        provide_cryptography();
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let weak = Arc::downgrade(self);
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(QUEUE)
            .set_push_sender(move |push: PushInfo| received(&weak, number, &push));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await;
        let link = Arc::new(Link::new(connection.map_err(|error| failure::of_connecting(&error))?, number));
        let info = link.ask(&redis::cmd("INFO")).await.and_then(server);
        let server = info.map_err(|error| failure::of_connecting(&error))?;
        if let Some(why) = server.refusal(self.options.allow_eviction) {
            return Err(why);
        }
        self.cluster.store(server.is_cluster(), Ordering::Relaxed);
        let weak = Arc::downgrade(self);
        tokio::spawn(watch_over(Arc::downgrade(&link), move |link| {
            if let Some(connection) = weak.upgrade() {
                connection.lose_and_listen_again(link.number);
            }
        }));
        Ok(link)
    }

    async fn listen(self: &Arc<Self>, link: &Link) {
        if link.subscribed.swap(true, Ordering::AcqRel) {
            return;
        }
        match link.subscribe(&self.channel).await {
            // What was freed before is not told again.
            Ok(()) => self.hints.miss(),
            // It may have broken before it was known as the one that is up.
            Err(error) if error.is_io_error() => self.lose_and_listen_again(link.number),
            Err(error) => {
                let why = failure::of_connecting(&error);
                tracing::debug!(
                    store = "redis",
                    why,
                    "no hints of released locks; they are asked for instead"
                );
            }
        }
    }

    /// Gives up a connection that broke, or whose server is no longer the one to ask.
    fn look_at(&self, link: &Link, error: &RedisError) {
        if failure::is_misplaced(error) {
            self.lose(link.number);
        }
    }

    fn lose(&self, number: u64) {
        let mut state = self.state();
        if matches!(&*state, State::Up(link) if link.number == number) {
            *state = State::Idle;
        }
    }

    /// Who only listens would not notice, and misses everything until there is a connection again.
    fn lose_and_listen_again(self: &Arc<Self>, number: u64) {
        self.lose(number);
        if self.watched.load(Ordering::Acquire)
            && let Ok(keeper) = self.keeper()
        {
            keeper.spawn(listen_again(Arc::downgrade(self)));
        }
    }

    fn keeper(&self) -> io::Result<&Arc<Keeper>> {
        if let Some(keeper) = self.keeper.get() {
            return Ok(keeper);
        }
        let keeper = Keeper::get()?;
        Ok(self.keeper.get_or_init(|| keeper))
    }

    fn is_forked(&self) -> bool {
        self.pid != std::process::id()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_forked()
            && let State::Up(link) =
                std::mem::replace(self.state.get_mut().unwrap_or_else(PoisonError::into_inner), State::Idle)
        {
            Link::forget(link);
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("place", &self.place()).finish_non_exhaustive()
    }
}

/// Connects as often as it takes, for those who only listen and send no request that would.
async fn listen_again(connection: Weak<Connection>) {
    while let Some(connection) = connection.upgrade() {
        if let Ok(link) = connection.link().await {
            connection.listen(&link).await;
            return;
        }
        drop(connection);
        tokio::time::sleep(LONGEST_PAUSE).await;
    }
}

/// What the server sends by itself. Called by the connection's task: must not block.
fn received(connection: &Weak<Connection>, number: u64, push: &PushInfo) -> Result<(), ()> {
    let connection = connection.upgrade().ok_or(())?;
    match (&push.kind, &push.data[..]) {
        (PushKind::Disconnection, _) => connection.lose_and_listen_again(number),
        (PushKind::Message, [_, Value::BulkString(key)]) => {
            if let Ok(key) = std::str::from_utf8(key) {
                connection.hints.send(&Arc::from(key));
            }
        }
        _ => {}
    }
    Ok(())
}

fn server(info: Value) -> Result<Server, RedisError> {
    let text: String = redis::from_redis_value(info)?;
    Ok(Server::read(&text))
}

/// The delay of small packets off; a peer that is gone is noticed by probes, or by what it does not confirm.
fn tcp_settings(settings: TcpSettings) -> TcpSettings {
    let settings = settings.set_nodelay(true);
    let settings = match settings.keepalive() {
        Some(_) => settings,
        None => settings.set_keepalive(
            TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5)),
        ),
    };
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    if settings.user_timeout().is_none() {
        return settings.set_user_timeout(Duration::from_secs(15));
    }
    settings
}

/// rustls panics where the process has chosen no provider and more than one is built in. What the application
/// chose stays.
#[cfg(feature = "redis-tls")]
fn provide_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
}
