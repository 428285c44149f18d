//! What went wrong, in words that say what to do, and whether anything can have been done.
//!
//! Invariant: no text has a password, an owner or a key: of what the driver and the server say, only what
//! cannot have one is passed on.

use std::error::Error;
use std::io::ErrorKind;
use std::sync::Arc;

use redis::{RedisError, ServerErrorKind};

use super::scripts::Script;
use crate::store::StoreError;

/// The least rights that a user of the store needs, for `ACL SETUSER`.
pub(super) const RIGHTS: &str = "~lockattr:* &lockattr:* +ping +hello +select +info +eval +evalsha +time +hmget \
     +hgetall +hset +hdel +persist +pexpire +scan +publish +subscribe";

/// Codes of answers that say that the request was not carried out.
const NOTHING_DONE: [&str; 20] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "DENIED",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOAUTH",
    "NOPERM",
    "NOREPLICAS",
    "NOSCRIPT",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
    "UNKILLABLE",
    "WRONGPASS",
    "WRONGTYPE",
];

pub(super) fn is_no_script(error: &RedisError) -> bool {
    error.kind() == redis::ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Whether the user has no right to one of the keys.
pub(super) fn is_no_key_of_ours(error: &RedisError) -> bool {
    error.code() == Some("NOPERM") && error.detail().is_some_and(|text| text.contains("key"))
}

/// Whether another server may have taken this one's place, so that the connection should be made anew.
pub(super) fn is_misplaced(error: &RedisError) -> bool {
    error.is_io_error() || matches!(error.code(), Some("READONLY" | "MASTERDOWN"))
}

/// The failure of a request that was sent.
pub(super) fn of_request(error: &RedisError, script: Option<&Script>) -> StoreError {
    let Some(code) = code(error) else {
        let why = if error.is_io_error() {
            "the connection to the Redis server broke before its answer came".to_owned()
        } else {
            format!("the Redis server's answer cannot be read: {}", error.category())
        };
        return StoreError::unknown(why);
    };
    let detail = detail(error);
    let command = script.and_then(|script| script.command(line(&detail)?));
    if is_denied(&code, &detail) {
        let what = match command {
            Some(command) => format!("no right to the command `{}`", command.to_lowercase()),
            None => without_script(&detail).to_owned(),
        };
        let text = format!("the Redis user has not all the rights it needs: {what}; the least is `{RIGHTS}`");
        // A grant's last command: what came before it was done.
        return match command {
            Some("PERSIST") => StoreError::unknown(text),
            _ => StoreError::refused(text),
        };
    }
    let text = match code.as_str() {
        "OOM" => "the Redis server's memory is full (`maxmemory`), so it takes no new lock; renewing and \
                  releasing still work"
            .to_owned(),
        "READONLY" => "the Redis server is a read-only replica; give the address of its primary".to_owned(),
        "LOADING" => "the Redis server is still loading its data".to_owned(),
        "MASTERDOWN" => "the Redis server is a replica that has lost its primary".to_owned(),
        "NOREPLICAS" => {
            "the Redis server has fewer good replicas than `min-replicas-to-write` asks for".to_owned()
        }
        "MISCONF" => "the Redis server takes no writes, since saving its data to disk fails".to_owned(),
        "BUSY" => "the Redis server is busy with a script that runs too long".to_owned(),
        "WRONGTYPE" => {
            "its key in Redis has something else than a lock; give the locker a prefix of its own".to_owned()
        }
        "MOVED" | "ASK" => {
            "the key belongs to another node of the Redis Cluster, and this store uses one node".to_owned()
        }
        "CROSSSLOT" => "the keys lie in different slots of the Redis Cluster".to_owned(),
        "NOAUTH" | "WRONGPASS" => PASSWORD.to_owned(),
        _ => format!("the Redis server says: {code} {}", without_script(&detail)),
    };
    if NOTHING_DONE.contains(&code.as_str()) { StoreError::refused(text) } else { StoreError::unknown(text) }
}

const PASSWORD: &str =
    "the Redis server does not accept the user name and password, or wants some and got none";

/// Why no connection could be made.
pub(super) fn of_connecting(error: &RedisError) -> String {
    if let Some(kind) = io_kind(error) {
        return match kind {
            ErrorKind::ConnectionRefused => "nothing listens there: the connection was refused".to_owned(),
            ErrorKind::NotFound => "there is no such socket".to_owned(),
            ErrorKind::PermissionDenied => "this process may not open the socket".to_owned(),
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                "it closed the connection at once; if it speaks TLS, use `rediss:`".to_owned()
            }
            ErrorKind::InvalidData => format!(
                "it does not speak TLS, or its certificate is not trusted ({error}); for a server without TLS use `redis:`"
            ),
            _ => error.to_string(),
        };
    }
    let text = error.to_string();
    if text.contains("refused to switch database") {
        return "it does not have the database of that number".to_owned();
    }
    match error.kind() {
        redis::ErrorKind::AuthenticationFailed => PASSWORD.to_owned(),
        redis::ErrorKind::RESP3NotSupported => "it does not speak RESP3; Redis 6 or later does".to_owned(),
        redis::ErrorKind::Parse => {
            "what it answers is not the Redis protocol; if it speaks TLS, use `rediss:`".to_owned()
        }
        redis::ErrorKind::Server(_) | redis::ErrorKind::Extension => {
            let error = of_request(error, None);
            error.source().map_or_else(String::new, ToString::to_string)
        }
        _ => text,
    }
}

