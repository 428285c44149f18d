use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", lease = id)]
async fn argument(id: u8) -> Result<u8, LockError> { Ok(id) }

#[distributed_lock(key = "a", lease = "lease")]
async fn text(id: u8) -> Result<u8, LockError> { Ok(id) }

fn main() {}
