//! Old records go: at most once an hour a locker, in bounded steps.

use super::*;
use crate::store::{FaultStore, Verb};

#[tokio::test(start_paused = true)]
async fn a_locker_collects_at_most_once_an_hour() {
    let store = FaultStore::new(store());
    let locker = Locker::simulated(store.clone(), &SimMachine::new(1));
    for minute in 0..180_u32 {
        drop(locker.lock("k").acquire().await.expect("it is free"));
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(store.faults().calls(Verb::Collect), usize::try_from(minute / 60).expect("small") + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn one_off_keys_are_gone_after_a_week_and_the_steps_are_bounded() {
    let store = FaultStore::new(store());
    let locker = Locker::simulated(store.clone(), &SimMachine::new(1));
    for number in 0..2_500 {
        locker
            .lock(format!("order:{number}"))
            .acquire()
            .await
            .expect("it is free")
            .release()
            .await
            .expect("ours");
    }
    let before = store.faults().calls(Verb::Collect);
    tokio::time::sleep(8 * 24 * 3_600 * SECOND).await;
    locker.lock("k").acquire().await.expect("it is free").release().await.expect("it was ours");
    tokio::time::sleep(SECOND).await;
    assert_eq!(store.faults().calls(Verb::Collect) - before, 3);
    assert!(locker.inspect("order:0").await.expect("the store answers").is_none());
    assert!(locker.inspect("k").await.expect("the store answers").is_some());
}
