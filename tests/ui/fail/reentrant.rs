use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", reentrant = "yes")]
async fn text() -> Result<(), LockError> { Ok(()) }

#[distributed_lock(key = "a", reentrant = allowed)]
async fn expression(allowed: bool) -> Result<(), LockError> { Ok(()) }

#[distributed_lock(key = "a", reentrent)]
async fn misspelt() -> Result<(), LockError> { Ok(()) }

fn main() {}
