use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{2}")]
async fn go(a: u8, b: u8) -> Result<u8, LockError> { Ok(a + b) }

fn main() {}
