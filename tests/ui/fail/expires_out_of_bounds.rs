use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", expires = "99ms")]
async fn short() -> Result<(), LockError> { Ok(()) }

#[distributed_lock(key = "a", expires = "25h")]
async fn long() -> Result<(), LockError> { Ok(()) }

fn main() {}
