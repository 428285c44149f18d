//! Real threads and the real keeper: runtimes that are blocked, ended, or not there at all.

use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use super::*;

fn real() -> (Locker, Locker) {
    let store = MemoryStore::new();
    (Locker::new(store.clone()), Locker::new(store))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Waits until another program could have the key, for much longer than it takes.
fn is_freed(other: &Locker) {
    let runtime = runtime();
    let got = runtime.block_on(other.lock("k").wait(20 * SECOND).acquire());
    runtime.block_on(got.expect("it is freed").release()).expect("it was ours");
}

#[test]
fn a_guard_that_goes_down_with_its_runtime_frees_the_key() {
    let (locker, other) = real();
    let runtime = runtime();
    let guard = runtime.block_on(locker.lock("k").acquire()).expect("it is free");
    runtime.spawn(async move {
        guard.lost().await;
        drop(guard);
    });
    runtime.block_on(tokio::task::yield_now());
    drop(runtime);
    is_freed(&other);
}

#[test]
fn a_guard_dropped_without_a_runtime_frees_the_key() {
    let (locker, other) = real();
    let guard = runtime().block_on(locker.lock("k").acquire()).expect("it is free");
    // Its runtime is gone, and this thread has none.
    std::thread::spawn(move || drop(guard)).join().expect("dropping never panics");
    is_freed(&other);
}

#[test]
fn a_request_given_up_with_its_runtime_leaves_nothing() {
    let (locker, other) = real();
    let runtime = runtime();
    let guard = runtime.block_on(locker.lock("k").acquire()).expect("it is free");
    runtime.spawn(locker.lock("k").wait(Wait::Forever).run(async |_| std::future::pending::<()>().await));
    runtime.block_on(tokio::task::yield_now());
    drop(runtime);
    drop(guard);
    is_freed(&other);
    assert_eq!(locker.shared.queues.waiting(), 0);
}

#[test]
fn a_body_that_blocks_its_thread_for_three_expiries_keeps_its_lock() {
    let (locker, other) = real();
    let rival = std::thread::spawn(move || {
        std::thread::sleep(SECOND / 10);
        let waited = runtime().block_on(other.lock("k").wait(3 * SECOND).acquire());
        waited.expect_err("it is held all the while").is_busy()
    });
    let ran = runtime().block_on(locker.lock("k").expires(SECOND).run(async |held| {
        let started = Instant::now();
        std::thread::sleep(Duration::from_millis(3_400));
        held.check().map(|()| started.elapsed())
    }));
    assert!(ran.expect("it is free").expect("it is held") > 3 * SECOND);
    assert!(rival.join().expect("no panic"));
}
