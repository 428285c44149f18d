//! Many tasks that take overlapping sets of keys in any order: nobody waits for ever, and nobody shares a key.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lockattr::store::{FaultStore, Feature, MemoryStore, Store};
use lockattr::{Locker, Moment, SimMachine, Wait};
use proptest::prelude::*;
use tokio::time::{sleep, timeout};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Which keys somebody is under now, and how many have been.
#[derive(Default)]
struct Table {
    forks: [AtomicBool; KEYS.len()],
    meals: AtomicUsize,
}

impl Table {
    /// Takes the keys at `places`, in that order, and stays under them for a while.
    async fn eat(&self, locker: &Locker, places: &[usize], stay: Duration) {
        let keys = places.iter().map(|place| KEYS[*place]);
        let forks: BTreeSet<_> = places.iter().copied().collect();
        let eating = locker.lock_many(keys).wait(Wait::Forever).run(async |held| {
            assert_eq!(held.keys().count(), forks.len());
            for fork in &forks {
                assert!(!self.forks[*fork].swap(true, Ordering::SeqCst), "{} is shared", KEYS[*fork]);
            }
            sleep(stay).await;
            for fork in &forks {
                self.forks[*fork].store(false, Ordering::SeqCst);
            }
        });
        eating.await.unwrap();
        self.meals.fetch_add(1, Ordering::SeqCst);
    }
}

/// Each philosopher takes a left and a right fork, in an order by chance, through one of two lockers.
async fn dine<S: Store + Clone>(store: S, meals: u64) {
    let lockers = [Locker::new(store.clone()), Locker::new(store)];
    let table = Arc::new(Table::default());
    let philosophers: Vec<_> = (0..KEYS.len())
        .map(|seat| {
            let (table, locker) = (Arc::clone(&table), lockers[seat % 2].clone());
            tokio::spawn(async move {
                let mut chance = u64::try_from(seat).unwrap() + 1;
                for _ in 0..meals {
                    chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let mut places = [seat, (seat + 1) % KEYS.len()];
                    places.rotate_left(usize::from(chance >> 63 == 1));
                    table.eat(&locker, &places, Duration::from_millis(1)).await;
                }
            })
        })
        .collect();
    for philosopher in philosophers {
        timeout(Duration::from_mins(2), philosopher).await.expect("nobody waits for ever").unwrap();
    }
    assert_eq!(table.meals.load(Ordering::SeqCst), KEYS.len() * usize::try_from(meals).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn philosophers_dine_over_memory() {
    dine(MemoryStore::new(), 20).await;
}

/// A store that takes several keys one by one, as those without a step for all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn philosophers_dine_over_a_store_without_a_step_for_all() {
    let store = FaultStore::new(MemoryStore::new());
    store.faults().hide(Feature::AtomicMany);
    dine(store, 10).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn philosophers_dine_over_sqlite() {
    let directory = tempfile::TempDir::new().unwrap();
    let store = lockattr::store::SqliteStore::open(directory.path().join("locks.db")).await.unwrap();
    dine(store, 5).await;
}

#[cfg(all(unix, feature = "redis"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn philosophers_dine_over_redis() {
    dine(super::redis_server::storage("philosophers".to_owned()).await, 10).await;
}

fn paused_store() -> MemoryStore {
    let start = tokio::time::Instant::now();
    MemoryStore::with_clock(move || {
        let elapsed = start.elapsed();
        (Moment::from_nanos(1) + elapsed, Duration::from_secs(1_700_000_000) + elapsed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sets_in_any_order_get_in_and_never_share(
        sets in prop::collection::vec((prop::collection::vec(0..KEYS.len(), 1..7), 0..400_u64, 0..400_u64), 1..12),
        one_by_one: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let store = FaultStore::new(paused_store());
            if one_by_one {
                store.faults().hide(Feature::AtomicMany);
            }
            let lockers = [1, 2].map(|seed| Locker::simulated(store.clone(), &SimMachine::new(seed)));
            let table = Arc::new(Table::default());
            let tasks: Vec<_> = sets
                .iter()
                .cloned()
                .enumerate()
                .map(|(number, (places, starts, stays))| {
                    let (table, locker) = (Arc::clone(&table), lockers[number % 2].clone());
                    tokio::spawn(async move {
                        sleep(Duration::from_millis(starts)).await;
                        table.eat(&locker, &places, Duration::from_millis(stays)).await;
                    })
                })
                .collect();
            for task in tasks {
                timeout(Duration::from_mins(5), task).await.expect("nobody waits for ever").unwrap();
            }
            for key in KEYS {
                lockers[0].lock(key).run(async |_| ()).await.expect("nothing is left held");
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn busy_names_the_key_that_was_taken() {
    let store = paused_store();
    let [here, there] = [1, 2].map(|seed| Locker::simulated(store.clone(), &SimMachine::new(seed)));
    let _guard = there.lock("c").acquire().await.unwrap();
    for wait in [0, 3] {
        let asked = here.lock_many(["d", "c", "a"]).wait(Duration::from_secs(wait)).acquire().await;
        let error = asked.unwrap_err();
        assert!(error.is_busy() && error.key() == Some("c"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_moves_to_another_task_keeps_the_lock_there() {
    let locker = Locker::simulated(paused_store(), &SimMachine::new(1));
    let guard = locker.lock("k").expires(Duration::from_secs(1)).acquire().await.unwrap();
    let task = tokio::spawn(async move {
        sleep(Duration::from_secs(30)).await;
        guard.check().unwrap();
        guard.release().await.unwrap();
    });
    sleep(Duration::from_secs(29)).await;
    assert!(locker.lock("k").acquire().await.unwrap_err().is_busy());
    task.await.unwrap();
    drop(locker.lock("k").acquire().await.unwrap());
}
