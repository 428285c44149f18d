use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", locker = s)]
async fn go(s: u8) -> Result<u8, LockError> { Ok(s) }

fn main() {}
