//! PostgreSQL servers of the tests, and what they are asked.

use lockattr::store::PostgresStore;
use sqlx::postgres::{PgConnection, PgPool, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::servers::{self, Program, postgres::Postgres};

/// A running server of a test's own.
pub(crate) struct Server(pub(crate) servers::Server);

impl Server {
    pub(crate) fn start(settings: &[&str]) -> Self {
        Self(servers::Server::start(Postgres::with(settings)).unwrap())
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    pub(crate) fn url_as(&self, user: &str, password: &str) -> String {
        format!("postgres://{user}:{password}@{}/postgres?sslmode=disable", self.0.place.address())
    }

    pub(crate) async fn pool(&self) -> PgPool {
        PgPool::connect(&self.url()).await.unwrap()
    }

    /// A store whose table is there.
    pub(crate) async fn store(&self) -> PostgresStore {
        PostgresStore::connect(&format!("{}&lockattr_migrate=true", self.url())).await.unwrap()
    }

    /// Sends statements as the user that may do everything.
    pub(crate) async fn tell(&self, statements: &str) -> Vec<PgRow> {
        let mut admin = PgConnection::connect(&self.url()).await.unwrap();
        admin.fetch_all(sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))).await.unwrap()
    }
}

/// A storage of the conformance suite: a table of one server that all storages share.
pub(crate) async fn storage(name: String) -> PostgresStore {
    let program = || -> Box<dyn Program> {
        // The suite does not crash the server, so it need not wait for the disk.
        Box::new(Postgres::with(&["fsync=off", "max_connections=400"]))
    };
    let place = servers::Server::shared("postgres", program).unwrap();
    let url = Postgres::default().url(place.address());
    let table: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // PostgreSQL cuts longer names, and the end is what tells them apart.
    let table = format!("t{}", &table[table.len().saturating_sub(60)..]);
    PostgresStore::connect(&format!("{url}&lockattr_migrate=true&lockattr_table={table}")).await.unwrap()
}
