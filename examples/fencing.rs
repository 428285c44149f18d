//! A register that refuses stale writes: the one protection that survives a paused process.
//!
//! A holder that was paused (a stopped process, a suspended machine) cannot know that others ran meanwhile.
//! The resource can: it refuses a fencing token smaller than the largest it has seen.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::sync::{Arc, Mutex};

use lockattr::lease::FencingToken;
use lockattr::{Held, LockError, Locker, distributed_lock, store::MemoryStore};

/// What is protected. In SQL: `update … set value = $1, fence = $2 where id = $3 and fence <= $2`.
#[derive(Default)]
struct Register(Mutex<(u64, &'static str)>);

impl Register {
    fn write(&self, value: &'static str, token: FencingToken) -> bool {
        let mut register = self.0.lock().expect("no writer panics");
        // Equal is fine: one holder may write many times.
        let accepted = token.get() >= register.0;
        if accepted {
            *register = (token.get(), value);
        }
        println!("{value}: {}", if accepted { "written" } else { "refused, its token is stale" });
        accepted
    }
}

/// Pauses between its check and its write, as any process may. Without renewal and with `continue` this
/// body runs on after its lock is lost, like one that was stopped there.
#[distributed_lock(key = "register", expires = "300ms", renew = false, on_lost = continue, lease = lease)]
async fn paused_writer(register: Arc<Register>) -> Result<(Held, bool), LockError> {
    lease.check()?;
    // The pause: meanwhile the lease runs out, and another writer comes and goes.
    tokio::spawn(next_writer(Arc::clone(&register))).await.expect("it does not panic")?;
    let written = register.write("the paused writer", lease.token());
    Ok((lease.clone(), written))
}

#[distributed_lock(key = "register", wait = 5, lease = lease)]
async fn next_writer(register: Arc<Register>) -> Result<bool, LockError> {
    Ok(register.write("the next writer", lease.token()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LockError> {
    lockattr::install(Locker::new(MemoryStore::new()));
    let register = Arc::new(Register::default());

    let (lease, stale_write) = paused_writer(Arc::clone(&register)).await?;
    println!("the paused writer's lock: {}", lease.check().expect_err("it was lost"));

    assert!(!stale_write);
    assert_eq!(register.0.lock().expect("no writer panics").1, "the next writer");
    Ok(())
}
