use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a\n{x}")]
async fn go(x: u8) -> Result<u8, LockError> { Ok(x) }

fn main() {}
