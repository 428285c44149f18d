//! What a call does in time: it excludes others, ends with its body, and gives back whatever happens.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use lockattr::{LockError, LossCause, distributed_lock};

use crate::support::{becomes_free, held, run};

#[test]
fn every_normal_end_gives_back_before_the_call_returns() {
    #[distributed_lock(key = "flow-end")]
    async fn go(how: u8) -> Result<u8, Box<dyn std::error::Error + Send + Sync>> {
        if how == 0 {
            return Ok(0);
        }
        let parsed: u8 = if how == 1 { "x" } else { "2" }.parse()?;
        Ok(parsed)
    }
    for (how, expected) in [(0, Some(0)), (1, None), (2, Some(2))] {
        assert_eq!(run(go(how)).ok(), expected);
        assert!(!held("flow-end"));
    }
}

#[test]
fn two_calls_with_one_key_never_overlap_and_two_keys_do() {
    static NOW: AtomicU32 = AtomicU32::new(0);
    static MOST: AtomicU32 = AtomicU32::new(0);
    #[distributed_lock(key = "flow-exclude:{id}", wait = 10)]
    async fn go(id: u8) -> Result<(), LockError> {
        MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        NOW.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
    run(async {
        let (a, b, c) = tokio::join!(go(1), go(1), go(1));
        a.and(b).and(c).unwrap();
        assert_eq!(MOST.swap(0, Ordering::SeqCst), 1);
        let (a, b) = tokio::join!(go(1), go(2));
        a.and(b).unwrap();
        assert_eq!(MOST.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn dropping_the_call_gives_back() {
    #[distributed_lock(key = "flow-cancel", expires = 600)]
    async fn stuck() -> Result<(), LockError> {
        std::future::pending().await
    }
    run(async {
        for _ in 0..2 {
            assert!(tokio::time::timeout(Duration::from_millis(30), stuck()).await.is_err());
            assert!(becomes_free("flow-cancel").await);
        }
    });
}

#[test]
fn dropping_a_waiting_call_leaves_nothing() {
    #[distributed_lock(key = "flow-waiting", wait = 60)]
    async fn go(ms: u64) -> Result<(), LockError> {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(())
    }
    run(async {
        let waiter = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            tokio::time::timeout(Duration::from_millis(20), go(1)).await
        };
        let (holder, waiter) = tokio::join!(go(60), waiter);
        holder.unwrap();
        assert!(waiter.is_err());
        assert!(!held("flow-waiting"));
    });
}

#[test]
fn a_panic_in_the_body_gives_back_and_goes_on() {
    #[distributed_lock(key = "flow-panic")]
    async fn go(fails: bool) -> Result<(), LockError> {
        assert!(!fails, "the body's own words");
        Ok(())
    }
    run(async {
        let panic = tokio::spawn(go(true)).await.unwrap_err().into_panic();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the body's own words"));
        assert!(becomes_free("flow-panic").await);
        go(false).await.unwrap();
    });
}

#[test]
fn the_call_does_nothing_before_it_is_polled() {
    #[distributed_lock(key = "flow-lazy")]
    async fn go() -> Result<(), LockError> {
        Ok(())
    }
    let call = go();
    assert!(!held("flow-lazy"));
    run(call).unwrap();
}

#[test]
fn a_lost_lock_stops_the_body_and_drops_it_before_the_release() {
    static HELD_AT_DROP: AtomicBool = AtomicBool::new(false);
    struct Noted;
    impl Drop for Noted {
        fn drop(&mut self) {
            HELD_AT_DROP.store(held("flow-lost"), Ordering::SeqCst);
        }
    }
    #[distributed_lock(key = "flow-lost", max_hold = "100ms")]
    async fn too_long(_noted: Noted) -> Result<(), LockError> {
        std::future::pending().await
    }
    #[distributed_lock(key = "flow-lease", expires = "200ms", renew = false)]
    async fn runs_out() -> Result<(), LockError> {
        std::future::pending().await
    }
    let lost = run(too_long(Noted)).unwrap_err();
    assert!(matches!(lost, LockError::Lost { cause: LossCause::MaxHold, .. }), "{lost}");
    assert!(HELD_AT_DROP.load(Ordering::SeqCst));
    run(async { assert!(becomes_free("flow-lost").await) });
    let lost = run(runs_out()).unwrap_err();
    assert!(matches!(lost, LockError::Lost { cause: LossCause::Expired, .. }), "{lost}");
}

#[test]
fn with_on_lost_continue_the_body_runs_on_and_its_release_leaves_others_alone() {
    static OTHER_INSIDE: AtomicBool = AtomicBool::new(false);
    static FIRST_GONE: AtomicBool = AtomicBool::new(false);
    async fn until(flag: &AtomicBool) {
        while !flag.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    #[distributed_lock(key = "flow-continue", expires = "200ms", renew = false, on_lost = continue)]
    async fn first() -> Result<(), LockError> {
        until(&OTHER_INSIDE).await;
        Ok(())
    }
    #[distributed_lock(key = "flow-continue", expires = 60, wait = 20)]
    async fn other() -> Result<(), LockError> {
        OTHER_INSIDE.store(true, Ordering::SeqCst);
        until(&FIRST_GONE).await;
        assert!(held("flow-continue"), "the first one's late release took the lock away");
        Ok(())
    }
    run(async {
        let second = tokio::spawn(async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            other().await
        });
        first().await.unwrap();
        FIRST_GONE.store(true, Ordering::SeqCst);
        second.await.unwrap().unwrap();
        assert!(!held("flow-continue"));
    });
}

#[test]
fn control_flow_of_every_kind() {
    #[distributed_lock(key = "flow-control")]
    async fn go() -> Result<u8, LockError> {
        let small = |x: u8| -> Option<u8> {
            if x == 0 {
                return None;
            }
            Some(x)
        };
        let two = async {
            if small(1).is_none() {
                return 0_u8;
            }
            2
        };
        let got = tokio::select! {
            value = two => value,
            () = tokio::time::sleep(Duration::from_secs(5)) => return Ok(9),
        };
        let (x, y) = tokio::join!(async { 1_u8 }, async { 2_u8 });
        let Some(z) = small(3) else { return Ok(0) };
        let found = 'outer: loop {
            for i in 0.. {
                if i == 4 {
                    break 'outer i;
                }
            }
        };
        Ok(got + x + y + z + found)
    }
    assert_eq!(run(go()).unwrap(), 12);
}

#[test]
fn an_inner_attribute_holds_for_the_function() {
    #[distributed_lock(key = "flow-inner:{id}")]
    async fn go(id: u8) -> Result<u8, LockError> {
        #![allow(unused_variables, non_snake_case)]
        let Loud = 1;
        Ok(id)
    }
    assert_eq!(run(go(3)).unwrap(), 3);
}

#[test]
fn temporaries_of_the_tail_are_dropped_as_in_this_edition() {
    #[distributed_lock(key = "flow-tail")]
    async fn owned(list: Mutex<Vec<u8>>) -> Result<u8, LockError> {
        match list.lock().unwrap().first() {
            Some(first) => Ok(*first),
            None => Ok(0),
        }
    }
    assert_eq!(run(owned(Mutex::new(vec![7]))).unwrap(), 7);
}

#[test]
fn the_same_key_below_is_refused_at_once_and_another_is_not() {
    #[distributed_lock(key = "flow-depth:{n}")]
    async fn down(n: u32) -> Result<u32, LockError> {
        if n == 0 {
            return Ok(0);
        }
        Ok(Box::pin(down(n - 1)).await? + n)
    }
    #[distributed_lock(key = "flow-same", wait = 60)]
    async fn same(n: u32) -> Result<u32, LockError> {
        if n == 0 { Ok(0) } else { Box::pin(same(n - 1)).await }
    }
    assert_eq!(run(down(4)).unwrap(), 10);
    assert!(matches!(run(same(1)), Err(LockError::WouldDeadlock { .. })));
    assert!(!held("flow-same"));
}
