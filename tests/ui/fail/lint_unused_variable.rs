#![deny(unused_variables)]
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{id}")]
pub async fn go(id: u8, spare: u8) -> Result<(), LockError> { let local = 1; Ok(()) }

fn main() {}
