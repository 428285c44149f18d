use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{ids[0]}")]
async fn go(ids: &[u8]) -> Result<usize, LockError> { Ok(ids.len()) }

fn main() {}
