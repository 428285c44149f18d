use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{x}%{y}")]
async fn go(x: u8, y: u8) -> Result<u8, LockError> { Ok(x + y) }

fn main() {}
