use lockattr::distributed_lock;

struct S;
#[distributed_lock(key = "a")]
impl S { async fn go(&self) {} }

fn main() {}
