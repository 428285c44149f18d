use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", crate = "lockattr")]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
