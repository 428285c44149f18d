//! Random requests at random times, against a model of the contract that shares no code with the stores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockattr::Moment;
use lockattr::lease::{
    Acquired, AcquiredMany, FencingToken, Forced, Lease, Owner, RecordState, Released, Renewed,
};
use lockattr::store::{MemoryStore, Store};
use proptest::prelude::*;

const KEYS: [&str; 2] = ["a", "b"];
const OWNERS: usize = 4;
/// The wall clock at the start, in milliseconds: just before the end of a window of ten seconds.
const EPOCH: u64 = 1_700_000_009_000;
const BOOT: u64 = 500_000;

#[derive(Clone, Debug)]
struct Ask {
    key: usize,
    owner: usize,
    ttl: u64,
    delay: u64,
    tokens: u16,
    floor: Option<u64>,
    once: Option<u64>,
}

#[derive(Clone, Debug)]
enum Op {
    Acquire(Ask),
    AcquireBoth(Ask),
    Renew(Ask),
    Release(Ask, Option<u64>),
    Force { key: usize, behind: u64 },
    Collect(u64),
    Pass(u64),
}

fn ask() -> impl Strategy<Value = Ask> {
    let delay = prop_oneof![3 => Just(0_u64), 1 => Just(700)];
    let floor = prop_oneof![4 => Just(None), 1 => Just(Some(1)), 1 => (0..2_000_000_u64).prop_map(|up| Some(EPOCH * 1000 + up))];
    let once = prop_oneof![4 => Just(None), 1 => Just(Some(10_000_u64)), 1 => Just(Some(300))];
    (
        0..KEYS.len(),
        0..OWNERS,
        100..3000_u64,
        delay,
        prop_oneof![3 => Just(1_u16), 1 => 2..9_u16],
        floor,
        once,
    )
        .prop_map(|(key, owner, ttl, delay, tokens, floor, once)| Ask {
            key,
            owner,
            ttl,
            delay,
            tokens,
            floor,
            once,
        })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => ask().prop_map(Op::Acquire),
        2 => ask().prop_map(Op::AcquireBoth),
        3 => ask().prop_map(Op::Renew),
        4 => (ask(), prop::option::of(0..4000_u64)).prop_map(|(ask, keep)| Op::Release(ask, keep)),
        1 => (0..KEYS.len(), 0..2_u64).prop_map(|(key, behind)| Op::Force { key, behind }),
        1 => (0..2000_u64).prop_map(Op::Collect),
        5 => (1..2500_u64).prop_map(Op::Pass),
    ]
}

/// A record as the contract's words have it, in milliseconds.
#[derive(Clone, Debug, Default)]
struct Known {
    holder: Option<usize>,
    last: Option<usize>,
    token: u64,
    /// Of the holder's lease, or of the minimum hold.
    end: Option<u64>,
    granted: u64,
    window_end: u64,
    idle_from: u64,
}

#[derive(Clone, Debug, Default)]
struct Model {
    now: u64,
    records: BTreeMap<usize, Known>,
}

impl Model {
    fn acquire(&mut self, ask: &Ask) -> Acquired {
        let (now, wall) = (self.now, EPOCH + self.now);
        let known = self.records.get(&ask.key).cloned();
        if let Some(known) = &known {
            let left = known.end.unwrap_or(0).saturating_sub(now);
            let ours = known.holder == Some(ask.owner);
            if ours && left > 0 {
                return Acquired::Granted {
                    token: token(known.token + 1 - u64::from(ask.tokens)),
                    remaining: ms(left),
                };
            }
            if ours || known.last == Some(ask.owner) {
                return Acquired::Spent;
            }
            let left = match known.holder {
                Some(_) => (known.end.unwrap_or(0) + ask.delay).saturating_sub(now),
                None => left,
            };
            let window = ask.once.filter(|once| (EPOCH + known.granted) / once == wall / once);
            let left = if left > 0 { left } else { window.map_or(0, |once| once - wall % once) };
            let by_holder = known.holder.is_some() && (known.end.unwrap_or(0) + ask.delay) > now;
            if left > 0 {
                let holder = by_holder.then(Arc::default);
                return Acquired::Taken { remaining: ms(left), holder, queued: false };
            }
        }
        let known = known.unwrap_or_default();
        let first = (known.token + 1).max(wall * 1000).max(ask.floor.unwrap_or(0));
        let window_end = ask.once.map_or(0, |once| (wall / once + 1) * once);
        let granted = Known {
            holder: Some(ask.owner),
            last: known.holder.or(known.last),
            token: first + u64::from(ask.tokens) - 1,
            end: Some(now + ask.ttl),
            granted: now,
            window_end: known.window_end.max(window_end),
            idle_from: wall + ask.ttl,
        };
        self.records.insert(ask.key, granted);
        Acquired::Granted { token: token(first), remaining: ms(ask.ttl) }
    }

