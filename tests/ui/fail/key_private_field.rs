use lockattr::{LockError, distributed_lock};

mod m { pub struct Req { id: u64 } impl Req { pub fn new() -> Self { Req { id: 1 } } pub fn get(&self) -> u64 { self.id } } }
#[distributed_lock(key = "a:{r.id}")]
async fn go(r: m::Req) -> Result<u64, LockError> { Ok(r.get()) }
fn main() { let _ = go(m::Req::new()); }
