use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a" wait = 5, expires = , = 4, renew: true)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
