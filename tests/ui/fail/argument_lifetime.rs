use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn go(a: &str, b: &str) -> Result<&str, LockError> { Ok(a) }

fn main() {}
