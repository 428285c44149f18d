use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn go() -> Result<u8, LockError> { break; }

fn main() {}
