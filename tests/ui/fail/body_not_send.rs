use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "a:{id}")]
async fn go(id: u8) -> Result<u8, LockError> { let r = std::rc::Rc::new(id); tokio::task::yield_now().await; Ok(*r) }
fn main() { drop(tokio::spawn(go(1))); }
