use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn go() -> Result<u64, LockError> { Ok("x") }

fn main() {}
