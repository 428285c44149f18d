//! Records as both dialects read them: times are microseconds of the server's clock since 1970.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{ColumnIndex, Database, Decode, Type};
use uuid::Uuid;

use crate::lease::{FencingToken, Holder, Owner, Record};
use crate::store::StoreError;
use crate::store::clock::Reading;
use crate::store::entry::Entry;
use crate::time::Moment;

/// One record, and when it was read.
#[derive(Debug)]
pub(in crate::store) struct Row {
    pub(in crate::store) key: Arc<str>,
    pub(in crate::store) entry: Entry,
    pub(in crate::store) at: Reading,
}

impl Row {
    /// Reads the columns `lock_key`, `owner`, `last_owner`, `token`, `expires_us`, `ttl_us`, `granted_us`,
    /// `window_us`, `idle_us`, `host`, `pid`, `label` and `at_us`. Keys, owners and the holder's words are
    /// hexadecimal digits.
    pub(in crate::store) fn read<R>(row: &R) -> Result<Self, StoreError>
    where
        R: sqlx::Row,
        for<'a> &'a str: ColumnIndex<R>,
        for<'a> Option<&'a str>: Decode<'a, R::Database>,
        for<'a> &'a str: Type<R::Database>,
        for<'a> Option<i64>: Decode<'a, R::Database>,
        i64: Type<R::Database>,
        R::Database: Database<Row = R>,
    {
        let number = |column: &str| row.try_get::<Option<i64>, _>(column).map_err(damaged);
        let bytes = |column: &str| -> Result<Option<Vec<u8>>, StoreError> {
            let Some(digits) = row.try_get::<Option<&str>, _>(column).map_err(damaged)? else {
                return Ok(None);
            };
            data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map(Some).map_err(damaged)
        };
        let text = |column: &str| -> Result<String, StoreError> {
            String::from_utf8(bytes(column)?.unwrap_or_default()).map_err(damaged)
        };
        let owner = |column: &str| -> Result<Option<Owner>, StoreError> {
            let owner = bytes(column)?.map(|bytes| Uuid::from_slice(&bytes).map(Owner::from_uuid));
            owner.transpose().map_err(damaged)
        };
        let span = |column: &str| number(column).map(|micros| duration(micros.unwrap_or_default()));
        let entry = Entry {
            owner: owner("owner")?,
            last_owner: owner("last_owner")?,
            token: unsigned(number("token")?.unwrap_or_default()),
            expires: number("expires_us")?.map(moment),
            ttl: span("ttl_us")?,
            granted: moment(number("granted_us")?.unwrap_or_default()),
            granted_wall: span("granted_us")?,
            window_end: span("window_us")?,
            idle_since: span("idle_us")?,
            holder: Arc::new(Holder {
                host: text("host")?,
                pid: u32::try_from(number("pid")?.unwrap_or_default()).unwrap_or_default(),
                label: text("label")?,
            }),
        };
        let at = number("at_us")?.unwrap_or_default();
        Ok(Self { key: text("lock_key")?.into(), entry, at: Reading { now: moment(at), wall: duration(at) } })
    }

    pub(in crate::store) fn into_record(self) -> Record {
        Record::new(self.key, FencingToken::new(self.entry.token), self.entry.state(self.at.now))
    }
}

fn damaged(error: impl std::fmt::Display) -> StoreError {
    StoreError::refused(format!("a record of the table cannot be read: {error}"))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(unsigned(micros))
}

fn moment(micros: i64) -> Moment {
    Moment::default() + duration(micros)
}

/// Whole microseconds, for a statement; a millennium at most, which both servers can add to their time.
pub(in crate::store) fn micros(span: Duration) -> i64 {
    const MOST: i64 = 1000 * 365 * 24 * 60 * 60 * 1_000_000;
    i64::try_from(span.as_micros()).unwrap_or(MOST).min(MOST)
}

/// The bytes of a text as digits, which mean the same in every dialect and under every setting.
pub(in crate::store) fn hexadecimal(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
