use lockattr::distributed_lock;

#[distributed_lock(key = "a")]
async fn go() {}

fn main() {}
