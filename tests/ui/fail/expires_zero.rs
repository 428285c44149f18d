use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", expires = 0)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
