use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{n}")]
async fn go(n: u64) -> Result<u64, LockError> { n += 1; Ok(n) }

fn main() {}
