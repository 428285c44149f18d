use lockattr::{LockError, distributed_lock};

struct S { id: u64 }
impl S {
    #[distributed_lock(key = "a:{self.id}")]
    async fn go(s: &S) -> Result<u64, LockError> { Ok(s.id) }
}

fn main() {}
