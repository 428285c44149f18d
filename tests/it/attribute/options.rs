//! Options: durations in every form, the lease, the locker.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use lockattr::store::MemoryStore;
use lockattr::{LockError, Locker, distributed_lock};

use crate::support::{held, locker, run};

#[test]
fn literal_durations() {
    #[distributed_lock(key = "options-literal", expires = 60, wait = 0)]
    async fn integer() -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(key = "options-literal", expires = "500ms", wait = "2s")]
    async fn text() -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(key = "options-literal", expires = "24h", wait = "0s")]
    async fn long() -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(key = "options-literal", expires = 1_000_u64, wait = 0x10)]
    async fn suffixed() -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(renew, wait = "forever", key = "options-literal", expires = (30),)]
    async fn any_order() -> Result<(), LockError> {
        Ok(())
    }
    run(async {
        integer()
            .await
            .and(text().await)
            .and(long().await)
            .and(suffixed().await)
            .and(any_order().await)
            .unwrap();
    });
}

#[test]
fn durations_from_expressions() {
    const TTL: u64 = 30;
    const WAIT: Duration = Duration::from_millis(10);
    struct Config {
        ttl: Duration,
        wait: u32,
    }
    struct Service {
        config: Config,
    }
    #[distributed_lock(key = "options-expression", expires = TTL, wait = WAIT)]
    async fn constants() -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(key = "options-expression", expires = seconds, wait = seconds * 2)]
    async fn arguments(seconds: u64) -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(key = "options-expression", expires = *seconds as i32, wait = of)]
    async fn references(seconds: &u64, of: &Duration) -> Result<(), LockError> {
        Ok(())
    }
    impl Service {
        #[distributed_lock(key = "options-expression", expires = self.config.ttl, wait = self.config.wait)]
        async fn fields(self) -> Result<u32, LockError> {
            let service = self;
            Ok(service.config.wait)
        }
    }
    run(async {
        constants().await.and(arguments(3).await).and(references(&3, &WAIT).await).unwrap();
        let service = Service { config: Config { ttl: Duration::from_secs(1), wait: 2 } };
        assert_eq!(service.fields().await.unwrap(), 2);
    });
}

#[test]
fn durations_out_of_bounds_are_refused() {
    #[distributed_lock(key = "options-bounds", expires = expires, wait = wait)]
    async fn go(expires: Duration, wait: i64) -> Result<(), LockError> {
        Ok(())
    }
    for (expires, wait) in [(Duration::ZERO, 0), (Duration::from_hours(25), 0), (Duration::from_secs(1), -1)]
    {
        assert!(
            matches!(run(go(expires, wait)), Err(LockError::InvalidOptions { .. })),
            "{expires:?} {wait}"
        );
    }
    run(go(Duration::from_secs(1), 0)).unwrap();
}

#[test]
fn min_hold_keeps_the_key_taken() {
    #[distributed_lock(key = "options-hold", min_hold = "300ms")]
    async fn go() -> Result<(), LockError> {
        Ok(())
    }
    let started = Instant::now();
    run(go()).unwrap();
    assert!(run(go()).unwrap_err().is_busy());
    while run(go()).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(started.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_window_has_one_call() {
    #[distributed_lock(key = "options-window:{id}", once_per = "366d", on_busy = skip)]
    async fn yearly(id: u8) -> Result<Option<u8>, LockError> {
        Ok(Some(id))
    }
    #[distributed_lock(key = "options-window:given", once_per = window)]
    async fn given(window: Duration) -> Result<(), LockError> {
        Ok(())
    }
    assert_eq!(run(yearly(1)).unwrap(), Some(1));
    assert_eq!(run(yearly(1)).unwrap(), None);
    assert_eq!(run(yearly(2)).unwrap(), Some(2));
    run(given(Duration::from_hours(24 * 366))).unwrap();
    assert!(run(given(Duration::from_hours(24 * 366))).unwrap_err().is_busy());
    assert!(matches!(run(given(Duration::ZERO)), Err(LockError::InvalidOptions { .. })));
}

#[test]
fn the_lease_is_seen_under_its_name() {
    #[distributed_lock(key = "options-lease:{id}", lease = lease)]
    async fn go(id: u8) -> Result<u64, LockError> {
        lease.check()?;
        let token = lease.token();
        let in_task = tokio::spawn(async move { lease.check().map(|()| lease.token()) });
        assert_eq!(in_task.await.unwrap()?, token);
        Ok(token.get() + u64::from(id) - u64::from(id))
    }
    assert!(run(go(1)).unwrap() < run(go(1)).unwrap());
}

#[test]
fn lockers_of_every_kind_are_borrowed() {
    static LAZY: LazyLock<Locker> = LazyLock::new(|| Locker::new(MemoryStore::new()));
    struct Service {
        locks: Locker,
    }
    impl Service {
        #[distributed_lock(key = "options-locker", locker = self.locks)]
        async fn field(&self) -> Result<bool, LockError> {
            Ok(self.locks.inspect("options-locker").await?.is_some())
        }
    }
    #[distributed_lock(key = "options-locker", locker = locks)]
    async fn shared(locks: Arc<Locker>) -> Result<bool, LockError> {
        Ok(locks.inspect("options-locker").await?.is_some())
    }
    #[distributed_lock(key = "options-locker", locker = LAZY)]
    async fn lazy() -> Result<bool, LockError> {
        Ok(LAZY.inspect("options-locker").await?.is_some())
    }
    #[distributed_lock(key = "options-locker", locker = locker())]
    async fn call() -> Result<bool, LockError> {
        Ok(held("options-locker"))
    }
    let own = || Locker::new(MemoryStore::new());
    assert!(run(Service { locks: own() }.field()).unwrap());
    assert!(run(shared(Arc::new(own()))).unwrap());
    assert!(run(lazy()).unwrap());
    assert!(run(call()).unwrap());
}

#[test]
fn a_detached_release_arrives_soon() {
    #[distributed_lock(key = "options-detached", release = detached)]
    async fn go() -> Result<(), LockError> {
        Ok(())
    }
    run(async {
        go().await.unwrap();
        assert!(crate::support::becomes_free("options-detached").await);
    });
}

#[cfg(feature = "testing")]
#[test]
fn tests_may_ask_whether_a_key_is_held() {
    #[distributed_lock(key = "options-testing")]
    async fn go() -> Result<bool, LockError> {
        Ok(lockattr::testing::is_held("options-testing"))
    }
    assert!(run(go()).unwrap());
    assert!(!lockattr::testing::is_held("options-testing"));
}
