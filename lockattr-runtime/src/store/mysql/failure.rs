//! What went wrong, in words that say what to do, and whether anything can have been done.
//!
//! Invariant: no text has a password, an owner or a key. Of what the server says only its message is passed on, and
//! not that of errors that repeat a value or a part of the statement.

use std::io::ErrorKind;

use sqlx::error::DatabaseError;
use sqlx::mysql::{MySql, MySqlDatabaseError};

use super::statements;
use crate::store::StoreError;
use crate::store::sql::{Failed, Server, Table};

pub(super) const LOCK_WAIT_TIMEOUT: u16 = 1205;
const DEADLOCK: u16 = 1213;
const NO_TABLE: u16 = 1146;
const READ_ONLY: [u16; 4] = [1290, 1792, 1836, 1874];

impl Server for MySql {
    const PRODUCT: &'static str = "MySQL";
    /// A pool's settings may reach a connection through the server's `init_connect`. A grant in an open transaction
    /// would be seen by nobody, and a time that was set would be the clock.
    const GREETING: Option<&'static str> = Some(
        "set session autocommit = 1, session timestamp = default, session innodb_lock_wait_timeout = 2",
    );

    fn of_connecting(error: &sqlx::Error) -> String {
        of_connecting(error)
    }

    fn ends(error: &dyn DatabaseError) -> bool {
        let number = number(error);
        // What is not known may have ended it; of a read-only server, another may have taken the place.
        READ_ONLY.contains(&number) || !is_refusal(number)
    }
}

fn number(error: &dyn DatabaseError) -> u16 {
    error.try_downcast_ref::<MySqlDatabaseError>().map_or(0, MySqlDatabaseError::number)
}

pub(super) fn number_of(failed: &Failed) -> u16 {
    match failed {
        Failed::Said(error) => error.as_database_error().map_or(0, number),
        _ => 0,
    }
}

/// Errors with which no statement of the message has changed anything (MySQL's manual, "Server Error Message
/// Reference"): each comes before or with the one statement that changes a record.
fn is_refusal(number: u16) -> bool {
    matches!(
        number,
        LOCK_WAIT_TIMEOUT | DEADLOCK | NO_TABLE | 1044 | 1046 | 1048 | 1049 | 1054 | 1064 | 1142 | 1143 | 1227 | 1264 | 1292
            | 1305 | 1364 | 1366 | 1370 | 1406 | 1690 | 1021 | 1114 | 1206
    ) || READ_ONLY.contains(&number)
}

/// The failure of a request.
pub(super) fn of_request(failed: Failed, table: &Table) -> StoreError {
    let error = match failed {
        Failed::Before(why) => return StoreError::refused(why),
        Failed::Silent => return Failed::silent::<MySql>(),
        Failed::Said(error) => error,
    };
    let Some(said) = error.as_database_error() else {
        return match error {
            sqlx::Error::Io(_) => {
                StoreError::unknown("the connection to the MySQL server broke before its answer came")
            }
            _ => StoreError::unknown("the MySQL server's answer cannot be read"),
        };
    };
    let number = number(said);
    let text = explained(number, said.message(), table);
    if is_refusal(number) { StoreError::refused(text) } else { StoreError::unknown(text) }
}

fn explained(number: u16, message: &str, table: &Table) -> String {
    let name = table.plain();
    match number {
        NO_TABLE => format!(
            "there is no table `{name}` in the MySQL database: `MySqlStore::migrate`, or `lockattr_migrate=true` in the \
             URL, makes it, or this does:\n{}",
            statements::ddl(table)
        ),
        1044 | 1142 | 1143 | 1227 | 1370 => format!(
            "the MySQL user has not all the rights it needs: {message}; it needs `grant select, insert, update, delete \
             on {name}`"
        ),
        1046 => "the URL of the MySQL server names no database".to_owned(),
        number if READ_ONLY.contains(&number) => {
            "the MySQL server is read-only, as a replica is; give the address of its primary".to_owned()
        }
        1048 | 1054 | 1264 | 1292 | 1364 | 1366 | 1406 => format!(
            "the table `{name}` is not one of this store (error {number}); give the store a table of its own with \
             `lockattr_table`"
        ),
        DEADLOCK => "the MySQL server undid it, since it got in the way of another transaction".to_owned(),
        LOCK_WAIT_TIMEOUT => {
            "another transaction has had the record locked for two seconds; `pin` late in a transaction".to_owned()
        }
        1021 | 1114 => "the MySQL server's disk or table is full".to_owned(),
        1053 | 1077 | 1927 => "the MySQL server ended the connection".to_owned(),
        1064 => "the MySQL server does not understand the statement; is it MySQL 5.7 or MariaDB 10.3 or later?".to_owned(),
        _ => format!("the MySQL server says error {number}"),
    }
}

fn of_connecting(error: &sqlx::Error) -> String {
    if let Some(said) = error.as_database_error() {
        return match number(said) {
            1044 | 1045 | 1698 => {
                "the MySQL server does not accept the user name and password, or not from here".to_owned()
            }
            1049 => "the MySQL server does not have the database of that name".to_owned(),
            1040 => "the MySQL server has no connection left (`max_connections`)".to_owned(),
            1129 | 1130 => "the MySQL server takes no connection from this host".to_owned(),
            number => format!("the MySQL server says error {number}"),
        };
    }
    match error {
        sqlx::Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => "nothing listens there: the connection was refused".to_owned(),
            ErrorKind::NotFound => "there is no such socket".to_owned(),
            ErrorKind::PermissionDenied => "this process may not open the socket".to_owned(),
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                "it closed the connection at once, as no MySQL server does".to_owned()
            }
            _ => error.to_string(),
        },
        sqlx::Error::Tls(error) => format!(
            "no TLS connection comes about: {error}; the Cargo feature `mysql-tls` of lockattr brings TLS, and \
             `ssl-mode=disabled` in the URL does without"
        ),
        sqlx::Error::Protocol(_) => "what it answers is not MySQL's protocol".to_owned(),
        // Of a configuration, the text may repeat what was given.
        _ => "the connection's settings cannot be used".to_owned(),
    }
}
