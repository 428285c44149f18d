use lockattr::{LockError, distributed_lock};

struct User { id: u64 }
struct R { user: Option<User> }
#[distributed_lock(key = "a:{r.user.id}")]
async fn go(r: R) -> Result<u64, LockError> { Ok(r.user.map_or(0, |u| u.id)) }

fn main() {}
