use lockattr::{LockError, distributed_lock};

#[async_trait::async_trait]
trait T {
    #[distributed_lock(key = "a:{id}")]
    async fn go(&self, id: u8) -> Result<u8, LockError>;
}

fn main() {}
