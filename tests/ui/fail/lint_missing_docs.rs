#![deny(missing_docs)]
//! Documented.
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
pub async fn undocumented() -> Result<u8, LockError> { Ok(1) }

fn main() {}
