use lockattr::distributed_lock;

#[distributed_lock(key = "a")]
async fn go() -> Result<u8, String> { Ok(1) }

fn main() {}
