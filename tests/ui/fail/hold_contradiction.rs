use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", min_hold = 5, max_hold = 2)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
