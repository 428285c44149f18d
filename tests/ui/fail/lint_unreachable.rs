#![deny(unreachable_code)]
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
pub async fn go() -> Result<u8, LockError> {
    return Ok(1);
    #[allow(unused_variables)]
    let x = 1;
    Ok(2)
}

fn main() {}
