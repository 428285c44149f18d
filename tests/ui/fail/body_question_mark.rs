use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{s}")]
async fn go(s: &str) -> Result<u64, LockError> { let n = parse(s)?; Ok(n) }
fn parse(s: &str) -> Result<u64, std::num::ParseIntError> { s.parse() }

fn main() {}
