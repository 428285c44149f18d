//! A code base that returns explicitly.
#![deny(clippy::implicit_return)]
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{x}", on_busy = skip)]
async fn result(x: u8) -> Result<Option<u8>, LockError> {
    return Ok(Some(x));
}

#[distributed_lock(key = "a", on_error = panic)]
async fn unit() {}

fn main() {
    drop(result(1));
    drop(unit());
}
