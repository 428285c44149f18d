//! How a MySQL store is opened: URL and options.

use std::sync::Arc;

use sqlx::mysql::{MySqlConnectOptions, MySqlPool};

use super::{MySqlStore, Shared, failure, statements};
use crate::error::{LockError, Locked, Step};
use crate::store::StoreError;
use crate::store::sql::{Connections, Table, Turn, parameters};

const QUOTE: char = '`';

/// How a [`MySqlStore`] is opened.
///
/// ```
/// use lockattr_runtime::store::MySqlOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // Port 1 has no server: it is refused at once, and the error says so.
/// let options = MySqlOptions::new().table("locks.jobs").unwrap();
/// let error = options.connect("mysql://app:secret@127.0.0.1:1/app").await.unwrap_err();
/// assert!(error.to_string().contains("refused") && !error.to_string().contains("secret"));
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct MySqlOptions {
    table: Table,
    migrate: bool,
}

impl Default for MySqlOptions {
    fn default() -> Self {
        Self { table: Table::default(QUOTE), migrate: false }
    }
}

impl MySqlOptions {
    /// The defaults: the table `lockattr_lock`, which must be there.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table's name, `lockattr_lock` by default; before it may stand another database than the
    /// connection's and a dot.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] unless both are letters, digits and underscores, at most 63, with no digit first.
    pub fn table(mut self, name: &str) -> Result<Self, LockError> {
        self.table = Table::new(name, QUOTE).map_err(|reason| LockError::Setup { reason })?;
        Ok(self)
    }

    /// Makes the table when [`connect`](Self::connect) finds none, for which the user needs the right to create
    /// tables. Off by default: see [`MySqlStore::migrate`].
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// The statement that makes the table, for a migration of your own.
    #[must_use]
    pub fn ddl(&self) -> String {
        statements::ddl(&self.table)
    }

    /// Opens the store on the server of `options`. Nothing is sent yet: what is wrong shows with the first request.
    #[must_use]
    pub fn open(self, options: MySqlConnectOptions) -> MySqlStore {
        MySqlStore(Arc::new(Shared {
            connections: Arc::new(Connections::new(options)),
            table: self.table,
        }))
    }

    /// Opens the store with the settings of the application's pool. Nothing is sent yet.
    ///
    /// It makes connections of its own, at most four: those of the pool belong to the application's runtime,
    /// may be in a transaction, and may all be in use by the bodies that hold the locks.
    #[must_use]
    pub fn from_pool(self, pool: &MySqlPool) -> MySqlStore {
        self.open((*pool.connect_options()).clone())
    }

    /// Connects to the server that `url` names, and checks server and table. [`MySqlStore::connect`] has the form.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] for a URL that is wrong, [`LockError::Store`] when the server or the table cannot be
    /// reached or used: it says why, and never shows a password.
    pub async fn connect(mut self, url: &str) -> Result<MySqlStore, LockError> {
        let options = self.read(url).map_err(|reason| LockError::Setup { reason })?;
        let place = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        let migrate = self.migrate;
        let store = self.open(options);
        let checked = async {
            if migrate {
                store.create().await?;
            }
            store.check().await
        };
        match checked.await {
            Ok(()) => Ok(store),
            Err(source) => Err(LockError::Store {
                locked: Locked::plain(&place),
                step: Step::Connect,
                store: "mysql",
                source: source.into(),
            }),
        }
    }

    /// No part of the URL may stand in the errors: it may have a password anywhere.
    fn read(&mut self, url: &str) -> Result<MySqlConnectOptions, String> {
        let (url, ours) = parameters(url)?;
        for (name, value) in ours {
            match (name.as_str(), value.as_str()) {
                ("lockattr_migrate", "true") => self.migrate = true,
                ("lockattr_migrate", "false") => self.migrate = false,
                ("lockattr_table", name) => self.table = Table::new(name, QUOTE)?,
                _ => {
                    return Err(
                        "after its `?` a `mysql:` URL takes `lockattr_migrate=true` or `=false`, \
                                `lockattr_table=name`, and what the driver takes, as `ssl-mode=`"
                            .to_owned(),
                    );
                }
            }
        }
        url.parse().map_err(|_| {
            "the URL of the MySQL server cannot be used; it is written as in \
             `mysql://user:password@host:3306/database`, or `mysql://user@localhost/database?socket=/run/mysqld/mysqld.sock`, \
             with `%` before the hexadecimal code of each special character in a name or password"
                .to_owned()
        })
    }
}

impl MySqlStore {
    pub(super) async fn create(&self) -> Result<(), StoreError> {
        // It asks first: who has no right to create may use a table that is there.
        if self.ask(Turn::InLine, statements::check(&self.0.table)).await.is_ok() {
            return Ok(());
        }
        match self.ask(Turn::InLine, statements::ddl(&self.0.table)).await {
            Ok(_) => Ok(()),
            // Two that make the table at once: the other one has.
            Err(error) => match self.ask(Turn::InLine, statements::check(&self.0.table)).await {
                Ok(_) => Ok(()),
                Err(_) => Err(failure::of_request(error, &self.0.table)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let mut options = MySqlOptions::new();
        for scheme in ["mysql", "mariadb"] {
            let url = format!("{scheme}://ann:p%40ss@host:7000/app?lockattr_migrate=true&lockattr_table=a.b");
            let read = options.read(&url).unwrap();
            assert_eq!((read.get_host(), read.get_port(), read.get_database()), ("host", 7000, Some("app")));
            assert_eq!((options.migrate, options.table.quoted()), (true, "`a`.`b`"));
        }
    }

    #[test]
    fn wrong_urls_are_explained_and_not_shown() {
        for url in [
            "mysql://ann:hunter2@host:port/app",
            "mysql://ann:hunter2@host/app?ssl-mode=hunter2",
            "mysql://ann:hunter2@host/app?lockattr_tabel=hunter2",
            "mysql://ann:hunter2@host/app?lockattr_table=a-hunter2",
        ] {
            let why = MySqlOptions::new().read(url).unwrap_err();
            assert!(!why.contains("hunter2") && !why.contains("host:port"), "{why}");
            assert!(why.contains("mysql:") || why.contains("table"), "{why}");
        }
    }
}
