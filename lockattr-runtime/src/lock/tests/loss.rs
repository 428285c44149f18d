//! When a lock counts as lost, what the body sees of it, and what goes out after it.

use std::sync::Mutex;

use super::*;
use crate::store::{Fault, FaultStore, Verb};
use crate::{Held, OnLost};

fn faulty() -> (Locker, FaultStore<MemoryStore>) {
    let store = FaultStore::new(store());
    (Locker::simulated(store.clone(), &SimMachine::new(1)), store)
}

fn cause(error: &LockError) -> Option<LossCause> {
    match error {
        LockError::Lost { cause, .. } => Some(*cause),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn failed_renewals_are_no_loss_until_the_deadline() {
    for fault in [Fault::LoseRequest, Fault::Refuse, Fault::Hang, Fault::LoseAnswer] {
        let (locker, store) = faulty();
        let guard = locker.lock("k").expires(10 * SECOND).acquire().await.expect("it is free");
        store.faults().always(Verb::Renew, fault);
        tokio::time::sleep(Duration::from_millis(8_500)).await;
        assert!(guard.is_held(), "{fault:?}");
        assert!(store.faults().calls(Verb::Renew) > 2, "{fault:?}: it is tried again");
        store.faults().heal();
        tokio::time::sleep(30 * SECOND).await;
        assert!(guard.is_held(), "{fault:?}");
        store.faults().cut();
        guard.lost().await;
        assert_eq!(guard.check().err().as_ref().and_then(cause), Some(LossCause::Expired), "{fault:?}");
        // A loss is final, although the store comes back before the lease is over there.
        store.faults().heal();
        assert!(is_taken(&locker, "k").await, "{fault:?}");
        tokio::time::sleep(30 * SECOND).await;
        assert!(!guard.is_held(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_never_makes_a_record_again() {
    let (locker, store) = faulty();
    let guard = locker.lock("k").expires(3 * SECOND).acquire().await.expect("it is free");
    store.inner().forget_all();
    guard.lost().await;
    assert_eq!(guard.check().err().as_ref().and_then(cause), Some(LossCause::NotOurs));
    tokio::time::sleep(10 * SECOND).await;
    assert!(locker.inspect("k").await.expect("the store answers").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_expired_holder_does_not_free_the_next_one() {
    let (slow, machine) = locker();
    let store = store();
    let slow = Locker { shared: Locker::simulated(store.clone(), &machine).shared, ..slow };
    let other = Locker::simulated(store, &SimMachine::new(2));
    let held_up = slow.lock("k").expires(SECOND).acquire().await.expect("it is free");
    machine.pause();
    let next = other.lock("k").expires(SECOND).wait(5 * SECOND).acquire().await.expect("it ran out");
    machine.resume();
    assert!(!held_up.is_held() && next.token() > held_up.token());
    drop(held_up);
    tokio::time::sleep(10 * SECOND).await;
    assert!(next.is_held() && is_taken(&other, "k").await);
}

/// A store whose renewals panic.
#[derive(Clone)]
struct PanicsAtRenewal(MemoryStore);

impl crate::store::Store for PanicsAtRenewal {
    fn name(&self) -> &'static str {
        "panics"
    }
    fn supports(&self, feature: Feature) -> bool {
        self.0.supports(feature)
    }
    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        self.0.acquire(lease).await
    }
    async fn renew(&self, _: &Lease) -> Result<Renewed, StoreError> {
        std::panic::resume_unwind(Box::new("in the driver"))
    }
    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        self.0.release(lease, keep).await
    }
    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.0.inspect(key).await
    }
    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.0.list(prefix, after, limit).await
    }
    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        self.0.force_release(key, token).await
    }
    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        self.0.collect(retention, limit).await
    }
    async fn audit(&self) -> Result<Audit, StoreError> {
        self.0.audit().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_panics_is_a_loss_and_is_reported_as_one() {
    let locker = Locker::simulated(PanicsAtRenewal(store()), &SimMachine::new(1));
    let ended = locker.lock("k").expires(3 * SECOND).run(async |_| std::future::pending::<()>().await).await;
    assert_eq!(ended.err().as_ref().and_then(cause), Some(LossCause::RenewalDied));
    settled(&locker, "k").await;
}

/// Notes when it is polled and dropped, and whether the lock was held and there then.
struct Noting {
    locker: Locker,
    held: Held,
    notes: Arc<Mutex<Vec<(&'static str, bool)>>>,
    tick: tokio::time::Interval,
}

impl Noting {
    fn note(&self, what: &'static str) {
        self.notes.lock().expect("no panic").push((what, self.held.is_held()));
    }
}

impl Future for Noting {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.note("polled");
        while self.tick.poll_tick(cx).is_ready() {}
        std::task::Poll::Pending
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        // The memory store answers at the first poll.
        let mut asking = Box::pin(is_taken(&self.locker, "k"));
        let taken = asking.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert_eq!(taken, std::task::Poll::Ready(true), "the lock was given back under its body");
        self.note("dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_is_never_polled_after_the_loss_and_is_gone_before_the_release() {
    for jump in [Duration::ZERO, 30 * SECOND] {
        let (locker, machine) = locker();
        let notes = Arc::default();
        let tick = tokio::time::interval(Duration::from_millis(7));
        let body = async |held: Held| {
            Noting { locker: locker.clone(), held, notes: Arc::clone(&notes), tick }.await;
        };
        let running = locker.lock("k").expires(10 * SECOND).renew(false).run(body);
        let jumping = async {
            tokio::time::sleep(SECOND).await;
            machine.jump(jump);
        };
        let (ended, ()) = tokio::join!(running, jumping);
        assert_eq!(ended.err().as_ref().and_then(cause), Some(LossCause::Expired));
        let notes = notes.lock().expect("no panic").clone();
        let (last, before) = notes.split_last().expect("it was polled");
        assert_eq!(*last, ("dropped", false));
        assert!(before.len() > 100 && before.iter().all(|note| *note == ("polled", true)));
        settled(&locker, "k").await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_on_lost_continue_the_body_ends_by_itself_and_its_result_is_kept() {
    let (locker, _) = locker();
    let body = async |held: Held| {
        held.lost().await;
        tokio::time::sleep(5 * SECOND).await;
        held.check().expect_err("it is lost");
        7
    };
    let ended = locker.lock("k").expires(SECOND).renew(false).on_lost(OnLost::Continue).run(body).await;
    assert_eq!(ended.expect("the body's own result"), 7);
    assert!(!is_taken(&locker, "k").await);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_body_gives_the_lock_back() {
    let (locker, _) = locker();
    let running = tokio::spawn({
        let locker = locker.clone();
        async move { locker.lock("k").run(async |_| std::panic::resume_unwind(Box::new("body"))).await }
    });
    let ended: Result<Result<(), LockError>, _> = running.await;
    assert!(ended.expect_err("the panic goes on").is_panic());
    settled(&locker, "k").await;
}

#[tokio::test(start_paused = true)]
async fn losing_one_of_several_keys_is_losing_all_and_the_rest_is_given_back() {
    let (locker, _) = locker();
    let running = locker.lock_many(["a", "b", "c"]).expires(3 * SECOND).run(async |held| {
        locker.force_release("b", held.token_of("b").expect("it is held")).await.expect("it is held");
        std::future::pending::<()>().await;
    });
    assert_eq!(running.await.err().as_ref().and_then(cause), Some(LossCause::NotOurs));
    settled(&locker, "a").await;
    settled(&locker, "c").await;
}
