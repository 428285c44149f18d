//! The MongoDB store: one document a key in a collection of its own.
//!
//! Invariant: a step on a key is one `findAndModify` by `_id` alone, whose pipeline decides on the server's clock;
//! what its answer means is read from the document that it leaves.

mod connection;
mod documents;
mod failure;
mod options;
mod pipelines;

use std::sync::Arc;
use std::time::Duration;

use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error;
use mongodb::options::ReturnDocument;

use self::connection::Connection;
use self::documents::Found;
pub use self::options::MongoDbOptions;
use super::StoreError;
use super::entry::{self, Entries};
use super::traits::{Audit, Feature, Finding, Level, Store};
use crate::error::LockError;
use crate::lease::{
    Acquired, FencingToken, Forced, Lease, Mode, Record, RecordState, Released, Renewed,
};

/// How long the server works on a step, and waits for its majority.
const MAX_TIME: Duration = Duration::from_secs(10);
/// How often a step is sent again when others were faster.
const ROUNDS: usize = 8;
/// How many records are removed at once.
const BATCH: usize = 1000;

/// Keeps leases in a collection of MongoDB 4.4 or later, for all that reach the same primary.
///
/// ```no_run
/// use lockattr_runtime::{Locker, store::MongoDbStore};
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MongoDbStore::connect("mongodb://app:password@db.internal/app").await?;
/// let locker = Locker::new(store);
/// # Ok(())
/// # }
/// ```
///
/// Leases end by the server's clock. Every step is confirmed by a majority of the replica set, and journaled. The
/// collection, `lockattr_lock` unless [`MongoDbOptions::collection`] says otherwise, comes with the first lock. The
/// user needs `find`, `insert`, `update` and `remove` on it. It must have no collation, and no TTL index on
/// `expires_at`, which would forget tokens. Clones share one client, which lives on a background thread.
///
/// It was tested against `SecantusDB`, which speaks MongoDB's protocol, and not against MongoDB.
#[derive(Clone, Debug)]
pub struct MongoDbStore(Arc<Connection>);

impl MongoDbStore {
    /// Connects to the servers that `url` names, and checks them, with the default [`MongoDbOptions`].
    ///
    /// `mongodb://user:password@host1:27017,host2:27017/database?replicaSet=name&authSource=admin`, as MongoDB's
    /// manual has it; without a database it is `lockattr`.
    ///
    /// # Errors
    ///
    /// [`LockError::Setup`] for a URL that is wrong. [`LockError::Store`] when no server can be reached or used:
    /// nothing listens, a wrong password, a right that is missing. Neither ever shows a password.
    pub async fn connect(url: &str) -> Result<Self, LockError> {
        MongoDbOptions::new().connect(url).await
    }

    /// Reads and changes nothing, with the rights that reading and changing need.
    async fn check(&self) -> Result<(), StoreError> {
        self.0
            .ask(|collection| async move {
                let nothing = doc! {"_id": {"$in": []}};
                let found = collection.find_one(nothing.clone()).await;
                found.map_err(|error| failure::of_request(&error))?;
                let none = collection.find_one_and_update(nothing, doc! {"$unset": {"lockattr": ""}}).await;
                none.map(drop).map_err(|error| failure::of_request(&error))
            })
            .await
    }

    /// One `findAndModify`, again when others were faster.
    async fn step(
        &self,
        key: &str,
        pipeline: Vec<Document>,
        upsert: bool,
        answer: ReturnDocument,
    ) -> Result<Option<Document>, StoreError> {
        let key = key.to_owned();
        self.0
            .ask(move |collection| async move {
                let mut round = 1;
                loop {
                    let step = collection
                        .find_one_and_update(doc! {"_id": &key}, pipeline.clone())
                        .upsert(upsert)
                        .return_document(answer.clone())
                        .max_time(MAX_TIME);
                    match step.await {
                        Ok(document) => return Ok(document),
                        Err(error) if failure::is_conflict(&error) && round < ROUNDS => round += 1,
                        Err(error) => return Err(failure::of_request(&error)),
                    }
                }
            })
            .await
    }

    /// What is there now, by the server's clock.
    async fn look(&self, key: &str) -> Result<Option<Found>, StoreError> {
        let pipeline = vec![doc! {"$match": {"_id": key}}, pipelines::with_now()];
        let found = self.read(pipeline, 1).await?;
        found.first().map(|document| Found::read(key, document)).transpose()
    }

    async fn read(&self, pipeline: Vec<Document>, limit: usize) -> Result<Vec<Document>, StoreError> {
        let read = move |collection| async move {
            documents(&collection, pipeline, limit).await.map_err(|error| failure::of_read(&error))
        };
        self.0.ask(read).await
    }

    /// The answer to an acquisition that did not leave the key with its owner.
    async fn refusal(&self, lease: &Lease, answered: bool) -> Result<Acquired, StoreError> {
        let unknown = || StoreError::unknown("the MongoDB server's answer has no document");
        let nothing_left = Acquired::Taken { remaining: Duration::ZERO, holder: None, queued: false };
        let Some(found) = self.look(&lease.key).await? else {
            return if answered { Ok(nothing_left) } else { Err(unknown()) };
        };
        let is_mine = found.entry.owner == Some(lease.owner);
        let mut entries = Entries::from([(Arc::clone(&lease.key), found.entry)]);
        match entry::acquire(&mut entries, lease, found.at)? {
            Acquired::Granted { token, remaining } if is_mine => {
                let remaining = remaining.saturating_sub(Duration::from_millis(1));
                Ok(Acquired::Granted { token, remaining })
            }
            // It has become free since.
            Acquired::Granted { .. } if answered => Ok(nothing_left),
            Acquired::Granted { .. } => Err(unknown()),
            other => Ok(other),
        }
    }
}

