//! What goes to the server: pipelines that move a document in one step, on the clock of that step.
//!
//! A document has all its fields always, `null` for what it has not. Its times are dates of the server's clock.
//!
//! Invariant: a document that is none of ours passes through every pipeline unchanged, and so does one of which a
//! request only asks; what comes from outside stands in a `$literal`.

use std::time::Duration;

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, bson, doc};

use crate::lease::{FencingToken, Lease, Owner};

/// How far a record may have been changed after a request's own time: `$$NOW` is read when a request arrives, and
/// it may stand in line for others until [`MAX_TIME`](super::MAX_TIME) stops it. More than that is a clock that went back.
const LATE: i64 = 15_000;
const LARGEST_TOKEN: i64 = (1 << 53) - 1;
const WHOLE: &str = "$$ROOT";

pub(super) fn acquire(lease: &Lease) -> Vec<Document> {
    let (me, ttl) = (literal(lease.owner), millis(lease.ttl));
    let delay = bson!({"$cond": [is_type("owner", &["binData"]), millis_up(lease.lock_delay), 0_i64]});
    let window = lease.once_per.map(|window| millis(window).max(1));
    let (mut used, mut window_end) = (Bson::Boolean(false), bson!({"$ifNull": ["$window_end", null]}));
    if let Some(window) = window {
        let start = |at: Bson| bson!({"$subtract": [at.clone(), {"$mod": [at, window]}]});
        let granted = time("granted_at");
        let end = bson!({"$add": [start("$$now".into()), window]});
        used = bson!({"$and": [{"$gt": [granted.clone(), 0_i64]}, {"$eq": [start(granted), start("$$now".into())]}]});
        window_end = date(bson!({"$max": [time("window_end"), end]}));
    }
    let floor = integer(lease.token_floor.unwrap_or_default());
    let block = i64::from(lease.tokens.max(1)) - 1;
    let token = bson!({"$add": [
        {"$max": [{"$add": [number("token"), 1_i64]}, {"$multiply": ["$$now", 1000_i64]}, floor, 1_i64]}, block,
    ]});
    let granted = bson!({
        "_id": "$_id",
        "owner": me.clone(),
        "last_owner": last_owner(),
        "token": token.clone(),
        "expires_at": date(bson!({"$add": ["$$now", ttl]})),
        "ttl": {"$literal": ttl},
        "granted_at": date("$$now".into()),
        "window_end": window_end,
        "changed_at": date("$$now".into()),
        "holder": {"$literal": {
            "host": &lease.holder.host, "pid": i64::from(lease.holder.pid), "label": &lease.holder.label,
        }},
    });
    let settled = bson!({"$cond": [
        {"$lt": ["$$end", "$$stored"]},
        changed(doc! {"expires_at": date("$$end".into())}),
        WHOLE,
    ]});
    step(bson!({"$switch": {"default": granted, "branches": [
        {"case": {"$not": [{"$or": [{"$eq": [WHOLE, {"_id": "$_id"}]}, is_ours()]}]}, "then": WHOLE},
        {"case": {"$eq": ["$owner", me.clone()]}, "then": changed(doc! {"expires_at": date("$$end".into())})},
        {"case": {"$eq": ["$last_owner", me]}, "then": WHOLE},
        {"case": {"$and": [{"$gt": ["$$stored", 0_i64]}, {"$gt": [{"$add": ["$$end", delay]}, "$$now"]}]}, "then": settled},
        {"case": used, "then": WHOLE},
        {"case": {"$gt": [token, LARGEST_TOKEN]}, "then": WHOLE},
    ]}}))
}

pub(super) fn renew(lease: &Lease) -> Vec<Document> {
    let mine = bson!({"$eq": ["$owner", literal(lease.owner)]});
    let moved = bson!({"$add": ["$$now", millis(lease.ttl)]});
    let mut fields = doc! {
        "expires_at": date(bson!({"$max": ["$$end", moved.clone()]})),
        // Only together with the expiry: a ttl below what is left would cut the lease.
        "ttl": {"$cond": [{"$gt": [moved, "$$end"]}, millis(lease.ttl), "$ttl"]},
    };
    if let Some(floor) = lease.token_floor {
        let last = integer(floor).saturating_add(i64::from(lease.tokens.max(1)) - 1).min(LARGEST_TOKEN);
        fields.insert("token", bson!({"$max": ["$token", last]}));
    }
    step(bson!({"$switch": {"default": WHOLE, "branches": [
        {"case": {"$not": [{"$and": [is_ours(), mine]}]}, "then": WHOLE},
        {"case": {"$gt": ["$$end", "$$now"]}, "then": changed(fields)},
        // Over, and its owner is told so by the time of the change.
        {"case": true, "then": changed(doc! {"expires_at": date("$$end".into())})},
    ]}}))
}