    fn acquire_both(&mut self, asks: &[Ask; 2]) -> AcquiredMany {
        let before = self.records.clone();
        let (mut tokens, mut shortest) = (Vec::new(), Duration::MAX);
        for (index, ask) in asks.iter().enumerate() {
            let refusal = match self.acquire(ask) {
                Acquired::Granted { token, remaining } => {
                    tokens.push(token);
                    shortest = shortest.min(remaining);
                    continue;
                }
                Acquired::Taken { remaining, holder, .. } => AcquiredMany::Taken { index, remaining, holder },
                _ => AcquiredMany::Spent { index },
            };
            self.records = before;
            for ask in asks {
                self.release(ask, None);
            }
            return refusal;
        }
        AcquiredMany::Granted { tokens, remaining: shortest }
    }

    fn renew(&mut self, ask: &Ask) -> Renewed {
        let (now, wall) = (self.now, EPOCH + self.now);
        match self.records.get_mut(&ask.key) {
            Some(known) if known.holder == Some(ask.owner) && known.end > Some(now) => {
                if known.end < Some(now + ask.ttl) {
                    known.end = Some(now + ask.ttl);
                    known.idle_from = wall + ask.ttl;
                }
                if let Some(floor) = ask.floor {
                    known.token = known.token.max(floor + u64::from(ask.tokens) - 1);
                }
                Renewed::Renewed { remaining: ms(known.end.unwrap_or(0) - now) }
            }
            _ => Renewed::Lost,
        }
    }

    fn release(&mut self, ask: &Ask, keep: Option<u64>) -> Released {
        let (now, wall) = (self.now, EPOCH + self.now);
        let Some(known) = self.records.get_mut(&ask.key) else { return Released::NotHeld };
        if known.holder != Some(ask.owner) {
            return if known.last == Some(ask.owner) { Released::AlreadyReleased } else { Released::NotHeld };
        }
        let kept =
            keep.map(|keep| known.granted + keep).filter(|until| *until > now && known.end > Some(now));
        known.last = known.holder.take();
        known.end = kept;
        known.idle_from = wall + kept.map_or(0, |until| until - now);
        Released::Released
    }

    fn force(&mut self, key: usize, token: FencingToken) -> Forced {
        let wall = EPOCH + self.now;
        match self.records.get_mut(&key) {
            Some(known) if known.token == token.get() && known.end.is_some() => {
                known.last = known.holder.take().or(known.last);
                known.end = None;
                known.token += 1;
                known.idle_from = wall;
                Forced::Released
            }
            _ => Forced::Changed,
        }
    }

    fn collect(&mut self, retention: u64) -> usize {
        let (now, wall, before) = (self.now, EPOCH + self.now, self.records.len());
        self.records.retain(|_, known| {
            known.end > Some(now) || known.idle_from + retention > wall || known.window_end > wall
        });
        before - self.records.len()
    }

