use lockattr::{LockError, distributed_lock};

use std::future::Future;
#[distributed_lock(key = "a:{id}")]
fn go(id: u8) -> impl Future<Output = Result<u8, LockError>> { async move { Ok(id) } }

fn main() {}
