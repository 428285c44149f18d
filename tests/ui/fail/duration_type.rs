use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a", expires = name)]
async fn go(name: &str) -> Result<usize, LockError> { Ok(name.len()) }

fn main() {}
