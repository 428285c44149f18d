use lockattr::distributed_lock;

#[distributed_lock(key = "job:{id}")]
async fn job(id: u64) -> Result<u64, Box<dyn std::error::Error>> { Ok(id) }

fn spawnable<F: Send>(_: F) {}
fn main() { spawnable(job(1)); }
