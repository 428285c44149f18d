use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_lost = ignore, on_error = skip, release = never, renew = 5)]
async fn go() -> Result<(), LockError> { Ok(()) }

fn main() {}
