#![deny(unused_must_use)]
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn go() -> Result<u8, LockError> { Ok(1) }
fn main() { go(); }
