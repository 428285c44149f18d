use lockattr::{LockError, distributed_lock};

#[distributed_lock(keys = id)]
async fn go(id: u64) -> Result<u64, LockError> { Ok(id) }

fn main() {}
