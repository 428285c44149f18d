//! The fencing token in SQL: a row that refuses a stale writer, whatever became of its lock.
//!
//! The table needs one more column for the largest token that has written the row, and each update one more
//! condition. Then it does not matter whether the writer was paused, or its statement was late.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use lockattr::lease::FencingToken;
use lockattr::{Locker, current, distributed_lock, store::MemoryStore};
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Adds to a balance; `false` when a newer holder has written the row.
async fn add(pool: &SqlitePool, id: i64, cents: i64, token: FencingToken) -> Result<bool, Error> {
    let written =
        sqlx::query("update account set cents = cents + $1, fence = $2 where id = $3 and fence <= $2")
            .bind(cents)
            .bind(i64::try_from(token.get())?) // below 2^53, so it fits
            .bind(id)
            .execute(pool)
            .await?;
    Ok(written.rows_affected() == 1)
}

/// Gives back its token, as a writer that was paused would still have it.
#[distributed_lock(key = "account:{id}", wait = 5)]
async fn deposit(pool: &SqlitePool, id: i64, cents: i64) -> Result<FencingToken, Error> {
    let token = current().expect("this is a locked body").token();
    println!("{cents} cents under the lock: {}", add(pool, id, cents, token).await?);
    Ok(token)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lockattr::install(Locker::new(MemoryStore::new()));
    // One connection, since each in-memory database has its own.
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::query(
        "create table account (id integer primary key, cents integer not null, fence integer not null)",
    )
    .execute(&pool)
    .await?;
    sqlx::query("insert into account values (7, 0, 0)").execute(&pool).await?;

    let first = deposit(&pool, 7, 100).await?;
    deposit(&pool, 7, 50).await?;
    println!("the first writer comes back: {}", add(&pool, 7, -100, first).await?);

    let (cents,): (i64,) = sqlx::query_as("select cents from account where id = 7").fetch_one(&pool).await?;
    println!("balance: {cents}");
    Ok(())
}
