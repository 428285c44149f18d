use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a")]
async fn go() -> Result<u64, LockError> {
    Ok(1);
}

fn main() {}
