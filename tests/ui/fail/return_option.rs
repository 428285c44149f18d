use lockattr::distributed_lock;

#[distributed_lock(key = "a")]
async fn go() -> Option<u8> { None }

fn main() {}
