use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{id:p}")]
async fn go(id: &u8) -> Result<u8, LockError> { Ok(*id) }

fn main() {}
