use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn go(x: bool) -> Result<u8, LockError> {
    if x {
        return Ok("one");
    }
    Ok(1)
}

fn main() {}
