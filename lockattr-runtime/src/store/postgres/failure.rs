//! What went wrong, in words that say what to do, and whether anything can have been done.
//!
//! Invariant: no text has a password, an owner or a key. Of what the server says only its message is passed on,
//! which names tables and roles; a row's values stand in its detail.

use std::io::ErrorKind;

use sqlx::error::DatabaseError;
use sqlx::postgres::Postgres;

use super::statements;
use crate::store::StoreError;
use crate::store::sql::{Failed, Server, Table};

/// Others were faster with one of several keys: see `statements::acquire`.
pub(super) const OVERTAKEN: &str = "22P02";

const NO_RIGHT: &str = "42501";
const NO_TABLE: &str = "42P01";
const NO_SCHEMA: &str = "3F000";
const READ_ONLY: &str = "25006";

impl Server for Postgres {
    const PRODUCT: &'static str = "PostgreSQL";
    const GREETING: Option<&'static str> = None;

    fn of_connecting(error: &sqlx::Error) -> String {
        of_connecting(error)
    }

    fn ends(error: &dyn DatabaseError) -> bool {
        // The server ends the session, or another one may have taken this one's place.
        error.code().is_some_and(|code| is_fatal(&code) || code == READ_ONLY)
    }
}

/// The classes "connection exception", "operator intervention" and "system error" (PostgreSQL's manual,
/// "PostgreSQL Error Codes"), and 40003: whether the transaction was committed is not known.
fn is_fatal(code: &str) -> bool {
    ["08", "57P", "58", "XX"].iter().any(|class| code.starts_with(class)) || code == "40003"
}

/// The failure of a request.
pub(super) fn of_request(failed: Failed, table: &Table) -> StoreError {
    let error = match failed {
        Failed::Before(why) => return StoreError::refused(why),
        Failed::Silent => return Failed::silent::<Postgres>(),
        Failed::Said(error) => error,
    };
    let Some(said) = error.as_database_error() else {
        return match error {
            sqlx::Error::Io(_) => {
                StoreError::unknown("the connection to the PostgreSQL server broke before its answer came")
            }
            _ => StoreError::unknown("the PostgreSQL server's answer cannot be read"),
        };
    };
    let code = said.code().unwrap_or_default();
    if is_fatal(&code) {
        return StoreError::unknown(format!("the PostgreSQL server says: {}", said.message()));
    }
    StoreError::refused(explained(&code, said.message(), table))
}

pub(super) fn explained(code: &str, message: &str, table: &Table) -> String {
    let name = table.plain();
    match code {
        NO_TABLE | NO_SCHEMA => format!(
            "there is no table `{name}` in the PostgreSQL database: `PostgresStore::migrate`, or \
             `lockattr_migrate=true` in the URL, makes it, or this does:\n{}",
            statements::ddl(table)
        ),
        NO_RIGHT => format!(
            "the PostgreSQL user has not all the rights it needs: {message}; it needs `grant select, insert, update, \
             delete on {name}`"
        ),
        READ_ONLY => "the PostgreSQL server is a read-only standby, or its user's transactions are read-only; give the \
                      address of its primary"
            .to_owned(),
        "42703" | "42804" | "42809" | "42883" | "42P10" | "23502" => format!(
            "the table `{name}` is not one of this store ({message}); give the store a table of its own with \
             `lockattr_table`"
        ),
        "40001" | "40P01" => "the PostgreSQL server undid it, since it got in the way of another transaction".to_owned(),
        "55P03" => "another transaction has had the record locked for two seconds; `pin` late in a transaction".to_owned(),
        "22P05" | "22021" => "the database's encoding does not have all characters of the key or of the holder's name; \
                              one in UTF8 does"
            .to_owned(),
        "53100" => "the PostgreSQL server's disk is full".to_owned(),
        _ => format!("the PostgreSQL server says: {message} ({code})"),
    }
}

fn of_connecting(error: &sqlx::Error) -> String {
    if let Some(said) = error.as_database_error() {
        return match said.code().as_deref() {
            Some("28P01" | "28000") => {
                "the PostgreSQL server does not accept the user name and password, or not from here"
                    .to_owned()
            }
            Some("3D000") => "the PostgreSQL server does not have the database of that name".to_owned(),
            Some("53300") => "the PostgreSQL server has no connection left (`max_connections`)".to_owned(),
            Some("57P03") => "the PostgreSQL server is still starting, or shutting down".to_owned(),
            _ => format!("the PostgreSQL server says: {}", said.message()),
        };
    }
    match error {
        sqlx::Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => "nothing listens there: the connection was refused".to_owned(),
            ErrorKind::NotFound => "there is no such socket".to_owned(),
            ErrorKind::PermissionDenied => "this process may not open the socket".to_owned(),
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                "it closed the connection at once, as no PostgreSQL server does".to_owned()
            }
            _ => error.to_string(),
        },
        sqlx::Error::Tls(error) => format!(
            "no TLS connection comes about: {error}; the Cargo feature `postgres-tls` of lockattr brings TLS, and \
             `sslmode=disable` in the URL does without"
        ),
        sqlx::Error::Protocol(_) => "what it answers is not PostgreSQL's protocol".to_owned(),
        // Of a configuration, the text may repeat what was given.
        _ => "the connection's settings cannot be used".to_owned(),
    }
}
