use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{id}")]
async fn go(id: u8) -> Result<u8, LockError> { Ok(idd) }

fn main() {}
