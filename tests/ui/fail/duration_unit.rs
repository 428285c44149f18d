use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", expires = "5 parsecs")]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
