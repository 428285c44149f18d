use lockattr::distributed_lock;

type Answer = u32;
#[distributed_lock(key = "a")]
async fn go() -> Answer { 1 }

fn main() {}
