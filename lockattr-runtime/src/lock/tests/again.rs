//! A body that enters again under the lock it holds.

use super::*;
use crate::current;
use crate::store::{FaultStore, Verb};

fn counted() -> (Locker, FaultStore<MemoryStore>) {
    let store = FaultStore::new(store());
    (Locker::simulated(store.clone(), &SimMachine::new(1)), store)
}

#[tokio::test(start_paused = true)]
async fn it_enters_without_asking_the_store_and_with_the_same_token() {
    let (locker, store) = counted();
    let request = locker.lock_many(["a", "b"]).reentrant(true);
    let ran = request.clone().run(async |held| {
        let asked = store.faults().calls(Verb::Acquire);
        assert!(asked > 0);
        for keys in [&["a"][..], &["b", "a"], &["a", "b", "a"]] {
            let inner = locker.lock_many(keys).reentrant(true).run(async |again| {
                assert_eq!(again.token(), held.token());
                assert_eq!(current().map(|held| held.token()), Some(held.token()));
            });
            inner.await.expect("it is held");
            assert!(held.is_held() && is_taken(&locker, "a").await);
        }
        assert_eq!((store.faults().calls(Verb::Acquire), store.faults().calls(Verb::Release)), (asked, 0));
    });
    ran.await.expect("they are free");
    assert!(!is_taken(&locker, "a").await && !is_taken(&locker, "b").await);
    assert!(locker.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_is_given_back_with_the_last_guard_whichever_that_is() {
    let (locker, _) = locker();
    let request = locker.lock("k").reentrant(true).expires(3 * SECOND);
    let inner = request.clone().run(async |_| request.acquire().await.expect("it is held")).await;
    let inner = inner.expect("it is free");
    tokio::time::sleep(30 * SECOND).await;
    assert!(inner.is_held() && is_taken(&locker, "k").await);
    assert_eq!(locker.held().len(), 1);
    inner.release().await.expect("it was ours");
    assert!(!is_taken(&locker, "k").await && locker.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_dropped_inside_frees_nothing() {
    let (locker, _) = locker();
    let request = locker.lock("k").reentrant(true);
    let outer = request.clone().run(async |held| {
        drop(request.clone().acquire().await.expect("it is held"));
        tokio::time::sleep(SECOND).await;
        assert!(held.is_held() && is_taken(&locker, "k").await);
    });
    outer.await.expect("it is free");
    settled(&locker, "k").await;
}

#[tokio::test(start_paused = true)]
async fn who_did_not_ask_for_it_is_told_both_places() {
    let (locker, _) = locker();
    let line = line!() + 1;
    let outer = locker.lock("k").reentrant(true).run(async |_| {
        let error =
            locker.lock("k").wait(Wait::Forever).acquire().await.expect_err("it would wait for itself");
        let text = error.to_string();
        let LockError::WouldDeadlock { place, outer_place, .. } = error else { panic!("{text}") };
        assert!(place.file().ends_with("again.rs") && outer_place.line() == line && place.line() > line);
        assert!(text.contains(&place.to_string()) && text.contains(&outer_place.to_string()), "{text}");
    });
    outer.await.expect("it is free");
}

#[tokio::test(start_paused = true)]
async fn some_of_the_keys_are_not_enough() {
    let (locker, _) = locker();
    let outer = locker.lock("b").run(async |_| {
        let some = locker.lock_many(["b", "c"]).reentrant(true).wait(Wait::Forever).acquire().await;
        assert!(matches!(some, Err(LockError::WouldDeadlock { .. })), "{some:?}");
        assert!(!is_taken(&locker, "c").await);
    });
    outer.await.expect("it is free");
}

#[tokio::test(start_paused = true)]
async fn the_scope_is_the_body_and_who_is_handed_it() {
    let (locker, _) = locker();
    let request = locker.lock("k").reentrant(true);
    let outer = request.clone().run(async |held| {
        let spawned = tokio::spawn(request.clone().acquire()).await.expect("no panic");
        assert!(spawned.expect_err("a task is not the body").is_busy());
        let handed = tokio::spawn(held.scope().run(request.clone().acquire())).await.expect("no panic");
        let again = handed.expect("it was handed the scope");
        assert_eq!(again.token(), held.token());
        let same = locker.lock("k").wait(Wait::Forever);
        let refused = tokio::spawn(held.scope().run(same.acquire())).await.expect("no panic");
        assert!(matches!(refused, Err(LockError::WouldDeadlock { .. })), "{refused:?}");
        held.scope()
    });
    let scope = outer.await.expect("it is free");
    // It outlives the lock, and takes it anew.
    let anew = scope.clone().run(request.clone().acquire()).await.expect("it is free");
    let other = scope.run(locker.lock("k").acquire()).await.expect_err("a guard has no body");
    assert!(matches!(other, LockError::Busy { .. }), "{other}");
    anew.release().await.expect("it is ours");
}

#[tokio::test(start_paused = true)]
async fn a_loss_stops_every_body_also_in_another_task() {
    let (locker, _) = locker();
    let request = locker.lock("k").reentrant(true).expires(3 * SECOND);
    let inside = Arc::new(AtomicU32::new(0));
    let task = std::sync::Mutex::new(None);
    let outer = request.clone().run(async |held| {
        let (again, counter) = (request.clone(), Arc::clone(&inside));
        let work = held.scope().run(again.run(async move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }));
        *task.lock().expect("no panic") = Some(tokio::spawn(work));
        let nested = request.clone().run(async |_| {
            tokio::time::sleep(SECOND).await;
            locker.force_release("k", held.token()).await.expect("it is held");
            std::future::pending::<()>().await;
        });
        nested.await
    });
    let error = outer.await.expect_err("it is lost");
    assert!(error.is_lost(), "{error}");
    let task = task.lock().expect("no panic").take().expect("it was spawned");
    let error = tokio::time::timeout(SECOND, task).await.expect("it is woken").expect("no panic");
    assert!(error.expect_err("it is lost").is_lost());
    assert_eq!(inside.load(Ordering::SeqCst), 1);
    assert!(locker.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_not_entered_again() {
    let (locker, _) = locker();
    let request = locker.lock("k").reentrant(true).expires(3 * SECOND).on_lost(crate::OnLost::Continue);
    let outer = request.clone().run(async |held| {
        locker.force_release("k", held.token()).await.expect("it is held");
        held.lost().await;
        request.acquire().await.expect_err("it is lost").is_lost()
    });
    assert!(outer.await.expect("it goes on"));
}

#[tokio::test(start_paused = true)]
async fn a_minimum_hold_counts_from_the_grant_whichever_guard_is_the_last() {
    let (locker, _) = locker();
    let outer = locker
        .lock("k")
        .min_hold(30 * SECOND)
        .run(async |_| locker.lock("k").reentrant(true).acquire().await.expect("it is held"));
    let inner = outer.await.expect("it is free");
    tokio::time::sleep(10 * SECOND).await;
    inner.release().await.expect("it was ours");
    tokio::time::sleep(19 * SECOND).await;
    assert!(is_taken(&locker, "k").await);
    tokio::time::sleep(2 * SECOND).await;
    assert!(!is_taken(&locker, "k").await);
}
