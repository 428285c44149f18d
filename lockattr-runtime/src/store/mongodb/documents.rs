//! Documents, read back into entries.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Bson, Document};
use uuid::Uuid;

use crate::lease::{Holder, Owner};
use crate::store::StoreError;
use crate::store::clock::Reading;
use crate::store::entry::Entry;
use crate::time::Moment;

/// A document as it was when a step ended.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) entry: Entry,
    /// Of the step that read it or, where that is not told, of the last one that changed it.
    pub(super) at: Reading,
}

impl Found {
    /// Reads a document that was found under `key`.
    pub(super) fn read(key: &str, document: &Document) -> Result<Self, StoreError> {
        match document.get("_id") {
            Some(Bson::String(found)) if found == key => {}
            _ => {
                return Err(StoreError::refused(
                    "the MongoDB collection has a collation, under which different keys are one; give the store a \
                     collection of its own, without a collation",
                ));
            }
        }
        found(document).ok_or_else(|| {
            StoreError::refused(
                "its document in MongoDB has something else than a lock; give the store a collection of its own",
            )
        })
    }

    /// What is left for the owner of a lease that this step has looked at. The server's clock is cut to whole
    /// milliseconds, so that up to one of them has passed.
    pub(super) fn left(&self) -> Option<Duration> {
        let left = self.at.now.until(self.entry.expires?).min(self.entry.ttl);
        (!left.is_zero()).then(|| left.saturating_sub(Duration::from_millis(1)))
    }
}

fn found(document: &Document) -> Option<Found> {
    let changed = time(document.get("changed_at")?)??;
    let now = match document.get("now") {
        Some(now) => time(now)??.max(changed),
        None => changed,
    };
    let granted = time(document.get("granted_at")?)??;
    let holder = document.get_document("holder").ok()?;
    let text = |name| holder.get_str(name).ok().map(str::to_owned);
    let entry = Entry {
        owner: owner(document.get("owner")?)?,
        last_owner: owner(document.get("last_owner")?)?,
        token: number(document.get("token")?)?,
        expires: time(document.get("expires_at")?)?.map(moment),
        ttl: Duration::from_millis(number(document.get("ttl")?)?),
        granted: moment(granted),
        granted_wall: granted,
        window_end: time(document.get("window_end")?)?.unwrap_or_default(),
        idle_since: changed,
        holder: Arc::new(Holder::new(
            text("host")?,
            u32::try_from(number(holder.get("pid")?)?).ok()?,
            text("label")?,
        )),
    };
    Some(Found { entry, at: Reading { now: moment(now), wall: now } })
}

/// Since 1970; `None` inside for null.
#[allow(clippy::option_option, reason = "a wrong type is not a missing time")]
fn time(value: &Bson) -> Option<Option<Duration>> {
    match value {
        Bson::DateTime(date) => {
            Some(Some(Duration::from_millis(u64::try_from(date.timestamp_millis()).ok()?)))
        }
        Bson::Null => Some(None),
        _ => None,
    }
}

#[allow(clippy::option_option, reason = "a wrong type is not a missing owner")]
fn owner(value: &Bson) -> Option<Option<Owner>> {
    match value {
        Bson::Binary(binary) => Some(Some(Owner::from_uuid(Uuid::from_slice(&binary.bytes).ok()?))),
        Bson::Null => Some(None),
        _ => None,
    }
}

fn number(value: &Bson) -> Option<u64> {
    match value {
        Bson::Int64(number) => u64::try_from(*number).ok(),
        Bson::Int32(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn moment(since: Duration) -> Moment {
    Moment::default() + since
}
