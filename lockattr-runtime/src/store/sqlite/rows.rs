//! Records as rows, and the statements on them.
//!
//! Times are nanoseconds: `expires` and `granted` on the clock of `boot`, the rest since 1970.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Executor as _, Row as _};
use uuid::Uuid;

use crate::lease::{Holder, Owner};
use crate::store::StoreError;
use crate::store::clock::Reading;
use crate::store::entry::{Entries, Entry};
use crate::time::Moment;

pub(super) const TABLE: &str = "\
create table lockattr_lock (
  lock_key blob primary key, owner blob, last_owner blob, token integer not null,
  expires integer, ttl integer not null, granted integer not null, boot text not null,
  granted_wall integer not null, window_end integer not null, idle_since integer not null,
  written integer not null, host text not null, pid integer not null, label text not null
) without rowid, strict";

const LOOK: &str = "select * from lockattr_lock where lock_key = ?";
const BEGIN: &str = "begin immediate; select * from lockattr_lock where lock_key = ?";
const SAVE: &str = "replace into lockattr_lock values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const SAVE_LAST: &str =
    "replace into lockattr_lock values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?); commit";
const PAGE: &str = "\
select * from lockattr_lock where lock_key >= ? and lock_key < ? and expires is not null
order by lock_key limit ?";
const ANY_IDLE: &str = "\
select 1 from lockattr_lock
where idle_since <= ? and window_end <= ? and (expires is null or boot <> ? or expires <= ?) limit 1";
const COLLECT: &str = "\
delete from lockattr_lock where lock_key in (select lock_key from lockattr_lock
where idle_since <= ? and window_end <= ? and (expires is null or boot <> ? or expires <= ?) limit ?)";

const BUSY: i64 = 5;
const LOCKED: i64 = 6;
pub(super) const READONLY: i64 = 8;
const FULL: i64 = 13;
pub(super) const CANTOPEN: i64 = 14;
const CONSTRAINT: i64 = 19;
pub(super) const NOTADB: i64 = 26;

/// Where and when a row is read or written.
pub(super) struct Here<'a> {
    pub(super) at: Reading,
    pub(super) boot: &'a str,
}

/// Rows as they were read, before anyone looked at the clock.
pub(super) struct Rows(Vec<SqliteRow>);

impl Rows {
    pub(super) fn into_entries(self, here: &Here<'_>) -> Result<Entries, StoreError> {
        self.0
            .iter()
            .map(|row| entry(row, here))
            .collect::<Result<_, _>>()
            .map_err(|error| StoreError::refused(format!("a record of the database is damaged: {error}")))
    }
}

/// Takes the write lock and reads the rows of `keys`.
pub(super) async fn begin(sqlite: &mut SqliteConnection, keys: &[Arc<str>]) -> Result<Rows, sqlx::Error> {
    if keys.is_empty() {
        sqlite.execute("begin immediate").await?;
    }
    let mut rows = Vec::with_capacity(keys.len());
    let mut statement = BEGIN;
    for key in keys {
        rows.extend(sqlite.fetch_all(sqlx::query(statement).bind(key.as_bytes())).await?);
        statement = LOOK;
    }
    Ok(Rows(rows))
}

pub(super) async fn rollback(sqlite: &mut SqliteConnection) -> Result<(), StoreError> {
    sqlite.execute("rollback").await.map_err(nothing_done).map(drop)
}

/// Writes `entries` and commits.
pub(super) async fn save(
    sqlite: &mut SqliteConnection,
    entries: &Entries,
    here: &Here<'_>,
) -> Result<(), StoreError> {
    let mut left = entries.len();
    for (key, entry) in entries {
        left -= 1;
        let statement = if left == 0 { SAVE_LAST } else { SAVE };
        let row = sqlx::query(statement)
            .bind(key.as_bytes())
            .bind(entry.owner.as_ref().map(|owner| &owner.as_uuid().as_bytes()[..]))
            .bind(entry.last_owner.as_ref().map(|owner| &owner.as_uuid().as_bytes()[..]))
            .bind(integer(entry.token))
            .bind(entry.expires.map(|expires| integer(expires.as_nanos())))
            .bind(nanos(entry.ttl))
            .bind(integer(entry.granted.as_nanos()))
            .bind(here.boot)
            .bind(nanos(entry.granted_wall))
            .bind(nanos(entry.window_end))
            .bind(nanos(entry.idle_since))
            .bind(nanos(here.at.wall))
            .bind(&entry.holder.host)
            .bind(i64::from(entry.holder.pid))
            .bind(&entry.holder.label);
        let failed = if left == 0 { perhaps_done } else { nothing_done };
        sqlite.execute(row).await.map_err(failed)?;
    }
    Ok(())
}

/// Reads the row of `key` without the write lock.
pub(super) async fn look(sqlite: &mut SqliteConnection, key: &str) -> Result<Rows, StoreError> {
    sqlite.fetch_all(sqlx::query(LOOK).bind(key.as_bytes())).await.map(Rows).map_err(nothing_done)
}

