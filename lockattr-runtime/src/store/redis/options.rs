//! How a Redis store is opened: URL and options.

use super::RedisStore;
use super::connection::Connection;
use crate::error::{LockError, Locked, Step};

/// How a [`RedisStore`] is opened.
///
/// ```
/// use lockattr_runtime::store::RedisOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // Port 1 has no server: it is refused at once, and the error says so.
/// let error = RedisOptions::new().connect("redis://:secret@127.0.0.1:1").await.unwrap_err();
/// assert!(error.to_string().contains("refused") && !error.to_string().contains("secret"));
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RedisOptions {
    pub(super) allow_eviction: bool,
}

/// What a URL may ask for after its `?`, and what else the driver reads there.
const PARAMETERS: &str = "`allow_eviction=true` or `=false`, and for a socket `db=`, `user=` and `pass=`";

impl RedisOptions {
    /// The defaults: a server that may evict held locks is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses a server although its `maxmemory-policy` is `allkeys-*` and it has a limit: then it may throw away
    /// a lock that is held, and two holders may come of it.
    ///
    /// [`Store::audit`](crate::store::Store::audit) then reports no level at all. Every other policy spares
    /// what is held.
    pub fn allow_eviction(mut self, allow: bool) -> Self {
        self.allow_eviction = allow;
        self
    }

    /// Opens the store on the server of `client`. Nothing is sent yet.
    ///
    /// Of the client, its address, its credentials, its database and its socket's settings are used;
    /// `TCP_NODELAY` is switched on, and the protocol is always RESP3.
    #[must_use]
    pub fn open(self, client: &redis::Client) -> RedisStore {
        RedisStore(Connection::new(client, self))
    }

    /// Connects to the server that `url` names, and checks it. [`RedisStore::connect`] lists the forms.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] for a URL that is wrong, [`LockError::Store`] when the server cannot be reached or
    /// used: it says why, and never shows a password.
    pub async fn connect(mut self, url: &str) -> Result<RedisStore, LockError> {
        let client = self.read(url).map_err(|reason| LockError::Setup { reason })?;
        let store = self.open(&client);
        match store.0.link().await {
            Ok(_) => Ok(store),
            Err(source) => Err(LockError::Store {
                locked: Locked::plain(&store.0.place()),
                step: Step::Connect,
                store: "redis",
                source: source.into(),
            }),
        }
    }

    /// No part of the URL may stand in the errors: it may have a password anywhere.
    fn read(&mut self, url: &str) -> Result<redis::Client, String> {
        let (scheme, rest) = url.split_once(':').unwrap_or_default();
        if matches!(scheme, "rediss" | "valkeys") && !cfg!(feature = "redis-tls") {
            return Err(format!(
                "`{scheme}:` needs the Cargo feature `redis-tls` of lockattr, which this build does not have; add it to \
                 the dependency's `features`"
            ));
        }
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("allow_eviction", "true") => self.allow_eviction = true,
                ("allow_eviction", "false") => self.allow_eviction = false,
                ("db" | "user" | "pass" | "protocol", _) => {}
                _ => return Err(format!("after its `?` a `redis:` URL takes {PARAMETERS}")),
            }
        }
        redis::Client::open(url).map_err(|error| {
            let why = error.to_string();
            let why = why.split(" - ").next().unwrap_or_default();
            format!(
                "the URL of the Redis server cannot be used ({why}); it is written as in \
                 `redis://user:password@host:6379/0`, or `redis+unix:///run/redis.sock?db=0&user=name&pass=password`, \
                 with `%` before the hexadecimal code of each special character in a name or password"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let mut options = RedisOptions::new();
        let client = options.read("redis://ann:p%40ss@host:7000/3?allow_eviction=true").unwrap();
        let settings = client.get_connection_info().redis_settings();
        assert_eq!((settings.username(), settings.password()), (Some("ann"), Some("p@ss")));
        assert_eq!((settings.db(), options.allow_eviction), (3, true));
        let client = options.read("redis+unix:///run/x.sock?db=2&user=ann&pass=secret").unwrap();
        assert_eq!(client.get_connection_info().addr().to_string(), "/run/x.sock");
        assert_eq!(client.get_connection_info().redis_settings().db(), 2);
    }

    #[test]
    fn wrong_urls_are_explained_and_not_shown() {
        for url in [
            "redis://",
            "redis://:hunter2@host:port/0",
            "redis://:hunter2@host/zero",
            "redis://:hunter2@host:6379/0?allow_evicton=hunter2",
            "redis+unix:hunter2",
            "redis://hunter2@0.0.0.0",
        ] {
            let why = RedisOptions::new().read(url).unwrap_err();
            assert!(!why.contains("hunter2") && !why.contains("host:p"), "{why}");
            assert!(
                why.contains("redis://user:password@host:6379/0") || why.contains("allow_eviction="),
                "{why}"
            );
        }
        let tls = RedisOptions::new().read("rediss://host");
        assert_eq!(tls.is_ok(), cfg!(feature = "redis-tls"), "{tls:?}");
    }
}