pub(super) fn release(owner: Owner, keep: Option<Duration>) -> Vec<Document> {
    let mine = bson!({"$eq": ["$owner", literal(owner)]});
    let keep = millis_up(keep.unwrap_or_default());
    let kept = bson!({"$min": [{"$subtract": [{"$add": [time("granted_at"), keep]}, "$$now"]}, keep]});
    let still = doc! {
        "owner": null, "last_owner": "$owner", "expires_at": date(bson!({"$add": ["$$now", kept.clone()]})), "ttl": kept.clone(),
    };
    step(bson!({"$switch": {"default": WHOLE, "branches": [
        {"case": {"$not": [{"$and": [is_ours(), mine]}]}, "then": WHOLE},
        {"case": {"$and": [{"$gt": ["$$end", "$$now"]}, {"$gt": [kept, 0_i64]}]}, "then": changed(still)},
        {"case": true, "then": changed(doc! {"owner": null, "last_owner": "$owner", "expires_at": null})},
    ]}}))
}

pub(super) fn force_release(token: FencingToken) -> Vec<Document> {
    let known = bson!({"$and": [is_ours(), {"$eq": ["$token", integer(token.get())]}, {"$gt": ["$$stored", 0_i64]}]});
    let freed =
        doc! {"owner": null, "last_owner": last_owner(), "expires_at": null, "token": {"$add": ["$token", 1_i64]}};
    step(bson!({"$cond": [known, changed(freed), WHOLE]}))
}

/// Appended to a document that is read: the server's time of the reading.
pub(super) fn with_now() -> Document {
    doc! {"$set": {"now": "$$NOW"}}
}

/// Matches what is not free.
pub(super) fn is_taken() -> Document {
    doc! {"$expr": {"$and": [is_ours(), {"$gt": ["$expires_at", "$$NOW"]}]}}
}

/// Matches what nobody holds and that was not used for so long.
pub(super) fn is_idle(retention: Duration) -> Document {
    let since = bson!({"$subtract": [{"$toLong": "$$NOW"}, millis_up(retention)]});
    doc! {"$expr": {"$and": [
        is_ours(),
        {"$lt": [{"$max": [time("changed_at"), time("expires_at")]}, since]},
        {"$lte": [time("window_end"), {"$toLong": "$$NOW"}]},
    ]}}
}

/// One step: `$$now`, the end of the lease as it is stored (0: none), and as it counts: a backward step of the
/// clock leaves at most one ttl.
fn step(body: Bson) -> Vec<Document> {
    let changed = bson!({"$and": [{"$gt": ["$$changed", "$$read"]}, {"$lte": ["$$changed", {"$add": ["$$read", LATE]}]}]});
    let now = bson!({"$let": {
        "vars": {"read": {"$toLong": "$$NOW"}, "changed": time("changed_at")},
        "in": {"$cond": [changed, "$$changed", "$$read"]},
    }});
    let inner = bson!({"$let": {
        "vars": {"end": {"$min": ["$$stored", {"$add": ["$$now", number("ttl")]}]}},
        "in": body,
    }});
    let outer = bson!({"$let": {"vars": {"now": now, "stored": time("expires_at")}, "in": inner}});
    vec![doc! {"$replaceWith": outer}]
}

/// The document with these fields, changed now.
fn changed(mut fields: Document) -> Bson {
    fields.insert("changed_at", date("$$now".into()));
    bson!({"$mergeObjects": [WHOLE, fields]})
}

fn is_ours() -> Bson {
    let (whole, time): (&[&str], &[&str]) = (&["long", "int"], &["date", "null"]);
    bson!({"$and": [
        is_type("token", whole),
        is_type("ttl", whole),
        is_type("granted_at", &["date"]),
        is_type("changed_at", &["date"]),
        is_type("expires_at", time),
        is_type("window_end", time),
        is_type("owner", &["binData", "null"]),
        is_type("last_owner", &["binData", "null"]),
    ]})
}

fn is_type(field: &str, types: &[&str]) -> Bson {
    bson!({"$in": [{"$type": format!("${field}")}, types.to_vec()]})
}

fn last_owner() -> Bson {
    bson!({"$cond": [is_type("owner", &["binData"]), "$owner", {"$ifNull": ["$last_owner", null]}]})
}

/// A date's milliseconds since 1970; zero when it is none.
fn time(field: &str) -> Bson {
    bson!({"$cond": [is_type(field, &["date"]), {"$toLong": format!("${field}")}, 0_i64]})
}

fn number(field: &str) -> Bson {
    bson!({"$cond": [is_type(field, &["long", "int"]), format!("${field}"), 0_i64]})
}

// `$add` of a date and a number would do, but not on every server that speaks the protocol.
fn date(millis: Bson) -> Bson {
    bson!({"$toDate": millis})
}

fn literal(owner: Owner) -> Bson {
    bson!({"$literal": binary(owner)})
}

pub(super) fn binary(owner: Owner) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: owner.as_uuid().as_bytes().to_vec() })
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX).min(LARGEST_TOKEN)
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

/// What keeps others out must not lose a part of it.
fn millis_up(span: Duration) -> i64 {
    i64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}
