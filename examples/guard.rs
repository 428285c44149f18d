//! Locks without the attribute: requests, guards, tokens, several keys at once.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::time::Duration;

use lockattr::{LockError, Locker};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LockError> {
    let locker = Locker::connect("memory:").await?;

    // Wait up to 5 seconds; if this process dies, others get the lock 30 seconds later.
    let guard = locker
        .lock("invoice:7")
        .expires(Duration::from_secs(30))
        .wait(Duration::from_secs(5))
        .acquire()
        .await?;
    println!("held: {}", guard.key());

    // One attempt. `None` means that somebody has it, and a failing store is an error.
    let second = locker.lock("invoice:7").try_acquire().await?;
    println!("free for others: {}", second.is_some());

    // Before a step that must not be done twice, and for a resource that checks tokens.
    guard.check()?;
    let first_token = guard.token();

    // Dropping a guard gives the lock back as well, in the background.
    guard.release().await?;
    let again = locker.lock("invoice:7").acquire().await?;
    println!("the token grew: {}", again.token() > first_token);
    drop(again);

    // All keys or none, in any order: two transfers in opposite directions do not deadlock.
    let transfer = locker.lock_many(["account:2", "account:1"]).acquire().await?;
    println!("held: {}", transfer.held().keys().collect::<Vec<_>>().join(" and "));
    transfer.release().await?;

    // The body is stopped if the lock is lost, as under the attribute.
    let sum = locker.lock("sum").run(async |held| held.check().map(|()| 40 + 2)).await??;
    println!("the body gave {sum}");

    // Who holds what, for operators.
    let guard = locker.lock("report").label("nightly report").acquire().await?;
    for record in locker.list("report", None, 10).await? {
        println!("listed: {}", record.key);
    }
    guard.release().await?;

    let still_held = locker.shutdown(Duration::from_secs(1)).await;
    println!("still held at the end: {}", still_held.len());
    Ok(())
}
