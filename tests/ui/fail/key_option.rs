use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{id}")]
async fn go(id: Option<u64>) -> Result<u64, LockError> { Ok(id.unwrap_or(0)) }

fn main() {}
