use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{r#type}")]
async fn go(r#type: u8) -> Result<u8, LockError> { Ok(r#type) }

fn main() {}
