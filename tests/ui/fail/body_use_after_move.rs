use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{s}")]
async fn go(s: String) -> Result<usize, LockError> { drop(s); Ok(s.len()) }

fn main() {}
