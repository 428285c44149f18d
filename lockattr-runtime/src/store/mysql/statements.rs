//! The statements, as text. Those of a message are carried out one after the other, each a transaction of its own.
//!
//! Assignments of an `update` are carried out from left to right, and see what earlier ones have set (MySQL's
//! manual, "UPDATE Statement"): `owner` and `expires_at` come last. All times are `utc_timestamp(6)`, the start of
//! the statement: a session's time zone does not reach it.

use std::time::Duration;

use crate::lease::{FencingToken, Lease, Owner};
use crate::store::entry::LARGEST_TOKEN;
use crate::store::sql::{Table, hexadecimal, micros};

const CLOCK: &str = "utc_timestamp(6)";

/// The columns of a record, as `Row` reads them.
fn columns() -> String {
    format!(
        "hex(lock_key) as lock_key, hex(owner) as owner, hex(last_owner) as last_owner, token, \
         {} as expires_us, ttl_us, {} as granted_us, {} as window_us, {} as idle_us, \
         hex(host) as host, pid, hex(label) as label, {} as at_us",
        since_1970("expires_at"),
        since_1970("granted_at"),
        since_1970("window_until"),
        since_1970("idle_since"),
        since_1970(CLOCK),
    )
}

/// What makes the table. It is also what a person is told to run.
pub(super) fn ddl(table: &Table) -> String {
    let table = table.quoted();
    format!(
        "create table if not exists {table} (\n  \
           lock_key varbinary(512) not null primary key,\n  \
           owner binary(16),\n  \
           last_owner binary(16),\n  \
           token bigint not null,\n  \
           ttl_us bigint not null,\n  \
           expires_at datetime(6),\n  \
           granted_at datetime(6) not null,\n  \
           window_until datetime(6),\n  \
           idle_since datetime(6) not null,\n  \
           host mediumblob not null,\n  \
           pid bigint not null,\n  \
           label mediumblob not null\n\
         ) engine = InnoDB"
    )
}

/// Fails where the table is missing, of another shape, or may not be read.
pub(super) fn check(table: &Table) -> String {
    format!("select {} from {} limit 0", columns(), table.quoted())
}

/// The table's engine, and whether the server takes writes.
pub(super) fn server(table: &Table) -> String {
    let (schema, name) = table.plain().rsplit_once('.').unwrap_or(("", table.plain()));
    let schema = if schema.is_empty() { "database()".to_owned() } else { format!("'{schema}'") };
    format!(
        "select cast(@@global.read_only as signed) as is_read_only, (select cast(engine as char) from \
         information_schema.tables where table_schema = {schema} and table_name = '{name}') as engine"
    )
}

fn bytes(words: &str) -> String {
    // An empty one has no digits, which the dialect does not take after an `x`.
    if words.is_empty() { "''".to_owned() } else { format!("x'{}'", hexadecimal(words.as_bytes())) }
}

fn uuid(owner: Owner) -> String {
    format!("x'{}'", hexadecimal(owner.as_uuid().as_bytes()))
}

fn since_1970(time: &str) -> String {
    format!("timestampdiff(microsecond, '1970-01-01', {time})")
}

fn after(micros: i64) -> String {
    format!("{CLOCK} + interval {micros} microsecond")
}

/// Reads the record, and grants it if it is free. The last row says in `granted` the last token that was given out,
/// or zero; the record, as it was before, stands in a row before that, if it was there.
///
/// With `make`, a record that is missing is made first, free.
pub(super) fn acquire(table: &Table, lease: &Lease, make: bool) -> String {
    let key = bytes(&lease.key);
    let tokens = i64::from(lease.tokens.max(1));
    let owner = uuid(lease.owner);
    let floor = lease.token_floor.unwrap_or_default().max(1);
    let window = lease.once_per.map(|window| micros(window).max(1));
    let now = since_1970(CLOCK);
    let is_other_window = window.map_or(String::new(), |window| {
        format!(" and {} div {window} <> {now} div {window}", since_1970("granted_at"))
    });
    let window_until = window.map_or(String::new(), |window| {
        let end = format!("'1970-01-01' + interval ({now} div {window} + 1) * {window} microsecond");
        format!("window_until = greatest(coalesce(window_until, {end}), {end}), ")
    });
    let table = table.quoted();
    let make = if make {
        format!(
            "insert into {table} (lock_key, token, ttl_us, granted_at, idle_since, host, pid, label) \
             values ({key}, 0, 0, '1970-01-01', {CLOCK}, '', 0, '') on duplicate key update lock_key = lock_key; "
        )
    } else {
        String::new()
    };
    format!(
        "{make}do last_insert_id(0); select {columns} from {table} where lock_key = {key}; \
         update {table} set last_owner = coalesce(owner, last_owner), \
         token = last_insert_id(greatest(token + 1, {now}, {floor}) + {more}), \
         ttl_us = {ttl}, {window_until}granted_at = {CLOCK}, idle_since = {moved}, host = {host}, pid = {pid}, \
         label = {label}, expires_at = {moved}, owner = {owner} \
         where lock_key = {key} and not (owner <=> {owner}) and not (last_owner <=> {owner}) \
         and (expires_at is null or expires_at + interval if(owner is null, 0, {delay}) microsecond <= {CLOCK}) \
         and token <= {most}{is_other_window}; \
         select cast(last_insert_id() as signed) as granted",
        columns = columns(),
        more = tokens - 1,
        ttl = micros(lease.ttl),
        moved = after(micros(lease.ttl)),
        host = bytes(&lease.holder.host),
        pid = lease.holder.pid,
        label = bytes(&lease.holder.label),
        delay = micros(lease.lock_delay),
        most = LARGEST_TOKEN.saturating_sub(lease.tokens.max(1).into()),
    )
}

