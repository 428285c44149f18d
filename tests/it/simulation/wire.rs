//! The network between one machine and the store: delays, losses, repeats, cuts.
//!
//! Invariant: a request that is under way goes on, whatever becomes of who sent it.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use lockattr::lease::{Acquired, AcquiredMany, FencingToken, Forced, Lease, Record, Released, Renewed};
use lockattr::store::{Audit, Feature, Store, StoreError, TtlRange, Wake, Watch};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::chance::Chance;
use super::ledger::{Ledger, op_of};
use super::weather::Weather;
use super::witness::Witness;

/// One machine's way to the store.
#[derive(Clone)]
pub(super) struct Wire(Arc<Line>);

struct Line {
    ledger: Arc<Ledger>,
    witness: Arc<Witness>,
    weather: Weather,
    state: Mutex<State>,
}

struct State {
    chance: Chance,
    /// The network is repaired: requests arrive, and fast.
    healed: bool,
    cut: bool,
}

/// What happens to one request.
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that may happen")]
#[derive(Debug, Default)]
struct Fate {
    there: Duration,
    back: Duration,
    refused: bool,
    lose_request: bool,
    lose_answer: bool,
    /// The caller never hears of it, or is told that it failed.
    silent: bool,
    /// It fails for its caller at once and lands after this long.
    late: Option<Duration>,
    /// It lands once more after this long.
    again: Option<Duration>,
}

impl Wire {
    pub(super) fn new(ledger: Arc<Ledger>, witness: Arc<Witness>, weather: Weather, chance: Chance) -> Self {
        let state = Mutex::new(State { chance, healed: false, cut: false });
        Self(Arc::new(Line { ledger, witness, weather, state }))
    }

    pub(super) fn cut(&self, cut: bool) {
        self.with(|state| state.cut = cut);
    }

    pub(super) fn heal(&self) {
        self.with(|state| (state.healed, state.cut) = (true, false));
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_cut(&self) -> bool {
        self.with(|state| state.cut)
    }

    fn fate(&self) -> Fate {
        let weather = &self.0.weather;
        self.with(|state| {
            let chance = &mut state.chance;
            let delay = if state.healed { weather.small_delay() } else { weather.delay };
            let (there, back) = (chance.up_to(delay), chance.up_to(delay));
            let mut fate = Fate { there, back, ..Fate::default() };
            if state.healed {
                return fate;
            }
            fate.silent = chance.percent(50);
            fate.refused = chance.percent(weather.refused);
            let lost = chance.percent(weather.lost);
            fate.lose_request = lost && chance.percent(50);
            fate.lose_answer = lost && !fate.lose_request;
            if chance.percent(weather.late) {
                fate.late = Some(chance.up_to(weather.belated()));
            }
            if chance.percent(weather.repeated) {
                fate.again = Some(chance.up_to(weather.belated()));
            }
            fate
        })
    }

    /// Carries one request to the store and its answer back.
    async fn send<T: Send + 'static>(
        &self,
        request: impl Fn(&Ledger) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let fate = self.fate();
        let (reply, answer) = oneshot::channel();
        let wire = self.clone();
        tokio::spawn(async move {
            let ledger = &*wire.0.ledger;
            sleep(fate.there).await;
            let lost = |reply: oneshot::Sender<_>| {
                if fate.silent {
                    return;
                }
                let _ = reply.send(Err(StoreError::unknown("the connection broke")));
            };
            if let Some(late) = fate.late {
                lost(reply);
                sleep(late).await;
                let _ = request(ledger);
            } else if fate.lose_request || wire.is_cut() {
                sleep(fate.back).await;
                lost(reply);
            } else if fate.refused {
                let _ = reply.send(Err(StoreError::refused("not now")));
            } else {
                let result = request(ledger);
                sleep(fate.back).await;
                if fate.lose_answer || wire.is_cut() {
                    lost(reply);
                } else {
                    let _ = reply.send(result);
                }
                if let Some(again) = fate.again {
                    sleep(again).await;
                    let _ = request(ledger);
                }
            }
        });
        match answer.await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Store for Wire {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn ttl_range(&self) -> TtlRange {
        self.0.ledger.store().ttl_range()
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::Keep => self.0.weather.keep,
            Feature::Watch => self.0.weather.hints,
            feature => self.0.ledger.store().supports(feature),
        }
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        let lease = lease.clone();
        self.send(move |ledger| ledger.acquire(&lease)).await
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        let op = op_of(lease);
        self.0.witness.renewing(op, false);
        let lease = lease.clone();
        let answer = self.send(move |ledger| ledger.renew(&lease)).await;
        if answer.is_ok() {
            self.0.witness.renewing(op, true);
        }
        answer
    }

    async fn release(&self, lease: &Lease, keep: Option<Duration>) -> Result<Released, StoreError> {
        let lease = lease.clone();
        self.send(move |ledger| ledger.release(&lease, keep)).await
    }

    async fn acquire_many(&self, leases: &[Lease]) -> Result<AcquiredMany, StoreError> {
        let leases: Arc<[Lease]> = leases.into();
        self.send(move |ledger| ledger.acquire_many(&leases)).await
    }

    async fn release_many(
        &self,
        leases: &[Lease],
        keep: Option<Duration>,
    ) -> Result<Vec<Released>, StoreError> {
        let leases: Arc<[Lease]> = leases.into();
        self.send(move |ledger| ledger.release_many(&leases, keep)).await
    }

    async fn inspect(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.0.ledger.store().inspect(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.0.ledger.store().list(prefix, after, limit).await
    }

    async fn force_release(&self, key: &str, token: FencingToken) -> Result<Forced, StoreError> {
        let key: Arc<str> = key.into();
        self.send(move |ledger| ledger.force_release(&key, token)).await
    }

    async fn collect(&self, retention: Duration, limit: usize) -> Result<usize, StoreError> {
        self.0.ledger.store().collect(retention, limit).await
    }

    /// Hints get lost, or come as "some were missed".
    fn watch(&self) -> Option<Watch> {
        let wire = self.clone();
        let mut inner = self.0.ledger.store().watch().filter(|_| self.0.weather.hints)?;
        Some(Watch::new(move |cx| {
            loop {
                let next = std::pin::pin!(inner.next()).poll(cx);
                let Poll::Ready(Some(wake)) = next else { return next };
                let calm = wire.0.weather.is_calm();
                match wire.with(|state| state.chance.below(10)) {
                    0 | 1 if !calm => {}
                    2 => return Poll::Ready(Some(Wake::Missed)),
                    _ => return Poll::Ready(Some(wake)),
                }
            }
        }))
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        self.0.ledger.store().audit().await
    }
}

/// A store that takes several keys one by one: the contract's own way.
#[derive(Clone)]
pub(super) struct OneByOne(pub(super) Wire);

impl Store for OneByOne {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn ttl_range(&self) -> TtlRange {
        self.0.ttl_range()
    }

    fn supports(&self, feature: Feature) -> bool {
        feature != Feature::AtomicMany && self.0.supports(feature)
    }

    async fn acquire(&self, lease: &Lease) -> Result<Acquired, StoreError> {
        self.0.acquire(lease).await
    }

    async fn renew(&self, lease: &Lease) -> Result<Renewed, StoreError> {
        self.0.renew(lease).await
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

    fn watch(&self) -> Option<Watch> {
        self.0.watch()
    }

    async fn audit(&self) -> Result<Audit, StoreError> {
        self.0.audit().await
    }
}
