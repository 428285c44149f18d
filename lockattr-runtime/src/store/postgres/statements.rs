//! The statements, as text.
//!
//! Each is one transaction of its own. It first sets, for itself alone, the isolation under which a statement
//! that waited for a row goes on with the row's newest version, and how long it waits for one: who pins a
//! record in a long transaction shall not use up the connections. All times are `clock_timestamp()`: `now()`
//! is the start of the transaction, which may be long ago.

use std::fmt::Write as _;
use std::time::Duration;

use crate::lease::{FencingToken, Lease, Owner};
use crate::store::entry::LARGEST_TOKEN;
use crate::store::sql::{Table, hexadecimal, micros};

const ALONE: &str = "set transaction isolation level read committed; set local lock_timeout = 2000; ";
const CLOCK: &str = "clock_timestamp()";

/// The columns of a record `l`, as `Row` reads them.
const COLUMNS: &str = "\
encode(convert_to(l.lock_key, 'UTF8'), 'hex') as lock_key, encode(uuid_send(l.owner), 'hex') as owner, \
encode(uuid_send(l.last_owner), 'hex') as last_owner, l.token, \
(extract(epoch from l.expires_at) * 1000000)::bigint as expires_us, l.ttl_us, \
(extract(epoch from l.granted_at) * 1000000)::bigint as granted_us, \
(extract(epoch from l.window_until) * 1000000)::bigint as window_us, \
(extract(epoch from l.idle_since) * 1000000)::bigint as idle_us, \
encode(convert_to(l.host, 'UTF8'), 'hex') as host, l.pid, encode(convert_to(l.label, 'UTF8'), 'hex') as label, \
(extract(epoch from clock_timestamp()) * 1000000)::bigint as at_us";

/// What makes the table. It is also what a person is told to run.
pub(super) fn ddl(table: &Table) -> String {
    let table = table.quoted();
    format!(
        "create table if not exists {table} (\n  \
           lock_key text collate \"C\" primary key check (octet_length(lock_key) between 1 and 512),\n  \
           owner uuid,\n  \
           last_owner uuid,\n  \
           token bigint not null,\n  \
           ttl_us bigint not null,\n  \
           expires_at timestamptz,\n  \
           granted_at timestamptz not null,\n  \
           window_until timestamptz,\n  \
           idle_since timestamptz not null,\n  \
           host text not null,\n  \
           pid bigint not null,\n  \
           label text not null\n\
         ) with (fillfactor = 50)"
    )
}

/// Fails where the table is missing, of another shape, or may not be read.
pub(super) fn check(table: &Table) -> String {
    format!("select {COLUMNS}, pg_is_in_recovery() as is_standby from {} l limit 0", table.quoted())
}

pub(super) fn server() -> &'static str {
    "select pg_is_in_recovery() as is_standby, current_setting('server_version_num')::bigint as version"
}

fn text(words: &str) -> String {
    format!("convert_from(decode('{}', 'hex'), 'UTF8')", hexadecimal(words.as_bytes()))
}

fn uuid(owner: Owner) -> String {
    format!("'{}'::uuid", owner.as_uuid())
}

fn after(micros: i64) -> String {
    format!("{CLOCK} + {micros} * interval '1 microsecond'")
}

fn now_us() -> &'static str {
    "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
}

/// Whether two leases are asked for in the same way, so that one statement serves both.
pub(super) fn are_alike(one: &Lease, other: &Lease) -> bool {
    (one.owner, one.lock_delay, one.tokens, one.token_floor, one.once_per)
        == (other.owner, other.lock_delay, other.tokens, other.token_floor, other.once_per)
}

