use lockattr::{LockError, distributed_lock};

unsafe fn raw() -> u8 { 1 }
#[distributed_lock(key = "a")]
async fn go() -> Result<u8, LockError> { Ok(raw()) }

fn main() {}