/// Makes a backward step of the server's clock harmless for good.
pub(super) fn settle(table: &Table, key: &str) -> String {
    let ahead = format!("{CLOCK} + interval ttl_us microsecond");
    format!(
        "update {} set expires_at = {ahead} where lock_key = {} and expires_at > {ahead}",
        table.quoted(),
        bytes(key)
    )
}

/// A row with the time that is left, if it was renewed.
pub(super) fn renew(table: &Table, lease: &Lease) -> String {
    let (key, owner, ttl) = (bytes(&lease.key), uuid(lease.owner), micros(lease.ttl));
    let moved = after(ttl);
    let settled = format!("least(expires_at, {CLOCK} + interval ttl_us microsecond)");
    // The token takes part even if it stays: what it says here tells that the row was found.
    let last = lease.token_floor.map_or(0, |floor| {
        floor.saturating_add(u64::from(lease.tokens.max(1)) - 1).min(LARGEST_TOKEN)
    });
    format!(
        "do last_insert_id(0); \
         update {table} set token = last_insert_id(greatest(token, {last})), \
         idle_since = greatest({settled}, {moved}), expires_at = greatest({settled}, {moved}), \
         ttl_us = if(expires_at <= {moved}, {ttl}, ttl_us) \
         where lock_key = {key} and owner = {owner} and expires_at > {CLOCK}; \
         select timestampdiff(microsecond, {CLOCK}, expires_at) as left_us from {table} \
         where lock_key = {key} and owner = {owner} and last_insert_id() <> 0",
        table = table.quoted(),
    )
}

/// One row: whether it was freed, and whether it had been before.
pub(super) fn release(table: &Table, lease: &Lease, keep: Option<Duration>) -> String {
    let (key, owner, keep) = (bytes(&lease.key), uuid(lease.owner), micros(keep.unwrap_or_default()));
    let kept = format!("least(granted_at, {CLOCK}) + interval {keep} microsecond");
    let is_kept = format!("{keep} > 0 and expires_at > {CLOCK} and {kept} > {CLOCK}");
    format!(
        "update {table} set last_owner = owner, \
         ttl_us = if({is_kept}, timestampdiff(microsecond, {CLOCK}, {kept}), ttl_us), \
         idle_since = if({is_kept}, {kept}, {CLOCK}), expires_at = if({is_kept}, {kept}, null), owner = null \
         where lock_key = {key} and owner = {owner}; \
         select cast(row_count() as signed) as freed, (select cast(last_owner <=> {owner} as signed) from {table} \
         where lock_key = {key}) as was_freed",
        table = table.quoted(),
    )
}

pub(super) fn force(table: &Table, key: &str, token: FencingToken) -> String {
    format!(
        "update {} set token = token + 1, last_owner = coalesce(owner, last_owner), idle_since = {CLOCK}, \
         expires_at = null, owner = null where lock_key = {} and token = {} and expires_at is not null; \
         select cast(row_count() as signed) as forced",
        table.quoted(),
        bytes(key),
        token.get()
    )
}

pub(super) fn look(table: &Table, key: &str) -> String {
    format!("select {} from {} where lock_key = {}", columns(), table.quoted(), bytes(key))
}

pub(super) fn page(table: &Table, prefix: &str, after: Option<&str>, limit: usize) -> String {
    let after = after.map_or(String::new(), |after| format!(" and lock_key > {}", bytes(after)));
    // No UTF-8 text has this byte, so the range holds what begins with the prefix and nothing else.
    let end = hexadecimal(&[prefix.as_bytes(), &[0xFF]].concat());
    format!(
        "select {} from {} where lock_key >= {} and lock_key < x'{end}'{after} and expires_at > {CLOCK} \
         order by lock_key limit {limit}",
        columns(),
        table.quoted(),
        bytes(prefix),
    )
}

fn is_idle(retention: Duration) -> String {
    format!(
        "idle_since <= {CLOCK} - interval {} microsecond and (expires_at is null or expires_at <= {CLOCK}) \
         and (window_until is null or window_until <= {CLOCK})",
        micros(retention)
    )
}

/// The keys of records that may be removed. A `delete` that looks for them itself would lock every row it sees.
pub(super) fn idle(table: &Table, retention: Duration, limit: usize) -> String {
    format!("select hex(lock_key) as lock_key from {} where {} limit {limit}", table.quoted(), is_idle(retention))
}

/// Removes those of `keys`, in hexadecimal digits, that may still be removed.
pub(super) fn collect(table: &Table, retention: Duration, keys: &[String]) -> String {
    let keys: Vec<_> = keys.iter().map(|key| format!("x'{key}'")).collect();
    format!(
        "delete from {} where lock_key in ({}) and {}; select cast(row_count() as signed) as removed",
        table.quoted(),
        keys.join(", "),
        is_idle(retention)
    )
}

pub(super) const AUDIT: &str = "\
select cast(@@global.innodb_flush_log_at_trx_commit as signed) as flush, cast(@@global.log_bin as signed) as log_bin, \
cast(@@global.sync_binlog as signed) as sync_binlog, cast(@@global.read_only as signed) as is_read_only, \
(select count(*) from information_schema.processlist where command like 'Binlog Dump%') as replicas";
