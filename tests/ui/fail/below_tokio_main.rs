use lockattr::{LockError, distributed_lock};

#[tokio::main(flavor = "current_thread")]
#[distributed_lock(key = "a")]
async fn main() -> Result<(), LockError> { Ok(()) }
