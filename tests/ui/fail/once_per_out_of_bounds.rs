use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", once_per = 0)]
async fn never() -> Result<(), LockError> { Ok(()) }

#[distributed_lock(key = "a", once_per = "367d")]
async fn long() -> Result<(), LockError> { Ok(()) }

#[distributed_lock(key = "a", once_per)]
async fn alone() -> Result<(), LockError> { Ok(()) }

#[distributed_lock(key = "a", once_per = true)]
async fn flag() -> Result<(), LockError> { Ok(()) }

fn main() {}
