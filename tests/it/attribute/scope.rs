//! What code that runs under a lock can ask about it.

use lockattr::{LockError, assert_locked, current, distributed_lock, holds, key};

use crate::support::{locker, run};

fn panics(check: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).expect_err("it panics");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn called_code_sees_the_innermost_lock() {
    fn seen() -> Option<String> {
        current().map(|held| held.key().to_owned())
    }
    #[distributed_lock(key = "scope-outer:{id}")]
    async fn outer(id: u8) -> Result<(), LockError> {
        assert_eq!(seen().as_deref(), Some("scope-outer:1"));
        inner(id + 1).await?;
        assert_eq!(seen().as_deref(), Some("scope-outer:1"));
        assert_eq!(tokio::spawn(async { seen() }).await.unwrap(), None);
        Ok(())
    }
    #[distributed_lock(key = "scope-inner:{id}", lease = lease)]
    async fn inner(id: u8) -> Result<(), LockError> {
        assert_eq!(seen().as_deref(), Some("scope-inner:2"));
        assert_eq!(current().map(|held| held.token()), Some(lease.token()));
        assert!(holds("scope-inner:2") && holds("scope-outer:1") && !holds("scope-outer:2"));
        Ok(())
    }
    assert!(current().is_none() && !holds("scope-outer:1"));
    run(outer(1)).unwrap();
    assert!(current().is_none());
}

#[test]
fn what_must_be_locked_is_asserted() {
    struct Account {
        id: u64,
    }
    impl Account {
        fn post(&self) {
            assert_locked!("scope-account:{self.id}");
        }
    }
    #[distributed_lock(keys = ["scope-account:{from}", "scope-account:{to}"])]
    async fn transfer(from: u64, to: u64, other: u64) -> Result<(), LockError> {
        Account { id: from }.post();
        Account { id: to }.post();
        assert_locked!("scope-account:{to}",);
        let text = panics(|| Account { id: other }.post());
        assert_eq!(
            text,
            "`scope-account:{self.id}` is not locked here: the body that runs holds `scope-account:{to}`, \
             `scope-account:{from}`"
        );
        let text = panics(|| assert_locked!("scope-account:{from}{{}}"));
        assert!(text.starts_with("`scope-account:{from}{{}}` is not locked here"), "{text}");
        let from = other;
        let text = panics(|| assert_locked!("scope-account:{from}"));
        assert!(text.ends_with("`scope-account:{from}` with other values"), "{text}");
        Ok(())
    }
    run(transfer(2, 1, 99)).unwrap();
    let text = panics(|| Account { id: 1 }.post());
    assert!(text.contains("no locked body runs"), "{text}");
}

#[test]
fn a_reentrant_body_enters_again() {
    #[distributed_lock(key = "scope-again:{id}", reentrant, lease = lease)]
    async fn countdown(id: u8, left: u8, tokens: &mut Vec<u64>) -> Result<(), LockError> {
        tokens.push(lease.token().get());
        if left > 0 {
            Box::pin(countdown(id, left - 1, tokens)).await?;
        }
        lease.check()
    }
    #[distributed_lock(keys = ["scope-again:{from}", "scope-again:{to}"], wait = "forever")]
    async fn both(from: u8, to: u8) -> Result<bool, LockError> {
        let mut tokens = Vec::new();
        countdown(from, 1, &mut tokens).await?;
        countdown(to, 0, &mut tokens).await?;
        tokens.dedup();
        assert_eq!(tokens.len(), 1);
        plain(from).await
    }
    #[distributed_lock(key = "scope-again:{id}", reentrant = false, on_busy = value(Ok(true)))]
    async fn plain(id: u8) -> Result<bool, LockError> {
        Ok(false)
    }
    let mut tokens = Vec::new();
    run(countdown(1, 3, &mut tokens)).unwrap();
    assert_eq!(tokens.len(), 4);
    assert!(tokens.windows(2).all(|pair| pair[0] == pair[1]), "{tokens:?}");
    assert!(!crate::support::held("scope-again:1"));
    assert!(run(both(1, 2)).unwrap());
}

#[test]
fn a_body_that_waits_for_itself_is_told_where() {
    let line = line!() + 1;
    #[distributed_lock(key = "scope-places:{id}", wait = "forever")]
    async fn outer(id: u8) -> Result<(), LockError> {
        inner(id).await
    }
    #[distributed_lock(key = "scope-places:{name}", wait = "forever")]
    async fn inner(name: u8) -> Result<(), LockError> {
        unreachable!("it would wait for itself: {name}")
    }
    let text = run(outer(1)).unwrap_err().to_string();
    for place in [line, line + 4] {
        assert!(text.contains(&format!("scope.rs:{place}:")), "{text}");
    }
}

#[test]
fn a_lost_lock_is_not_held() {
    #[distributed_lock(key = "scope-lost:{id}", expires = "600ms", on_lost = continue, lease = lease)]
    async fn brief(id: u8) -> Result<(), LockError> {
        assert_locked!("scope-lost:{id}");
        locker().force_release(&key!("scope-lost:{id}"), lease.token()).await?;
        lease.lost().await;
        assert!(!holds("scope-lost:1"));
        let text = panics(|| assert_locked!("scope-lost:{id}"));
        assert!(text.contains("has lost it"), "{text}");
        Ok(())
    }
    run(brief(1)).unwrap();
}
