use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "account:{}")]
async fn go(id: u64) -> Result<u64, LockError> { Ok(id) }

fn main() {}
