use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", wait = 99999999999999999999)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
