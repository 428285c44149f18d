//! What goes to the scripts and what comes back, as their headers say.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisWrite as _, Value};

use crate::lease::{AcquiredMany, FencingToken, Holder, Lease, Record, RecordState, Released, Renewed};
use crate::store::StoreError;

/// How long a record stays after its release, when `collect` does not remove it before.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Appends the retention in milliseconds, and the channel.
pub(super) fn put_ending(command: &mut Cmd, channel: &str) {
    command.arg(RETENTION.as_secs() * 1000).arg(channel);
}

pub(super) fn put_owner(command: &mut Cmd, lease: &Lease) {
    let mut text = [0; 32];
    command.arg(&*lease.owner.as_uuid().simple().encode_lower(&mut text));
}

/// Appends what one lease asks for.
pub(super) fn put_lease(command: &mut Cmd, lease: &Lease) {
    put_owner(command, lease);
    command.arg(micros(lease.ttl));
    put_holder(command, &lease.holder);
    let (delay, tokens) = (micros_up(lease.lock_delay), lease.tokens.max(1));
    let floor = lease.token_floor.unwrap_or_default();
    let window = lease.once_per.map_or(0, |window| micros(window).max(1));
    if (delay, tokens, floor, window) == (0, 1, 0, 0) {
        command.arg("");
    } else {
        command.write_arg_fmt(format_args!("{delay} {tokens} {floor} {window}"));
    }
}

pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// What keeps others out must not lose a part of it.
pub(super) fn micros_up(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Host, process and label, each on a line of its own, the last one as it is.
fn put_holder(command: &mut Cmd, holder: &Holder) {
    let Holder { host, pid, label } = holder;
    if host.contains('\n') {
        command.write_arg_fmt(format_args!("{}\n{pid}\n{label}", host.replace('\n', " ")));
    } else {
        command.write_arg_fmt(format_args!("{host}\n{pid}\n{label}"));
    }
}

fn read(text: &str) -> Arc<Holder> {
    let mut lines = text.splitn(3, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (host, pid, label) = (next(), next(), next());
    Arc::new(Holder::new(host, pid.parse().unwrap_or_default(), label))
}

pub(super) fn acquired(answer: &Value, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
    if let (Value::Int(token), [lease]) = (answer, leases) {
        let tokens = vec![FencingToken::new(positive(*token)?)];
        return Ok(AcquiredMany::Granted { tokens, remaining: Duration::from_micros(micros(lease.ttl)) });
    }
    let items = array(answer)?;
    let index = |items: &[Value]| Ok::<_, StoreError>(size(number(items, 1)?)?.saturating_sub(1));
    match first(items)? {
        1 => {
            let tokens: Result<_, StoreError> =
                (2..items.len()).map(|at| number(items, at).map(FencingToken::new)).collect();
            Ok(AcquiredMany::Granted { tokens: tokens?, remaining: span(items, 1)? })
        }
        0 => {
            let holder = Some(text(items, 3)?).filter(|text| !text.is_empty());
            Ok(AcquiredMany::Taken {
                index: index(items)?,
                remaining: span(items, 2)?,
                holder: holder.as_deref().map(read),
            })
        }
        -1 => Ok(AcquiredMany::Spent { index: index(items)? }),
        -2 => Err(StoreError::refused(
            "its key in Redis has something else than a lock; give the locker a prefix of its own",
        )),
        -3 => Err(StoreError::refused("the fencing token would pass 2^53, up to which doubles are exact")),
        _ => Err(unexpected()),
    }
}

pub(super) fn renewed(answer: &Value) -> Result<Renewed, StoreError> {
    match answer {
        Value::Int(-1) => Ok(Renewed::Lost),
        Value::Int(left) => Ok(Renewed::Renewed { remaining: Duration::from_micros(positive(*left)?) }),
        _ => Err(unexpected()),
    }
}

pub(super) fn released_all(answer: &Value) -> Result<Vec<Released>, StoreError> {
    array(answer)?.iter().map(released).collect()
}

pub(super) fn released(code: &Value) -> Result<Released, StoreError> {
    match code {
        Value::Int(1) => Ok(Released::Released),
        Value::Int(2) => Ok(Released::AlreadyReleased),
        Value::Int(0) => Ok(Released::NotHeld),
        _ => Err(unexpected()),
    }
}

/// The records among `keys`.
pub(super) fn looked(keys: &[Arc<str>], answer: &Value) -> Result<Vec<Record>, StoreError> {
    let answers = array(answer)?;
    if answers.len() != keys.len() {
        return Err(unexpected());
    }
    let mut records = Vec::new();
    for (key, answer) in keys.iter().zip(answers) {
        if *answer == Value::Nil {
            continue;
        }
        let items = array(answer)?;
        let (token, remaining) = (FencingToken::new(number(items, 0)?), span(items, 1)?);
        let holder = text(items, 3)?;
        let state = if remaining.is_zero() {
            RecordState::Free
        } else if holder.is_empty() {
            RecordState::Kept { remaining }
        } else {
            RecordState::Held { remaining, age: span(items, 2)?, holder: read(&holder) }
        };
        records.push(Record::new(Arc::clone(key), token, state));
    }
    Ok(records)
}

pub(super) fn count(answer: &Value) -> Result<usize, StoreError> {
    match answer {
        Value::Int(count) => size(positive(*count)?),
        _ => Err(unexpected()),
    }
}

/// The cursor and the keys of a `SCAN`; what is not UTF-8 is none of ours.
pub(super) fn scanned(answer: &Value) -> Result<(Vec<u8>, Vec<Arc<str>>), StoreError> {
    let [Value::BulkString(cursor), Value::Array(keys)] = array(answer)? else { return Err(unexpected()) };
    let keys = keys
        .iter()
        .filter_map(|key| match key {
            Value::BulkString(bytes) => std::str::from_utf8(bytes).ok().map(Arc::from),
            _ => None,
        })
        .collect();
    Ok((cursor.clone(), keys))
}

/// The answer was read and makes no sense, so it is not known what was done.
pub(super) fn unexpected() -> StoreError {
    StoreError::unknown("the server's answer is not one of this script; is there a proxy that changes it?")
}

fn array(value: &Value) -> Result<&[Value], StoreError> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(unexpected()),
    }
}

fn first(items: &[Value]) -> Result<i64, StoreError> {
    match items.first() {
        Some(Value::Int(number)) => Ok(*number),
        _ => Err(unexpected()),
    }
}

fn number(items: &[Value], at: usize) -> Result<u64, StoreError> {
    match items.get(at) {
        Some(Value::Int(number)) => positive(*number),
        _ => Err(unexpected()),
    }
}

fn positive(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| unexpected())
}

fn size(number: u64) -> Result<usize, StoreError> {
    usize::try_from(number).map_err(|_| unexpected())
}

fn span(items: &[Value], at: usize) -> Result<Duration, StoreError> {
    number(items, at).map(Duration::from_micros)
}

fn text(items: &[Value], at: usize) -> Result<String, StoreError> {
    match items.get(at) {
        Some(Value::BulkString(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => Err(unexpected()),
    }
}
