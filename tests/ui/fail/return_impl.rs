use lockattr::distributed_lock;

#[distributed_lock(key = "a")]
async fn go() -> impl std::fmt::Display { 1 }

fn main() {}
