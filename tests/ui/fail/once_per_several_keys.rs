use lockattr::{LockError, distributed_lock};

#[distributed_lock(keys = ["account:{from}", "account:{to}"], once_per = "15m")]
async fn transfer(from: u64, to: u64) -> Result<(), LockError> { Ok(()) }

fn main() {}
