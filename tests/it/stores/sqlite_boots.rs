//! Time in a SQLite file: reboots, other kernels, and clocks that are set.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockattr::Moment;
use lockattr::lease::{Acquired, FencingToken, Lease, Owner, RecordState, Released, Renewed};
use lockattr::store::{SqliteOptions, SqliteStore, Store};
use tempfile::TempDir;

const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(60);

/// A machine whose clocks are set by hand: since its boot, and since 1970.
#[derive(Clone)]
struct Machine(Arc<Mutex<(Duration, Duration)>>);

impl Machine {
    /// Booted `up` ago, at this wall time.
    fn new(up: Duration, wall: Duration) -> Self {
        Self(Arc::new(Mutex::new((up, wall))))
    }

    fn pass(&self, span: Duration) {
        let mut clocks = self.0.lock().unwrap();
        clocks.0 += span;
        clocks.1 += span;
    }

    fn set_back(&self, span: Duration) {
        self.0.lock().unwrap().0 -= span;
    }

    fn set_wall_ahead(&self, span: Duration) {
        self.0.lock().unwrap().1 += span;
    }

    async fn open(&self, path: &Path, boot: &str) -> SqliteStore {
        let clocks = Arc::clone(&self.0);
        let read = move || {
            let (up, wall) = *clocks.lock().unwrap();
            (Moment::default() + up, wall)
        };
        SqliteOptions::new().clock(read).boot_id(boot).open(path).await.unwrap()
    }
}

fn lease(key: &str) -> Lease {
    Lease::new(key, Owner::random(), TTL)
}

async fn granted(store: &SqliteStore, lease: &Lease) -> Option<FencingToken> {
    match store.acquire(lease).await.unwrap() {
        Acquired::Granted { token, .. } => Some(token),
        _ => None,
    }
}

const NOON: Duration = Duration::from_secs(1_800_000_000);
const YESTERDAY: Duration = Duration::from_secs(1_799_913_600);

#[tokio::test]
async fn after_a_reboot_all_that_was_held_is_free_at_once() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    // Up for long, so that its expiries lie far above the next boot's clock.
    let old = Machine::new(Duration::from_secs(1_000_000), NOON).open(&path, "old").await;
    let (dead, waiting) = (lease("k"), lease("k"));
    let token = granted(&old, &dead).await.unwrap();
    assert!(granted(&old, &waiting).await.is_none());

    let rebooted = Machine::new(5 * SECOND, NOON + 20 * SECOND);
    let new = rebooted.open(&path, "new").await;
    assert_eq!(new.list("", None, 10).await.unwrap(), []);
    assert_eq!(new.renew(&dead).await.unwrap(), Renewed::Lost);
    assert_eq!(new.acquire(&dead).await.unwrap(), Acquired::Spent);
    let mut careful = waiting;
    careful.lock_delay = SECOND;
    assert!(granted(&new, &careful).await.is_some_and(|next| next > token));
    assert!(granted(&new, &lease("k")).await.is_none());
}

#[tokio::test]
async fn collect_removes_what_a_reboot_freed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let old = Machine::new(Duration::from_secs(1_000_000), NOON).open(&path, "old").await;
    granted(&old, &lease("k")).await.unwrap();
    let new = Machine::new(5 * SECOND, NOON + 2 * TTL).open(&path, "new").await;
    assert_eq!(new.collect(TTL * 2, 10).await.unwrap(), 0);
    assert_eq!(new.collect(TTL / 2, 10).await.unwrap(), 1);
}

#[tokio::test]
async fn a_minimum_hold_outlives_a_reboot() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let old = Machine::new(Duration::from_secs(1_000_000), NOON).open(&path, "old").await;
    let done = lease("k");
    granted(&old, &done).await.unwrap();
    assert_eq!(old.release(&done, Some(TTL)).await.unwrap(), Released::Released);

    let rebooted = Machine::new(5 * SECOND, NOON + TTL / 2);
    let new = rebooted.open(&path, "new").await;
    let record = new.inspect("k").await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Kept { remaining: TTL / 2 });
    assert!(granted(&new, &lease("k")).await.is_none());
    rebooted.pass(TTL / 2);
    assert!(granted(&new, &lease("k")).await.is_some());
}

#[tokio::test]
async fn another_kernel_at_work_on_the_file_is_waited_for() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    // Two virtual machines that see one file: both have been up for long.
    let (one, other) = (Machine::new(1000 * SECOND, NOON), Machine::new(9000 * SECOND, NOON));
    let (here, there) = (one.open(&path, "one").await, other.open(&path, "other").await);
    let held = lease("k");
    granted(&here, &held).await.unwrap();
    let attempt = lease("k");
    for _ in 0..5 {
        assert!(granted(&there, &attempt).await.is_none());
        one.pass(TTL / 2);
        other.pass(TTL / 2);
        assert!(matches!(here.renew(&held).await.unwrap(), Renewed::Renewed { .. }));
    }
    other.pass(TTL + SECOND);
    assert!(granted(&there, &attempt).await.is_some());
}

#[tokio::test]
async fn a_clock_that_goes_back_costs_one_ttl_at_most() {
    let directory = TempDir::new().unwrap();
    let machine = Machine::new(100_000 * SECOND, NOON);
    let store = machine.open(&directory.path().join("locks.db"), "boot").await;
    granted(&store, &lease("k")).await.unwrap();
    machine.set_back(3600 * SECOND);
    let attempt = lease("k");
    match store.acquire(&attempt).await.unwrap() {
        Acquired::Taken { remaining, .. } => assert_eq!(remaining, TTL),
        other => panic!("{other:?}"),
    }
    machine.pass(59 * SECOND);
    assert!(granted(&store, &attempt).await.is_none());
    machine.pass(SECOND);
    assert!(granted(&store, &attempt).await.is_some());
}

#[tokio::test]
async fn a_wall_clock_that_goes_back_does_not_shrink_tokens() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let now = Machine::new(10 * SECOND, NOON).open(&path, "boot").await;
    let first = lease("k");
    let token = granted(&now, &first).await.unwrap();
    assert_eq!(token.get(), u64::try_from(NOON.as_micros()).unwrap());
    now.release(&first, None).await.unwrap();
    let earlier = Machine::new(20 * SECOND, YESTERDAY).open(&path, "boot").await;
    assert_eq!(granted(&earlier, &lease("k")).await.map(FencingToken::get), Some(token.get() + 1));
}

#[tokio::test]
async fn a_wall_clock_that_jumps_ahead_ends_and_forgets_no_lease() {
    let directory = TempDir::new().unwrap();
    let machine = Machine::new(10 * SECOND, NOON);
    let store = machine.open(&directory.path().join("locks.db"), "boot").await;
    let held = lease("k");
    let token = granted(&store, &held).await;
    machine.set_wall_ahead(Duration::from_secs(30 * 24 * 3600));
    assert_eq!(store.collect(SECOND, 10).await.unwrap(), 0);
    assert!(granted(&store, &lease("k")).await.is_none());
    assert_eq!(granted(&store, &held).await, token);
}
