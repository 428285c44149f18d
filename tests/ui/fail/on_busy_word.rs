use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_busy = ignore)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
