//! What only editions before 2024 allow.
mod block_on;
use block_on::block_on;
use lockattr::{distributed_lock, LockError};
use std::sync::Mutex;

unsafe fn raw(x: u8) -> u8 {
    x
}

#[distributed_lock(key = "unsafe:{x}")]
async unsafe fn bare_call(x: u8) -> Result<u8, LockError> {
    Ok(raw(x))
}

#[distributed_lock(key = "tail")]
async fn bound_tail(list: Mutex<Vec<u8>>) -> Result<u8, LockError> {
    let first = match list.lock().unwrap().first() {
        Some(first) => Ok(*first),
        None => Ok(0),
    };
    first
}

#[distributed_lock(key = "gen:{gen}")]
async fn generator(gen: u8) -> Result<u8, LockError> {
    Ok(gen)
}

fn main() {
    lockattr::install(lockattr::Locker::new(lockattr::store::MemoryStore::new()));
    assert_eq!(block_on(unsafe { bare_call(3) }).unwrap(), 3);
    assert_eq!(block_on(bound_tail(Mutex::new(vec![7]))).unwrap(), 7);
    assert_eq!(block_on(generator(1)).unwrap(), 1);
}