/// Grants all of `leases` or none.
///
/// It reads first: where a record is not free, it writes nothing. A row for each lease says what was read, and,
/// in `granted` and `left_us`, what was granted. Nothing granted although all was free means that others were
/// faster; for some of several keys alone that is the error 22P02, which takes the others back.
pub(super) fn acquire(table: &Table, leases: &[Lease]) -> String {
    let Some(first) = leases.first() else { return String::new() };
    let table = table.quoted();
    let tokens = i64::from(first.tokens.max(1));
    let floor = first.token_floor.unwrap_or_default().max(1);
    let mut asked = String::new();
    for (n, lease) in leases.iter().enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(
            asked,
            "{comma}({n}, {}, {}, {}::bigint, {}, {}::bigint, {})",
            text(&lease.key),
            uuid(lease.owner),
            micros(lease.ttl),
            text(&lease.holder.host),
            lease.holder.pid,
            text(&lease.holder.label),
        );
    }
    let delay = micros(first.lock_delay);
    let free = |l: &str, a: &str| {
        let mut free = format!(
            "{l}.owner is distinct from {a}.owner and {l}.last_owner is distinct from {a}.owner \
             and ({l}.expires_at is null or {l}.expires_at + case when {l}.owner is null then 0 else {delay} end \
             * interval '1 microsecond' <= {CLOCK}) and {l}.token <= {}",
            LARGEST_TOKEN.saturating_sub(first.tokens.max(1).into()),
        );
        if let Some(window) = first.once_per {
            let window = micros(window).max(1);
            let _ = write!(
                free,
                " and (extract(epoch from {l}.granted_at) * 1000000)::bigint / {window} <> {} / {window}",
                now_us()
            );
        }
        free
    };
    let window_until = first.once_per.map_or("null::timestamptz".to_owned(), |window| {
        let window = micros(window).max(1);
        format!("to_timestamp((({now} / {window} + 1) * {window}) / 1000000.0)", now = now_us())
    });
    // Of several, one that was lost to others between reading and writing takes the rest back.
    let whole = if leases.len() > 1 {
        "where (case when (select count(*) from granted) in (0, (select count(*) from asked)) then '1' \
         else 'lockattr: others were faster with one of several keys, so it tries again' end)::int = 1"
    } else {
        ""
    };
    format!(
        "{ALONE}with asked (n, lock_key, owner, ttl_us, host, pid, label) as (values {asked}), \
         seen as materialized (select a.n, {COLUMNS}, {is_free} as is_free \
           from asked a join {table} l on l.lock_key = a.lock_key), \
         granted as (insert into {table} as l (lock_key, owner, token, ttl_us, expires_at, granted_at, window_until, \
             idle_since, host, pid, label) \
           select a.lock_key, a.owner, greatest({now}, {floor}) + {more}, a.ttl_us, \
             {CLOCK} + a.ttl_us * interval '1 microsecond', {CLOCK}, {window_until}, \
             {CLOCK} + a.ttl_us * interval '1 microsecond', a.host, a.pid, a.label \
           from asked a where not exists (select from seen where not is_free) order by a.lock_key \
           on conflict (lock_key) do update set \
             owner = excluded.owner, last_owner = coalesce(l.owner, l.last_owner), \
             token = greatest(l.token + 1, {now}, {floor}) + {more}, ttl_us = excluded.ttl_us, \
             expires_at = {CLOCK} + excluded.ttl_us * interval '1 microsecond', granted_at = {CLOCK}, \
             window_until = greatest(l.window_until, {window_until}), \
             idle_since = {CLOCK} + excluded.ttl_us * interval '1 microsecond', \
             host = excluded.host, pid = excluded.pid, label = excluded.label \
           where {is_still_free} \
           returning l.lock_key, l.token, (extract(epoch from l.expires_at - {CLOCK}) * 1000000)::bigint as left_us) \
         select g.token as granted, g.left_us, a.n::bigint as asked, s.* \
         from asked a left join granted g on g.lock_key = a.lock_key left join seen s on s.n = a.n {whole} \
         order by a.n",
        is_free = free("l", "a"),
        is_still_free = free("l", "excluded"),
        now = now_us(),
        more = tokens - 1,
    )
}

/// Makes a backward step of the server's clock harmless for good.
pub(super) fn settle(table: &Table, key: &str) -> String {
    format!(
        "{ALONE}update {} set expires_at = {CLOCK} + ttl_us * interval '1 microsecond' \
         where lock_key = {} and expires_at > {CLOCK} + ttl_us * interval '1 microsecond'",
        table.quoted(),
        text(key)
    )
}