/// Reads at most `limit` rows that are not released, in the order of their keys.
pub(super) async fn page(
    sqlite: &mut SqliteConnection,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Rows, StoreError> {
    let start = match after {
        // The first key after it.
        Some(after) if after >= prefix => [after.as_bytes(), &[0]].concat(),
        _ => prefix.as_bytes().to_vec(),
    };
    // No UTF-8 text has this byte, so the range holds what begins with the prefix and nothing else.
    let end = [prefix.as_bytes(), &[0xFF]].concat();
    let query = sqlx::query(PAGE).bind(start).bind(end).bind(i64::try_from(limit).unwrap_or(i64::MAX));
    sqlite.fetch_all(query).await.map(Rows).map_err(nothing_done)
}

/// Removes at most `limit` rows that nothing holds and that were idle for `retention`.
pub(super) async fn collect(
    sqlite: &mut SqliteConnection,
    here: &Here<'_>,
    retention: Duration,
    limit: usize,
) -> Result<usize, StoreError> {
    let Some(idle_since) = here.at.wall.checked_sub(retention) else { return Ok(0) };
    let idle = |statement| {
        sqlx::query(statement)
            .bind(nanos(idle_since))
            .bind(nanos(here.at.wall))
            .bind(here.boot)
            .bind(integer(here.at.now.as_nanos()))
    };
    // Reading takes no lock from the others, and mostly there is nothing to remove.
    if sqlite.fetch_optional(idle(ANY_IDLE)).await.map_err(nothing_done)?.is_none() {
        return Ok(0);
    }
    let removal = idle(COLLECT).bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let done = sqlite.execute(removal).await.map_err(perhaps_done)?;
    Ok(usize::try_from(done.rows_affected()).unwrap_or(usize::MAX))
}

fn entry(row: &SqliteRow, here: &Here<'_>) -> Result<(Arc<str>, Entry), sqlx::Error> {
    let key: &[u8] = row.try_get("lock_key")?;
    let key = std::str::from_utf8(key).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let mut entry = Entry {
        owner: owner(row, "owner")?,
        last_owner: owner(row, "last_owner")?,
        token: number(row, "token")?,
        expires: row.try_get::<Option<i64>, _>("expires")?.map(|nanos| Moment::from_nanos(unsigned(nanos))),
        ttl: duration(row, "ttl")?,
        granted: Moment::from_nanos(number(row, "granted")?),
        granted_wall: duration(row, "granted_wall")?,
        window_end: duration(row, "window_end")?,
        idle_since: duration(row, "idle_since")?,
        holder: Arc::new(Holder {
            host: row.try_get("host")?,
            pid: u32::try_from(row.try_get::<i64, _>("pid")?).unwrap_or_default(),
            label: row.try_get("label")?,
        }),
    };
    if row.try_get::<&str, _>("boot")? != here.boot {
        translate(&mut entry, duration(row, "written")?, here.at);
    }
    Ok((Arc::from(key), entry))
}

/// Puts a record of another boot on this boot's clock, by the wall clock.
///
/// What was held when the machine went down is free. Only if the record was written after this boot, which
/// then is not the only kernel at work on the file, is it waited for, a ttl at most.
fn translate(entry: &mut Entry, written: Duration, at: Reading) {
    let booted = at.wall.saturating_sub(at.now.since(Moment::default()));
    let left = written.saturating_add(entry.ttl).saturating_sub(at.wall).min(entry.ttl);
    entry.expires = match entry.expires {
        Some(_) if entry.owner.is_some() && written < booted => Some(Moment::default()),
        Some(_) => Some(at.now + left),
        None => None,
    };
    entry.granted = at.now - at.wall.saturating_sub(entry.granted_wall);
}

fn owner(row: &SqliteRow, column: &str) -> Result<Option<Owner>, sqlx::Error> {
    row.try_get::<Option<&[u8]>, _>(column)?
        .map(|bytes| Uuid::from_slice(bytes).map(Owner::from_uuid))
        .transpose()
        .map_err(|error| sqlx::Error::Decode(error.into()))
}

fn number(row: &SqliteRow, column: &str) -> Result<u64, sqlx::Error> {
    row.try_get(column).map(unsigned)
}

fn duration(row: &SqliteRow, column: &str) -> Result<Duration, sqlx::Error> {
    number(row, column).map(Duration::from_nanos)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// For what fails before anything can be committed: closing the connection rolls it back.
pub(super) fn nothing_done(error: sqlx::Error) -> StoreError {
    StoreError::refused(error)
}

/// Whether another connection had it locked for too long.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    code(error) == Some(BUSY)
}

/// For what fails in or after a commit.
fn perhaps_done(error: sqlx::Error) -> StoreError {
    match code(&error) {
        Some(BUSY | LOCKED | READONLY | FULL | CONSTRAINT) => StoreError::refused(error),
        _ => StoreError::unknown(error),
    }
}

/// SQLite's primary result code (sqlite.org, "Result and Error Codes").
pub(super) fn code(error: &sqlx::Error) -> Option<i64> {
    let code = error.as_database_error()?.code()?.parse::<i64>().ok()?;
    // The low byte of an extended code.
    Some(code & 0xFF)
}
