use lockattr::{LockError, distributed_lock};

struct Req { id: u8 }
#[distributed_lock(key = "a:{req.identity}")]
async fn go(req: Req) -> Result<u8, LockError> { Ok(req.id) }

fn main() {}
