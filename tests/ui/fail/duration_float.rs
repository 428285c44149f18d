use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = 1.5)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
