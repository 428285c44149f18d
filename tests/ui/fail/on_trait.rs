use lockattr::distributed_lock;

#[distributed_lock(key = "a")]
trait T { async fn go(&self); }

fn main() {}
