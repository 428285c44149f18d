use lockattr::distributed_lock;

#[distributed_lock(key = "a", on_busy = skip, on_error = panic)]
async fn go() -> ! { loop { tokio::task::yield_now().await; } }

fn main() {}
