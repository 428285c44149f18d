use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "")]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
