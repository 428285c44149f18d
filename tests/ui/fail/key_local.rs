use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{n}")]
async fn go(id: u64) -> Result<u64, LockError> { let n = id; Ok(n) }

fn main() {}
