use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", keys = ["b"])]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
