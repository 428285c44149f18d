#![deny(unused_mut)]
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
pub async fn go(mut n: u8) -> Result<u8, LockError> { Ok(n) }

fn main() {}
