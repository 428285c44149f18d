//! `once_per`: what the core makes of a store's windows.

use super::*;
use crate::store::FaultStore;

const HOUR: Duration = Duration::from_secs(3_600);

/// The memory store's wall clock starts 800 seconds into an hour.
const TO_THE_NEXT_HOUR: Duration = Duration::from_secs(2_800);

#[tokio::test(start_paused = true)]
async fn a_window_has_one_grant_and_the_next_another() {
    let (locker, _) = locker();
    let hourly = || locker.lock("k").once_per(HOUR);
    hourly().run(async |_| ()).await.expect("it is free");
    let error = hourly().acquire().await.expect_err("its window is used up");
    assert!(matches!(error, LockError::Busy { .. }), "{error}");
    locker.lock("k").run(async |_| ()).await.expect("who asks for no window gets it");
    tokio::time::sleep(TO_THE_NEXT_HOUR).await;
    hourly().run(async |_| ()).await.expect("a new window");
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_the_next_window() {
    let (locker, machine) = locker();
    let hourly = || locker.lock("k").once_per(HOUR);
    hourly().run(async |_| ()).await.expect("it is free");
    let started = machine.now();
    hourly().wait(Wait::Forever).run(async |_| ()).await.expect("it waits");
    let waited = machine.now().since(started);
    let early = TO_THE_NEXT_HOUR.saturating_sub(waited);
    let late = waited.saturating_sub(TO_THE_NEXT_HOUR);
    assert!(early <= SECOND && late <= 2 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_window_keeps_nobody_else_out() {
    let (locker, _) = locker();
    locker.lock("k").once_per(HOUR).run(async |_| ()).await.expect("it is free");
    let waiting = tokio::spawn(locker.lock("k").once_per(HOUR).wait(Wait::Forever).acquire());
    tokio::task::yield_now().await;
    locker.lock("k").wait(10 * SECOND).run(async |_| ()).await.expect("it is free");
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_dropped_has_used_up_its_window() {
    let (locker, _) = locker();
    let mut body =
        Box::pin(locker.lock("k").once_per(HOUR).run(async |_| std::future::pending::<()>().await));
    while !is_taken(&locker, "k").await {
        assert!(!futures_poll(body.as_mut()).await);
    }
    drop(body);
    settled(&locker, "k").await;
    assert!(locker.lock("k").once_per(HOUR).acquire().await.expect_err("it is used up").is_busy());
}

#[tokio::test(start_paused = true)]
async fn wrong_windows_are_refused_before_the_store_is_asked() {
    let (locker, _) = locker();
    for window in [Duration::ZERO, Duration::from_micros(999), 366 * 24 * HOUR + SECOND] {
        let error = locker.lock("k").once_per(window).acquire().await.expect_err("out of bounds");
        assert!(matches!(error, LockError::InvalidOptions { .. }), "{error}");
    }
    let error = locker.lock_many(["a", "b"]).once_per(HOUR).acquire().await.expect_err("two keys");
    assert!(matches!(error, LockError::InvalidOptions { .. }), "{error}");
    // One key that is written twice is one key.
    locker.lock_many(["a", "a"]).once_per(HOUR).run(async |_| ()).await.expect("it is free");
}

#[tokio::test(start_paused = true)]
async fn a_store_without_windows_is_not_asked_for_less() {
    let store = FaultStore::new(store());
    store.faults().hide(Feature::OncePer);
    let locker = Locker::simulated(store, &SimMachine::new(1));
    let error = locker.lock("k").once_per(HOUR).acquire().await.expect_err("it cannot");
    assert!(matches!(error, LockError::Unsupported { .. }), "{error}");
    assert!(locker.inspect("k").await.expect("it answers").is_none());
}