    fn state(&self, key: usize) -> Option<(FencingToken, RecordState)> {
        let known = self.records.get(&key)?;
        let left = ms(known.end.unwrap_or(0).saturating_sub(self.now));
        let state = match known.holder {
            _ if left.is_zero() => RecordState::Free,
            Some(_) => RecordState::Held {
                remaining: left,
                age: ms(self.now - known.granted),
                holder: Arc::default(),
            },
            None => RecordState::Kept { remaining: left },
        };
        Some((token(known.token), state))
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number)
}

/// The clock that the stores of one case read: milliseconds since its start.
fn clock(passed: &Arc<AtomicU64>) -> impl Fn() -> (Moment, Duration) + Send + Sync + 'static {
    let passed = Arc::clone(passed);
    move || {
        let at = passed.load(Ordering::SeqCst);
        (Moment::default() + ms(BOOT + at), ms(EPOCH + at))
    }
}

async fn check<S: Store>(store: &S, passed: &AtomicU64, ops: &[Op]) {
    let owners: Vec<_> = (0..OWNERS).map(|_| Owner::random()).collect();
    let lease = |ask: &Ask| {
        let mut lease = Lease::new(KEYS[ask.key], owners[ask.owner], ms(ask.ttl));
        lease.lock_delay = ms(ask.delay);
        lease.tokens = ask.tokens;
        lease.token_floor = ask.floor;
        lease.once_per = ask.once.map(ms);
        lease
    };
    let mut model = Model::default();
    passed.store(0, Ordering::SeqCst);
    for op in ops {
        match op {
            Op::Acquire(ask) => assert_eq!(store.acquire(&lease(ask)).await.unwrap(), model.acquire(ask)),
            Op::AcquireBoth(ask) => {
                let asks = [Ask { key: 0, ..ask.clone() }, Ask { key: 1, ..ask.clone() }];
                let answer = store.acquire_many(&asks.each_ref().map(lease)).await.unwrap();
                assert_eq!(answer, model.acquire_both(&asks));
            }
            Op::Renew(ask) => assert_eq!(store.renew(&lease(ask)).await.unwrap(), model.renew(ask)),
            Op::Release(ask, keep) => {
                let answer = store.release(&lease(ask), keep.map(ms)).await.unwrap();
                assert_eq!(answer, model.release(ask, *keep));
            }
            Op::Force { key, behind } => {
                let seen = token(model.records.get(key).map_or(1, |known| known.token) - behind);
                assert_eq!(store.force_release(KEYS[*key], seen).await.unwrap(), model.force(*key, seen));
            }
            Op::Collect(retention) => {
                assert_eq!(store.collect(ms(*retention), 10).await.unwrap(), model.collect(*retention));
            }
            Op::Pass(span) => {
                model.now += span;
                passed.store(model.now, Ordering::SeqCst);
            }
        }
        // The model's clock starts at zero, the store's at its boot.
        let mut listed = Vec::new();
        for (key, name) in KEYS.iter().enumerate() {
            let record = store.inspect(name).await.unwrap();
            let seen = record.clone().map(|record| (record.token, record.state));
            assert_eq!(seen, model.state(key), "after {op:?}");
            listed.extend(record.filter(|record| record.state != RecordState::Free));
        }
        assert_eq!(store.list("", None, 10).await.unwrap(), listed);
    }
}

fn run(check: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(check);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_memory_store_does_what_the_model_does(ops in prop::collection::vec(op(), 1..60)) {
        let passed = Arc::new(AtomicU64::new(0));
        run(async { check(&MemoryStore::with_clock(clock(&passed)), &passed, &ops).await });
    }
}

#[cfg(feature = "sqlite")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_sqlite_store_does_what_the_model_does(ops in prop::collection::vec(op(), 1..60)) {
        let directory = tempfile::TempDir::new().unwrap();
        let passed = Arc::new(AtomicU64::new(0));
        run(async {
            let options = lockattr::store::SqliteOptions::new().clock(clock(&passed)).boot_id("model");
            let store = options.open(directory.path().join("locks.db")).await.unwrap();
            check(&store, &passed, &ops).await;
        });
    }
}
