#![deny(unused_must_use)]
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
pub async fn go() -> Result<(), LockError> { go2(); Ok(()) }
#[must_use]
fn go2() -> u8 { 1 }

fn main() {}
