use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{0}")]
async fn go((a, b): (u8, u8)) -> Result<u8, LockError> { Ok(a + b) }

fn main() {}
