use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", on_busy = skip)]
async fn go() -> Result<u8, LockError> { Ok(1) }

fn main() {}
