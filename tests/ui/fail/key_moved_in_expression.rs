use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = name.into_boxed_str())]
async fn go(name: String) -> Result<String, LockError> { Ok(name) }

fn main() {}
