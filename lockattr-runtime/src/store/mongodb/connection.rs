//! The client of a store: made on the keeper with the first request.
//!
//! Invariant: all that the driver does for a store's own client, it does on the keeper.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::Document;
use mongodb::options::{
    Acknowledgment, ClientOptions, CollectionOptions, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Collection};
use tokio::sync::OnceCell;

use super::failure;
use crate::keeper::Keeper;
use crate::store::StoreError;

/// How long an answer may take: above every time-out of the core.
const ANSWER: Duration = Duration::from_secs(12);

pub(super) struct Connection {
    pub(super) settings: ClientOptions,
    pub(super) client: OnceCell<Client>,
    pub(super) database: String,
    pub(super) collection: String,
    pub(super) pid: u32,
}

impl Connection {
    /// Servers, database and collection, for people.
    pub(super) fn place(&self) -> String {
        let hosts: Vec<_> = self.settings.hosts.iter().map(ToString::to_string).collect();
        format!("{}, collection {}.{}", hosts.join(","), self.database, self.collection)
    }

    /// Runs `work` on the keeper. Dropped, it lets `work` go on.
    pub(super) async fn ask<T, W>(
        self: &Arc<Self>,
        work: impl FnOnce(Collection<Document>) -> W + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        if self.pid != std::process::id() {
            return Err(StoreError::refused(
                "this process was forked after the store was made; make it again in the child",
            ));
        }
        let keeper = Keeper::get().map_err(StoreError::refused)?;
        let connection = Arc::clone(self);
        let asked = keeper.run(async move {
            let collection = connection.collection().await?;
            tokio::time::timeout(ANSWER, work(collection)).await.unwrap_or_else(|_| {
                Err(StoreError::unknown(format!("the MongoDB server does not answer within {ANSWER:?}")))
            })
        });
        asked.await.map_err(StoreError::unknown)?
    }

    async fn collection(&self) -> Result<Collection<Document>, StoreError> {
        let made = async || Client::with_options(self.settings.clone());
        let client = self.client.get_or_try_init(made).await;
        let client = client.map_err(|error| failure::of_request(&error))?;
        let concern = WriteConcern::builder()
            .w(Acknowledgment::Majority)
            .journal(true)
            .w_timeout(super::MAX_TIME)
            .build();
        let options = CollectionOptions::builder()
            .write_concern(concern)
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .build();
        Ok(client.database(&self.database).collection_with_options(&self.collection, options))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // Its tasks stayed in the parent process; their queues may be locked for ever here.
            std::mem::forget(self.client.take());
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("place", &self.place()).finish_non_exhaustive()
    }
}
