use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{idd}:{x", expires = 0, wiat = 5, on_busy = panic)]
async fn go(id: u8) -> Result<u8, LockError> { Ok(id) }

fn main() {}
