use lockattr::{LockError, distributed_lock};

trait T {
    #[distributed_lock(key = "a:{id}")]
    async fn go(&self, id: u8) -> Result<u8, LockError>;
}

fn main() {}
