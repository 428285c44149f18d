use lockattr::distributed_lock;

#[distributed_lock(key = "a")]
struct S;

fn main() {}
