//! What went wrong, in words that say what to do, and whether anything can have been done.
//!
//! Invariant: no text has a password, an owner or a key. The server repeats whole requests in its messages, so
//! only its codes and their names are passed on.

use mongodb::error::{Error, ErrorKind, WriteFailure};

use crate::store::StoreError;

/// The actions on the collection that a user of the store needs.
pub(super) const RIGHTS: &str = "`find`, `insert`, `update` and `remove` on its collection";

const DUPLICATE_KEY: i32 = 11000;
const WRITE_CONFLICT: i32 = 112;
const UNAUTHORIZED: i32 = 13;
const AUTHENTICATION_FAILED: i32 = 18;
const NOT_WRITABLE: [i32; 3] = [10107, 13435, 10058];
/// Bad or failed values, unknown commands and options, views, and what cannot be converted: found before a write.
const NOTHING_DONE: [i32; 14] = [2, 9, 14, 17, 20, 26, 40, 59, 72, 73, 115, 166, 241, 40415];

/// Whether others were faster, and this request did nothing.
pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(code(error), Some((DUPLICATE_KEY | WRITE_CONFLICT, _)))
}

/// Whether no server could be asked.
pub(super) fn is_out_of_reach(error: &Error) -> bool {
    matches!(*error.kind, ErrorKind::ServerSelection { .. })
}

pub(super) fn of_request(error: &Error) -> StoreError {
    if let ErrorKind::Write(WriteFailure::WriteConcernError(concern)) = &*error.kind {
        return StoreError::unknown(format!(
            "the primary of MongoDB wrote it, but a majority of the replica set did not confirm it in time ({}); are \
             enough members up?",
            name(&concern.code_name, concern.code)
        ));
    }
    if let Some((code, code_name)) = code(error) {
        return of_server(code, code_name);
    }
    match &*error.kind {
        ErrorKind::Authentication { .. } => StoreError::refused(PASSWORD),
        ErrorKind::ServerSelection { message } => StoreError::refused(out_of_reach(message)),
        ErrorKind::ConnectionPoolCleared { .. } => StoreError::refused(
            "the connections to the MongoDB server broke before the request was sent; it is connected again",
        ),
        ErrorKind::DnsResolve { .. } => StoreError::refused("the name of the MongoDB server cannot be resolved"),
        ErrorKind::InvalidTlsConfig { .. } => {
            StoreError::refused("the TLS settings of the connection to MongoDB cannot be used; see its files")
        }
        ErrorKind::IncompatibleServer { .. } => {
            StoreError::refused("the MongoDB server is too old or too new for this driver")
        }
        ErrorKind::InvalidArgument { .. } => {
            StoreError::refused("the driver of MongoDB does not accept the settings of the client")
        }
        ErrorKind::Shutdown => {
            StoreError::refused("the client of MongoDB was shut down by the application; make a new store")
        }
        ErrorKind::Io(error) => StoreError::unknown(format!(
            "the connection to the MongoDB server broke before its answer came ({})",
            error.kind()
        )),
        _ => StoreError::unknown("the MongoDB server's answer cannot be read"),
    }
}

const PASSWORD: &str = "the MongoDB server does not accept the user name and password; the user may belong to another \
                        database, which the URL names with `authSource=`";

fn of_server(code: i32, code_name: &str) -> StoreError {
    if NOT_WRITABLE.contains(&code) {
        return StoreError::refused(
            "the MongoDB server is not the primary, or none is elected yet; name all members of the replica set, and \
             leave out `directConnection`",
        );
    }
    match code {
        UNAUTHORIZED => StoreError::refused(format!(
            "the MongoDB user has not all the rights it needs, or the URL names no user: {RIGHTS}"
        )),
        AUTHENTICATION_FAILED => StoreError::refused(PASSWORD),
        DUPLICATE_KEY | WRITE_CONFLICT => StoreError::refused(
            "others changed the same lock each time this request was tried; if that stays so, the MongoDB collection \
             has a collation or a unique index that a collection of the store must not have",
        ),
        _ if NOTHING_DONE.contains(&code) => StoreError::refused(format!(
            "the MongoDB server does not carry out what the store asks ({}); is it older than 4.4, or only like \
             MongoDB?",
            name(code_name, code)
        )),
        _ => StoreError::unknown(format!("the MongoDB server failed: {}", name(code_name, code))),
    }
}

fn out_of_reach(message: &str) -> String {
    let why = if message.contains("Connection refused") || message.contains("ConnectionRefused") {
        "nothing listens there: the connection was refused"
    } else if message.contains("failed to lookup address") || message.contains("Name or service") {
        "its name cannot be resolved"
    } else if message.contains("ReplicaSetNoPrimary") {
        "the replica set has no primary at the moment"
    } else {
        "none answers that can be written to"
    };
    format!("no MongoDB server can be used: {why}")
}

fn code(error: &Error) -> Option<(i32, &str)> {
    match &*error.kind {
        ErrorKind::Command(command) => Some((command.code, &command.code_name)),
        ErrorKind::Write(WriteFailure::WriteError(write)) => {
            Some((write.code, write.code_name.as_deref().unwrap_or_default()))
        }
        _ => None,
    }
}

/// What a server calls a code is a word; anything else is not passed on.
fn name(code_name: &str, code: i32) -> String {
    if !code_name.is_empty() && code_name.len() < 64 && code_name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return format!("{code_name}, code {code}");
    }
    format!("code {code}")
}

/// The failure of a request that only reads.
pub(super) fn of_read(error: &Error) -> StoreError {
    let failed = of_request(error);
    if failed.is_unknown() {
        let why = std::error::Error::source(&failed).map_or_else(String::new, ToString::to_string);
        return StoreError::refused(why);
    }
    failed
}
