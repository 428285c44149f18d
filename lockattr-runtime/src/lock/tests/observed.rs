//! What a lock tells the outside: spans, events, counters and its record, without keys and owners.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record as Values};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use crate::error::Locked;
use crate::options::LockOptions;
use crate::store::{Fault, FaultStore, Verb};

pub(super) const TEMPLATE: &str = "user:{email}";
const KEY: &str = "user:ann@example.org";

/// Writes every span and event down, with the names of the spans around it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Written>>);

#[derive(Default)]
struct Written {
    text: String,
    names: Vec<&'static str>,
    entered: Vec<u64>,
}

impl Visit for Written {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.text, " {}={value:?}", field.name());
    }
}

impl Log {
    fn with<T>(&self, look: impl FnOnce(&mut Written) -> T) -> T {
        look(&mut self.0.lock().expect("no panic"))
    }

    fn text(&self) -> String {
        self.with(|written| written.text.clone())
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("lockattr")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.with(|written| {
            let name = span.metadata().name();
            let _ = write!(written.text, "\nspan {name}");
            span.record(written);
            written.names.push(name);
            Id::from_u64(u64::try_from(written.names.len()).expect("few spans"))
        })
    }

    fn record(&self, _: &Id, values: &Values<'_>) {
        self.with(|written| values.record(written));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.with(|written| {
            let around = written
                .entered
                .last()
                .map_or("", |id| written.names[usize::try_from(*id).expect("few spans") - 1]);
            let _ = write!(written.text, "\nevent {} in [{around}]", event.metadata().level());
            event.record(written);
        });
    }

    fn enter(&self, span: &Id) {
        self.with(|written| written.entered.push(span.into_u64()));
    }

    fn exit(&self, _: &Id) {
        self.with(|written| written.entered.pop());
    }
}

pub(super) fn user() -> Vec<Locked> {
    vec![Locked::new(TEMPLATE, KEY)]
}

pub(super) fn options(expires: Duration, wait: Duration) -> LockOptions {
    LockOptions { expires, wait: Wait::AtMost(wait), ..LockOptions::default() }
}

/// Everything that can be told: got, busy, given up, renewed badly, lost, released badly, forced.
pub(super) async fn all_that_happens(locker: &Locker, store: &FaultStore<MemoryStore>) -> String {
    let guard = locker.enter(user(), options(SECOND, Duration::ZERO), here()).await.expect("it is free");
    let owner = guard.tenure().leases[0].owner.as_uuid().to_string();
    locker.enter(user(), options(SECOND, Duration::ZERO), here()).await.expect_err("it is held");
    locker.enter(user(), options(SECOND, 2 * SECOND), here()).await.expect_err("it is held");
    let given_up = locker.enter(user(), options(SECOND, 20 * SECOND), here());
    tokio::time::timeout(SECOND, given_up).await.expect_err("it is held");
    store.faults().times(Verb::Renew, 2, Fault::Refuse);
    tokio::time::sleep(2 * SECOND).await;
    store.faults().once(Verb::Release, Fault::LoseRequest);
    guard.release().await.expect_err("it is not confirmed");
    settled(locker, KEY).await;
    let guard = locker.enter(user(), options(SECOND, Duration::ZERO), here()).await.expect("it is free");
    store.faults().always(Verb::Renew, Fault::Refuse);
    guard.lost().await;
    store.faults().always(Verb::Acquire, Fault::Refuse);
    locker.enter(user(), options(SECOND, Duration::ZERO), here()).await.expect_err("the store fails");
    drop(guard);
    store.faults().heal();
    settled(locker, KEY).await;
    let mut guard = locker.enter(user(), options(SECOND, Duration::ZERO), here()).await.expect("it is free");
    {
        let mut body = std::pin::pin!(async { tracing::info!("the body's own") });
        std::future::poll_fn(|cx| guard.poll_body(body.as_mut(), cx)).await.expect("it is held");
    }
    guard.release().await.expect("it was ours");
    owner
}