/// The driver shares what it wraps.
fn io_kind(error: &RedisError) -> Option<ErrorKind> {
    let shared = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    shared.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
}

/// The code of a server's error. Redis 6 hides the code of a failed script in the text of a general one.
fn code(error: &RedisError) -> Option<String> {
    let code = error.code()?;
    let inner = || {
        let text = error.detail()?;
        let (_, inner) = text.split_once("@user_script")?;
        let (_, inner) = inner.split_once(" -")?;
        Some(inner.split(' ').next()?.to_owned())
    };
    if code == "ERR" { Some(inner().unwrap_or_else(|| code.to_owned())) } else { Some(code.to_owned()) }
}

/// What the server says, without the arguments of the request that it may repeat.
fn detail(error: &RedisError) -> String {
    let text = error.detail().unwrap_or_default();
    text.split(", with args beginning with").next().unwrap_or_default().to_owned()
}

fn is_denied(code: &str, detail: &str) -> bool {
    code == "NOPERM"
        || detail.contains("can't run this command or subcommand")
        || detail.contains("no permissions to")
}

/// The line of the script that failed.
fn line(detail: &str) -> Option<usize> {
    let (_, after) = detail.rsplit_once("@user_script:")?;
    let digits = after.trim_start();
    digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().ok()
}

/// Without the script's hash and line at the end.
fn without_script(detail: &str) -> &str {
    detail.split(" script: ").next().unwrap_or_default().trim_end_matches([' ', '.'])
}

#[cfg(test)]
mod tests {
    use super::super::scripts::{ACQUIRE, RELEASE};
    use super::*;

    fn server(code: &str, detail: &str) -> RedisError {
        redis::make_extension_error(code.to_owned(), Some(detail.to_owned()))
    }

    fn text(error: &StoreError) -> String {
        error.source().map(ToString::to_string).unwrap_or_default()
    }

    fn place(script: &Script, command: &str) -> usize {
        (1..100).find(|line| script.command(*line) == Some(command)).unwrap_or_default()
    }

    #[test]
    fn a_missing_right_inside_a_script_is_named() {
        let line = place(&ACQUIRE, "HSET");
        // Redis 7.0, and 6.
        let now = format!(
            "The user executing the script can't run this command or subcommand script: 64, on @user_script:{line}."
        );
        let before = format!(
            "Error running script (call to f_64): @user_script:{line}: @user_script: {line}: -NOPERM this user has no permissions to run the 'hset' command or its subcommand "
        );
        for detail in [now, before] {
            let error = of_request(&server("ERR", &detail), Some(&ACQUIRE));
            assert!(!error.is_unknown() && text(&error).contains("`hset`"), "{}", text(&error));
        }
    }

    #[test]
    fn what_a_grant_lacks_at_its_end_may_have_been_done() {
        let line =
            (1..100).filter(|line| ACQUIRE.command(*line) == Some("PERSIST")).max().unwrap_or_default();
        let detail = format!(
            "The user executing the script can't run this command or subcommand script: 64, on @user_script:{line}."
        );
        assert!(of_request(&server("ERR", &detail), Some(&ACQUIRE)).is_unknown());
    }

    #[test]
    fn full_memory_is_refused_however_it_is_said() {
        let line = place(&RELEASE, "HSET");
        for error in [
            server(
                "OOM",
                "command not allowed when used memory > 'maxmemory'. script: 64, on @user_script:3.",
            ),
            server(
                "ERR",
                &format!(
                    "Error running script (call to f_64): @user_script:{line}: @user_script: {line}: -OOM command not allowed when used memory > 'maxmemory'. "
                ),
            ),
        ] {
            let error = of_request(&error, Some(&RELEASE));
            assert!(!error.is_unknown() && text(&error).contains("memory is full"), "{}", text(&error));
        }
    }

    #[test]
    fn arguments_are_not_repeated() {
        let error = server("ERR", "unknown command 'EVALSHA', with args beginning with: 'secret' 'owner' ");
        let error = of_request(&error, None);
        assert!(
            text(&error).contains("unknown command") && !text(&error).contains("secret"),
            "{}",
            text(&error)
        );
    }

    #[test]
    fn why_nothing_answers_is_found() {
        let said = |kind: ErrorKind| of_connecting(&RedisError::from(std::io::Error::from(kind)));
        assert!(said(ErrorKind::ConnectionRefused).contains("nothing listens"));
        assert!(said(ErrorKind::NotFound).contains("no such socket"));
        assert!(said(ErrorKind::UnexpectedEof).contains("`rediss:`"));
        assert!(said(ErrorKind::InvalidData).contains("not trusted"));
    }

    #[test]
    fn what_is_not_known_to_have_done_nothing_is_unknown() {
        assert!(of_request(&server("ERR", "something else"), None).is_unknown());
        assert!(of_request(&RedisError::from(std::io::Error::from(ErrorKind::TimedOut)), None).is_unknown());
    }
}
