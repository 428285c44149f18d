//! No locker is installed: the call fails, and nothing panics.
mod block_on;
use block_on::block_on;
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "account:{id}")]
async fn go(id: u8) -> Result<u8, LockError> {
    Ok(id)
}

fn main() {
    let error = block_on(go(1)).unwrap_err();
    assert!(matches!(error, LockError::NotInstalled { .. }));
    assert!(error.to_string().contains("account:{id}"));
}
