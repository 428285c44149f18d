//! What a task that waits keeps in memory.

use super::*;
use std::panic::Location;

use crate::LockOptions;
use crate::error::Locked;

/// A hundred thousand may wait, so what each keeps beside the caller's own future is bounded.
#[tokio::test(start_paused = true)]
async fn a_waiter_keeps_little() {
    let (locker, _) = locker();
    let options = LockOptions { wait: Wait::Forever, ..LockOptions::default() };
    let now = locker.shared.env.now();
    let waiting = size_of_val(&locker.pursue(vec![Locked::plain("k")], &options, Location::caller(), now));
    assert!(waiting <= 1024, "{waiting} bytes");
    let entering = size_of_val(&locker.enter(vec![Locked::plain("k")], options, Location::caller()));
    assert!(entering <= 400, "{entering} bytes");
}
