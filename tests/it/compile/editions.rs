//! What an edition could change: keywords, prelude, captures, temporaries.
mod block_on;
use block_on::block_on;
use lockattr::{distributed_lock, LockError};
use std::sync::Mutex;

struct Service {
    id: u8,
    list: Mutex<Vec<u8>>,
    r#gen: u8,
}

impl Service {
    #[distributed_lock(key = "{self.id}:{name}:{0}:{self.gen}", expires = "2s", wait = 1, lease = lease)]
    async fn method(&self, name: &str, mut n: usize) -> Result<usize, LockError> {
        lease.check()?;
        n += self.list.lock().unwrap().len();
        Ok(n + name.len())
    }

    #[distributed_lock(key = "view")]
    async fn view<'a, T: std::fmt::Display + 'a>(&'a self, t: T) -> Result<Box<dyn Fn() -> String + 'a>, LockError> {
        Ok(Box::new(move || format!("{} {}", self.id, t)))
    }
}

#[distributed_lock(keys = ["a:{a}", b], on_busy = skip, release = detached)]
async fn several(a: u8, b: &str) -> Result<Option<u8>, LockError> {
    if b.is_empty() {
        return Ok(None);
    }
    Ok(Some(a))
}

#[distributed_lock(key = "never", on_error = panic)]
#[allow(dead_code)]
async fn never() -> ! {
    loop {
        std::future::pending::<()>().await
    }
}

#[distributed_lock(key = "tail:{id}")]
async fn tail(id: usize, list: &Mutex<Vec<u8>>) -> Result<usize, LockError> {
    Ok(list.lock().unwrap().len() + id)
}

fn main() {
    lockattr::install(lockattr::Locker::new(lockattr::store::MemoryStore::new()));
    let service = Service { id: 1, list: Mutex::new(vec![1]), r#gen: 3 };
    assert_eq!(block_on(service.method("ab", 1)).unwrap(), 4);
    assert_eq!(block_on(service.view(2)).unwrap()(), "1 2");
    assert_eq!(block_on(several(1, "b")).unwrap(), Some(1));
    assert_eq!(block_on(tail(1, &service.list)).unwrap(), 2);
    assert_eq!(lockattr::key!("{service.gen}"), "3");
}
