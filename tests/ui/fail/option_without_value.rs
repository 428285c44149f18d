use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", expires)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
