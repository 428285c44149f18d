use lockattr::{LockError, distributed_lock};

#[distributed_lock(keys = [])]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
