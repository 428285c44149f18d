use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{id:?}")]
async fn go(id: Option<u8>) -> Result<Option<u8>, LockError> { Ok(id) }

fn main() {}