pub(super) fn faulty() -> (Locker, FaultStore<MemoryStore>) {
    let store = FaultStore::new(store());
    (Locker::simulated(store.clone(), &SimMachine::new(1)), store)
}

#[tokio::test(start_paused = true)]
async fn spans_and_events_carry_the_template_and_never_the_key_or_the_owner() {
    let log = Log::default();
    let _default = tracing::subscriber::set_default(log.clone());
    let (locker, store) = faulty();
    let owner = all_that_happens(&locker, &store).await;
    let text = log.text();
    assert!(!text.contains("ann@") && !text.contains(&owner), "{text}");
    for expected in [
        "span lock.acquire template=\"user:{email}\" store=\"memory\"",
        "span lock.hold template=\"user:{email}\" store=\"memory\" token=",
        "span lock.release template=\"user:{email}\" store=\"memory\"",
        "event DEBUG in [lock.acquire] message=lock acquired template=\"user:{email}\"",
        "message=lock not acquired template=\"user:{email}\" store=\"memory\" waited=0ns outcome=\"busy\"",
        "outcome=\"timeout\"",
        "message=acquisition cancelled",
        "event WARN in [] message=renewal failed, trying again template=\"user:{email}\"",
        "event ERROR in [] message=lock lost template=\"user:{email}\" cause=its lease ran out",
        "event WARN in [lock.release] message=release failed, trying again",
        "event INFO in [lock.hold] message=the body's own",
        "event DEBUG in [lock.release] message=lock released",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_in_the_middle_of_a_renewal_reports_no_failure() {
    let log = Log::default();
    let _default = tracing::subscriber::set_default(log.clone());
    let (locker, store) = faulty();
    store.faults().always(Verb::Renew, Fault::LateAnswer(SECOND));
    let guard = locker.enter(user(), options(30 * SECOND, Duration::ZERO), here()).await.expect("it is free");
    while store.faults().calls(Verb::Renew) == 0 {
        tokio::time::sleep(SECOND / 10).await;
    }
    guard.release().await.expect("it was ours");
    tokio::time::sleep(5 * SECOND).await;
    let text = log.text();
    assert!(!text.contains("WARN") && !text.contains("ERROR"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_polls_is_warned_about_once() {
    let log = Log::default();
    let _default = tracing::subscriber::set_default(log.clone());
    let (locker, _) = locker();
    let mut guard = locker.enter(user(), options(SECOND, Duration::ZERO), here()).await.expect("it is free");
    let polls = AtomicU64::new(0);
    let mut body = std::pin::pin!(std::future::poll_fn(|_| {
        polls.fetch_add(1, Ordering::Relaxed);
        std::task::Poll::<()>::Pending
    }));
    std::future::poll_fn(|cx| {
        assert!(guard.poll_body(body.as_mut(), cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    tokio::time::sleep(60 * SECOND).await;
    assert!(guard.is_held());
    assert_eq!(log.text().matches("is not being polled").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_record_names_its_holder() {
    let (locker, _) = locker();
    let guard = locker.enter(user(), options(SECOND, Duration::ZERO), here()).await.expect("it is free");
    tokio::time::sleep(SECOND / 2).await;
    let record = locker.inspect(KEY).await.expect("the store answers").expect("it is held");
    assert_eq!(record.token, guard.token());
    let RecordState::Held { remaining, age, holder } = record.state else { panic!("it is held") };
    assert!(remaining <= SECOND && age == SECOND / 2);
    assert_eq!((holder.pid, holder.label.as_str()), (std::process::id(), TEMPLATE));
    assert!(!holder.host.is_empty());
    let labelled = LockOptions { label: Some("nightly".to_owned()), ..options(SECOND, Duration::ZERO) };
    let _other = locker.enter(vec![Locked::plain("k")], labelled, here()).await.expect("it is free");
    let record = locker.inspect("k").await.expect("the store answers").expect("it is held");
    assert!(matches!(record.state, RecordState::Held { holder, .. } if holder.label == "nightly"));
}
