//! What a call returns when the lock is taken.

use std::sync::atomic::{AtomicU32, Ordering};

use lockattr::{LockError, distributed_lock};

use crate::support::{locker, run};

static RUNS: AtomicU32 = AtomicU32::new(0);

fn ran() {
    RUNS.fetch_add(1, Ordering::SeqCst);
}

#[distributed_lock(key = "busy")]
async fn errors() -> Result<u8, LockError> {
    ran();
    Ok(1)
}

#[distributed_lock(key = "busy", on_busy = skip)]
async fn option() -> Result<Option<u8>, LockError> {
    ran();
    Ok(Some(1))
}

#[distributed_lock(key = "busy", on_busy = skip)]
async fn unit() -> Result<(), LockError> {
    ran();
    Ok(())
}

#[distributed_lock(key = "busy", on_busy = skip, on_error = panic)]
async fn plain_unit() {
    ran();
}

#[distributed_lock(key = "busy", on_busy = skip, on_error = panic)]
async fn plain_option() -> Option<u8> {
    ran();
    Some(1)
}

#[distributed_lock(key = "busy", on_busy = value(Ok(name.len())))]
async fn value(name: &str) -> Result<usize, LockError> {
    ran();
    Ok(0)
}

#[distributed_lock(key = "busy", on_busy = value(Ok(name)))]
async fn value_that_moves(name: String) -> Result<String, LockError> {
    ran();
    Ok(name + "!")
}

#[distributed_lock(key = "busy", on_busy = value(7), on_error = panic)]
async fn plain_value() -> u8 {
    ran();
    1
}

async fn all_are_left_out() {
    assert!(errors().await.unwrap_err().is_busy());
    assert_eq!(option().await.unwrap(), None);
    unit().await.unwrap();
    plain_unit().await;
    assert_eq!(plain_option().await, None);
    assert_eq!(value("abc").await.unwrap(), 3);
    assert_eq!(value_that_moves("a".into()).await.unwrap(), "a");
    assert_eq!(plain_value().await, 7);
    assert_eq!(RUNS.load(Ordering::SeqCst), 0);
}

#[test]
fn a_taken_lock_is_what_the_attribute_says() {
    #[distributed_lock(key = "busy")]
    async fn enclosing() -> Result<(), LockError> {
        all_are_left_out().await;
        Ok(())
    }
    run(async {
        let guard = locker().lock("busy").acquire().await.unwrap();
        all_are_left_out().await;
        guard.release().await.unwrap();
        enclosing().await.unwrap();

        assert_eq!(option().await.unwrap(), Some(1));
        assert_eq!(value("abc").await.unwrap(), 0);
        assert_eq!(value_that_moves("a".into()).await.unwrap(), "a!");
        assert_eq!(plain_value().await, 1);
        assert_eq!(RUNS.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn what_is_wrong_with_the_call_is_never_skipped() {
    #[distributed_lock(key = key, on_busy = skip)]
    async fn skips(key: &str) -> Result<(), LockError> {
        Ok(())
    }
    assert!(matches!(run(skips("")), Err(LockError::InvalidKey { .. })));
}
