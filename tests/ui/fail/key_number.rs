use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = 5)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
