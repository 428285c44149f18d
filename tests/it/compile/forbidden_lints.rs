//! Forbidden lints: an `#[allow]` of one in an expansion would be an error.
#![forbid(
    dead_code,
    let_underscore_drop,
    unreachable_code,
    unsafe_code,
    unused_braces,
    unused_must_use,
    unused_mut,
    unused_qualifications,
    unused_results,
    unused_variables
)]
mod block_on;
use block_on::block_on;
use lockattr::{LockError, distributed_lock};

#[distributed_lock(key = "forbid:{id}", lease = lease)]
async fn go(id: u8, mut n: u8, _spare: u8) -> Result<u8, LockError> {
    lease.check()?;
    n += id;
    Ok(n)
}

#[distributed_lock(key = "one-line")]
async fn one_line() -> Result<(), LockError> { Ok(()) }

#[distributed_lock(key = "never", on_error = panic)]
async fn never() -> ! {
    loop {
        std::future::pending::<()>().await;
    }
}

fn main() {
    drop(lockattr::install(lockattr::Locker::new(lockattr::store::MemoryStore::new())));
    drop(never());
    assert_eq!(block_on(go(1, 1, 0)).unwrap(), 2);
    block_on(one_line()).unwrap();
}