async fn documents(
    collection: &Collection<Document>,
    pipeline: Vec<Document>,
    limit: usize,
) -> Result<Vec<Document>, Error> {
    let mut cursor = collection.aggregate(pipeline).max_time(MAX_TIME).await?;
    let mut found = Vec::new();
    while found.len() < limit && cursor.advance().await? {
        found.push(cursor.deserialize_current()?);
    }
    Ok(found)
}

impl Store for MongoDbStore {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn supports(&self, feature: Feature) -> bool {
        !matches!(feature, Feature::Shared | Feature::Permits | Feature::AtomicMany | Feature::Watch)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        if lease.mode != Mode::Exclusive {
            return Err(StoreError::refused("this store keeps exclusive leases only"));
        }
        let pipeline = pipelines::acquire(lease);
        let Some(document) = self.step(&lease.key, pipeline, true, ReturnDocument::After).await? else {
            return self.refusal(lease, false).await;
        };
        let found = Found::read(&lease.key, &document)?;
        if found.entry.owner == Some(lease.owner) {
            return Ok(found.left().map_or(Acquired::Spent, |remaining| {
                let first = found.entry.token.saturating_sub(u64::from(lease.tokens.max(1)) - 1);
                Acquired::Granted { token: FencingToken::new(first), remaining }
            }));
        }
        if found.entry.last_owner == Some(lease.owner) {
            return Ok(Acquired::Spent);
        }
        self.refusal(lease, true).await
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let answer = self.step(&lease.key, pipelines::renew(lease), false, ReturnDocument::After).await?;
        let Some(document) = answer else { return Ok(Renewed::Lost) };
        let found = Found::read(&lease.key, &document)?;
        Ok(match found.left() {
            Some(remaining) if found.entry.owner == Some(lease.owner) => Renewed::Renewed { remaining },
            _ => Renewed::Lost,
        })
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        let pipeline = pipelines::release(lease.owner, keep);
        let answer = self.step(&lease.key, pipeline, false, ReturnDocument::Before).await?;
        let Some(document) = answer else { return Ok(Released::NotHeld) };
        let before = Found::read(&lease.key, &document)?.entry;
        Ok(if before.owner == Some(lease.owner) {
            Released::Released
        } else if before.last_owner == Some(lease.owner) {
            Released::AlreadyReleased
        } else {
            Released::NotHeld
        })
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        Ok(self.look(key).await?.map(|found| record(Arc::from(key), &found)))
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        let mut range = match after {
            Some(after) if after >= prefix => doc! {"$gt": after},
            _ => doc! {"$gte": prefix},
        };
        if let Some(end) = after_all(prefix) {
            range.insert("$lt", end);
        }
        let pipeline = vec![
            doc! {"$match": {"_id": range}},
            doc! {"$sort": {"_id": 1}},
            doc! {"$match": pipelines::is_taken()},
            doc! {"$limit": i64::try_from(limit.max(1)).unwrap_or(i64::MAX)},
            pipelines::with_now(),
        ];
        let found = self.read(pipeline, limit).await?;
        let records = found.iter().filter_map(|document| {
            let key = document.get_str("_id").ok()?;
            Some(record(Arc::from(key), &Found::read(key, document).ok()?))
        });
        Ok(records.filter(|record| record.state != RecordState::Free).collect())
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let answer = self.step(key, pipelines::force_release(token), false, ReturnDocument::Before).await?;
        let Some(document) = answer else { return Ok(Forced::Changed) };
        let before = Found::read(key, &document)?.entry;
        let is_it = before.token == token.get() && before.expires.is_some();
        Ok(if is_it { Forced::Released } else { Forced::Changed })
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        let mut removed = 0;
        while removed < limit {
            let most = BATCH.min(limit - removed);
            let pipeline = vec![
                doc! {"$match": pipelines::is_idle(retention)},
                doc! {"$limit": i64::try_from(most).unwrap_or(i64::MAX)},
                doc! {"$project": {"_id": 1}},
            ];
            let found = self.read(pipeline, most).await?;
            let keys: Vec<Bson> = found.into_iter().filter_map(|mut found| found.remove("_id")).collect();
            if keys.is_empty() {
                break;
            }
            // Each is looked at again as it is removed.
            let mut filter = pipelines::is_idle(retention);
            filter.insert("_id", doc! {"$in": keys});
            let gone = self.0.ask(|collection| async move {
                collection.delete_many(filter).await.map_err(|error| failure::of_request(&error))
            });
            let gone = usize::try_from(gone.await?.deleted_count).unwrap_or(usize::MAX);
            if gone == 0 {
                break;
            }
            removed += gone;
        }
        Ok(removed)
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        self.check().await?;
        let finding = "leases end by the wall clock of the primary (of each router, where the cluster is sharded): \
                       setting it forward ends them early, and an election may bring another one; set `lock_delay` to \
                       what the clocks may differ by";
        Ok(Audit::new(Level::P2, vec![Finding::new(Level::P2, finding)]))
    }
}

fn record(key: Arc<str>, found: &Found) -> Record {
    Record::new(key, FencingToken::new(found.entry.token), found.entry.state(found.at.now))
}

/// The first text after all that begin with `prefix`; `None` when there is none.
fn after_all(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = if last == '\u{D7FF}' { Some('\u{E000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}
