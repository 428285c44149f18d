//! From a URL to a store: one line a scheme.

use std::sync::Arc;

use super::MemoryStore;
use super::erased::ErasedStore;
use crate::error::LockError;

/// Opens the store that `url` names.
pub(crate) async fn connect(url: &str) -> Result<Arc<dyn ErasedStore>, LockError> {
    match url.split_once(':').map_or(url, |(scheme, _)| scheme) {
        "memory" => Ok(Arc::new(MemoryStore::new())),
        _ => Err(LockError::Setup { reason: "unknown scheme".to_owned() }),
    }
}
