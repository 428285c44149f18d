#![deny(non_snake_case)]
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{userId}")]
pub async fn go(userId: u8) -> Result<u8, LockError> { Ok(userId) }

fn main() {}
