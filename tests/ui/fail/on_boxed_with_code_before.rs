use lockattr::{LockError, distributed_lock};

use std::future::Future;
use std::pin::Pin;

#[distributed_lock(key = "a:{id}")]
fn go(id: u8) -> Pin<Box<dyn Future<Output = Result<u8, LockError>>>> {
    let next = id + 1;
    Box::pin(async move { Ok(next) })
}

fn main() {}
