use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{id.len()}")]
async fn go(id: &str) -> Result<usize, LockError> { Ok(id.len()) }

fn main() {}
