use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "account:{user_id}")]
async fn go(userid: u64) -> Result<u64, LockError> { Ok(userid) }

fn main() {}
