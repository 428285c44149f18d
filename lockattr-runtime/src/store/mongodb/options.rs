//! How a MongoDB store is opened: URL and options.

use std::sync::Arc;
use std::time::Duration;

use mongodb::Client;
use mongodb::options::ClientOptions;
use tokio::sync::OnceCell;

use super::MongoDbStore;
use super::connection::Connection;
use crate::error::{LockError, Locked, Step};

/// How long a request waits for a server that can be written to: below every time-out of the core.
const SELECTION: Duration = Duration::from_millis(900);

/// How a [`MongoDbStore`] is opened.
#[derive(Clone, Debug)]
#[must_use]
pub struct MongoDbOptions {
    database: Option<String>,
    collection: String,
}

impl Default for MongoDbOptions {
    fn default() -> Self {
        Self { database: None, collection: "lockattr_lock".to_owned() }
    }
}

impl MongoDbOptions {
    /// The defaults: the collection `lockattr_lock` in the database that the URL names, or in `lockattr`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The database of the collection.
    pub fn database(mut self, name: impl Into<String>) -> Self {
        self.database = Some(name.into());
        self
    }

    /// The collection, which must be the store's own.
    pub fn collection(mut self, name: impl Into<String>) -> Self {
        self.collection = name.into();
        self
    }

    /// Opens the store with these settings of the driver. Nothing is sent yet.
    #[must_use]
    pub fn open(self, mut settings: ClientOptions) -> MongoDbStore {
        settings.server_selection_timeout.get_or_insert(SELECTION);
        self.with(settings, OnceCell::new())
    }

    /// Opens the store with a client of the application. Nothing is sent yet.
    ///
    /// The client's connections live on the application's runtime: while that is blocked, or when it has ended,
    /// leases are lost.
    #[must_use]
    pub fn from_client(self, client: &Client) -> MongoDbStore {
        self.with(ClientOptions::default(), OnceCell::new_with(Some(client.clone())))
    }

    fn with(self, settings: ClientOptions, client: OnceCell<Client>) -> MongoDbStore {
        let database = self.database.or_else(|| settings.default_database.clone());
        MongoDbStore(Arc::new(Connection {
            database: database.unwrap_or_else(|| "lockattr".to_owned()),
            collection: self.collection,
            settings,
            client,
            pid: std::process::id(),
        }))
    }

    /// Connects to the servers that `url` names, and checks them.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] for a URL that is wrong, [`LockError::Store`] when no server can be reached or used: it
    /// says why, and never shows a password.
    pub async fn connect(self, url: &str) -> Result<MongoDbStore, LockError> {
        let settings = ClientOptions::parse(url).await.map_err(|_| LockError::Setup {
            reason: "the URL of the MongoDB server cannot be used; it is written as in \
                     `mongodb://user:password@host:27017/database?authSource=admin`, with `%` before the hexadecimal \
                     code of each special character in a name or password; `mongodb+srv:` is not in this build, and \
                     the long form names the same servers"
                .to_owned(),
        })?;
        let store = self.open(settings);
        match store.check().await {
            Ok(()) => Ok(store),
            Err(source) => Err(LockError::Store {
                locked: Locked::plain(&store.0.place()),
                step: Step::Connect,
                store: "mongodb",
                source: source.into(),
            }),
        }
    }
}
