use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{id:w$}")]
async fn go(id: u64, w: usize) -> Result<u64, LockError> { Ok(id + w as u64) }

fn main() {}