pub(super) fn renew(table: &Table, lease: &Lease) -> String {
    let moved = after(micros(lease.ttl));
    let settled = format!("least(expires_at, {CLOCK} + ttl_us * interval '1 microsecond')");
    let token = lease.token_floor.map_or(String::new(), |floor| {
        let last = floor.saturating_add(u64::from(lease.tokens.max(1)) - 1).min(LARGEST_TOKEN);
        format!(", token = greatest(token, {last})")
    });
    format!(
        "{ALONE}update {table} set \
         ttl_us = case when {moved} >= {settled} then {ttl} else ttl_us end, \
         expires_at = greatest({settled}, {moved}), idle_since = greatest({settled}, {moved}){token} \
         where lock_key = {key} and owner = {owner} and expires_at > {CLOCK} \
         returning (extract(epoch from expires_at - {CLOCK}) * 1000000)::bigint as left_us",
        table = table.quoted(),
        ttl = micros(lease.ttl),
        key = text(&lease.key),
        owner = uuid(lease.owner),
    )
}

/// A row for each lease: whether it was freed, and whether it had been before.
pub(super) fn release(table: &Table, leases: &[Lease], keep: Option<Duration>) -> String {
    let keep = micros(keep.unwrap_or_default());
    let kept = format!("least(l.granted_at, {CLOCK}) + {keep} * interval '1 microsecond'");
    let is_kept = format!("{keep} > 0 and l.expires_at > {CLOCK} and {kept} > {CLOCK}");
    let mut asked = String::new();
    for (n, lease) in leases.iter().enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(asked, "{comma}({n}, {}, {})", text(&lease.key), uuid(lease.owner));
    }
    format!(
        "{ALONE}with asked (n, lock_key, owner) as (values {asked}), \
         freed as (update {table} l set owner = null, last_owner = l.owner, \
           ttl_us = case when {is_kept} then (extract(epoch from {kept} - {CLOCK}) * 1000000)::bigint else l.ttl_us end, \
           expires_at = case when {is_kept} then {kept} end, \
           idle_since = case when {is_kept} then {kept} else {CLOCK} end \
           from asked a where l.lock_key = a.lock_key and l.owner = a.owner returning a.n) \
         select f.n is not null as is_freed, coalesce(l.last_owner = a.owner, false) as was_freed \
         from asked a left join freed f on f.n = a.n left join {table} l on l.lock_key = a.lock_key order by a.n",
        table = table.quoted(),
    )
}

pub(super) fn force(table: &Table, key: &str, token: FencingToken) -> String {
    format!(
        "{ALONE}update {} set token = token + 1, last_owner = coalesce(owner, last_owner), owner = null, \
         expires_at = null, idle_since = {CLOCK} \
         where lock_key = {} and token = {} and expires_at is not null returning token",
        table.quoted(),
        text(key),
        i64::try_from(token.get()).unwrap_or(i64::MAX)
    )
}

pub(super) fn look(table: &Table, key: &str) -> String {
    format!("select {COLUMNS} from {} l where l.lock_key = {}", table.quoted(), text(key))
}

pub(super) fn page(table: &Table, prefix: &str, after: Option<&str>, limit: usize) -> String {
    let after = after.map_or(String::new(), |after| format!(" and l.lock_key > {}", text(after)));
    format!(
        "select {COLUMNS} from {} l where l.lock_key >= {prefix} and starts_with(l.lock_key, {prefix}){after} \
         and l.expires_at > {CLOCK} order by l.lock_key limit {limit}",
        table.quoted(),
        prefix = text(prefix),
    )
}

pub(super) fn collect(table: &Table, retention: Duration, limit: usize) -> String {
    let table = table.quoted();
    format!(
        "{ALONE}delete from {table} where lock_key in (select l.lock_key from {table} l \
         where l.idle_since <= {CLOCK} - {} * interval '1 microsecond' \
         and (l.expires_at is null or l.expires_at <= {CLOCK}) \
         and (l.window_until is null or l.window_until <= {CLOCK}) \
         limit {limit} for update skip locked) returning 1 as removed",
        micros(retention)
    )
}

pub(super) fn audit(table: &Table) -> String {
    format!(
        "select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit, \
         current_setting('full_page_writes') as full_page_writes, \
         current_setting('synchronous_standby_names') as standbys, \
         current_setting('default_transaction_isolation') as isolation, \
         (select count(*) from pg_stat_replication) as replicas, \
         (select relpersistence::text from pg_class where oid = '{}'::regclass) as persistence",
        table.quoted()
    )
}
