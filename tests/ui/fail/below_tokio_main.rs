use lockattr::{LockError, distributed_lock};

#[tokio::main]
#[distributed_lock(key = "a")]
async fn main() -> Result<(), LockError> { Ok(()) }
