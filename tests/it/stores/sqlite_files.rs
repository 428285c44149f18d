//! SQLite files: what is refused and left as it was, and what becomes of one under a running store.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockattr::Locker;
use lockattr::lease::{Acquired, Lease, Owner, Renewed};
use lockattr::store::{Level, SqliteOptions, SqliteStore, Store};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Executor as _};
use tempfile::TempDir;

fn lease(key: &str) -> Lease {
    Lease::new(key, Owner::random(), Duration::from_secs(600))
}

async fn is_granted(store: &SqliteStore, lease: &Lease) -> bool {
    matches!(store.acquire(lease).await.unwrap(), Acquired::Granted { .. })
}

/// Another program's view of the file.
async fn raw(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

/// Every file of a directory with its bytes.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The path is refused with these words, and nothing in its directory changes.
async fn refused(path: &Path, words: &str) {
    let directory = path.parent().unwrap();
    let before = directory.is_dir().then(|| contents(directory));
    let text = SqliteStore::open(path).await.expect_err("it must be refused").to_string();
    assert!(text.contains(words), "{text}");
    let after = directory.is_dir().then(|| contents(directory));
    assert!(after == before, "opening changed the directory of {}", path.display());
}

/// A closed, valid file of ours.
async fn ours(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    assert!(is_granted(&store, &lease("k")).await);
    drop(store);
    while path.with_extension("db-wal").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn patch(path: &Path, offset: usize, bytes: &[u8]) {
    let mut content = fs::read(path).unwrap();
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("notes.txt");
    fs::write(&path, "milk, eggs, and more text than a header of a database has: ".repeat(40)).unwrap();
    refused(&path, "is not a SQLite database").await;
    fs::write(&path, "x").unwrap();
    refused(&path, "is not a SQLite database").await;
}

#[tokio::test]
async fn a_database_of_another_application_is_left_alone() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    let mut shop = raw(&path).await;
    shop.execute("create table orders (id integer primary key); insert into orders values (1)")
        .await
        .unwrap();
    refused(&path, "another application").await;
    // With a log beside it that is not yet in the file.
    shop.execute("pragma journal_mode = wal").await.unwrap();
    shop.execute("insert into orders values (2)").await.unwrap();
    refused(&path, "another application").await;
    assert_eq!(contents(directory.path()).len(), 3);
}

#[tokio::test]
async fn other_layouts_and_damage_are_told_apart() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    ours(&path).await;
    let good = fs::read(&path).unwrap();
    assert_eq!(&good[68..72], b"lkat");
    assert_eq!(good[18..20], [2, 2], "the write-ahead log is on");

    patch(&path, 60, &[0, 0, 0, 9]);
    refused(&path, "layout 9 of another version").await;
    fs::write(&path, &good).unwrap();
    patch(&path, 68, b"abcd");
    refused(&path, "another application").await;
    for length in [600, 4096] {
        fs::write(&path, &good[..length]).unwrap();
        refused(&path, "malformed").await;
    }
    fs::write(&path, &good).unwrap();
    assert!(SqliteStore::open(&path).await.is_ok());
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("sub")).unwrap();
    refused(&directory.path().join("sub"), "is a directory").await;
    refused(&directory.path().join("missing/locks.db"), "missing is not a directory; make it first").await;
    refused(Path::new("/dev/null"), "is not a regular file").await;
    assert!(!directory.path().join("missing").exists());
    for (path, word) in [("", "no path"), (":memory:", "use the memory store"), ("a\0b", "no path")] {
        let text = SqliteStore::open(path).await.unwrap_err().to_string();
        assert!(text.contains(word), "{path:?}: {text}");
    }
}

/// Root may do anything, so this runs again as nobody when it is root.
#[test]
fn what_may_not_be_written_is_refused() {
    const CHILD: &str = "LOCKATTR_TEST_UNPRIVILEGED";
    let directory = TempDir::new().unwrap();
    if rustix::process::geteuid().is_root() {
        use std::os::unix::process::CommandExt as _;
        let program = directory.path().join("tests");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let (_, test) =
            concat!(module_path!(), "::what_may_not_be_written_is_refused").split_once("::").unwrap();
        let output = std::process::Command::new(&program)
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, "1")
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && printed.contains("1 passed"),
            "{printed}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let path = directory.path().join("locks.db");
        ours(&path).await;
        set(&path, 0o000);
        let text = SqliteStore::open(&path).await.unwrap_err().to_string();
        assert!(text.contains("may not be written by this user"), "{text}");
        set(&path, 0o222);
        let text = SqliteStore::open(&path).await.unwrap_err().to_string();
        assert!(text.contains("cannot be opened"), "{text}");
        set(&path, 0o444);
        refused(&path, "may not be written by this user").await;
        set(&path, 0o644);
        set(directory.path(), 0o555);
        refused(&path, "may not be written by this user").await;
        refused(&directory.path().join("new.db"), "may not be written by this user").await;
        set(directory.path(), 0o755);
        set(&path, 0o644);
        assert!(SqliteStore::open(&path).await.is_ok());
    });
}

#[tokio::test]
async fn a_file_is_made_once_by_all_who_open_it_at_once() {
    let directory = TempDir::new().unwrap();
    for round in 0..5 {
        let path = directory.path().join(format!("locks{round}.db"));
        if round % 2 == 1 {
            fs::write(&path, "").unwrap();
        }
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let path = path.clone();
            opening.spawn(async move { SqliteStore::open(path).await.unwrap() });
        }
        let stores = opening.join_all().await;
        assert!(is_granted(&stores[0], &lease("k")).await);
        for store in &stores[1..] {
            assert!(!is_granted(store, &lease("k")).await);
        }
    }
}

#[tokio::test]
async fn records_outlive_the_store_that_wrote_them() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let held = lease("k");
    assert!(is_granted(&SqliteStore::open(&path).await.unwrap(), &held).await);
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(!is_granted(&store, &lease("k")).await);
    assert!(matches!(store.renew(&held).await.unwrap(), Renewed::Renewed { .. }));
}

#[tokio::test]
async fn a_checkpoint_that_was_killed_half_way_costs_nothing() {
    let directory = TempDir::new().unwrap();
    let (path, copy) = (directory.path().join("locks.db"), directory.path().join("copy.db"));
    let store = SqliteStore::open(&path).await.unwrap();
    for n in 0..200 {
        assert!(is_granted(&store, &lease(&format!("{n:0>300}"))).await);
    }
    // What a killed process leaves: everything is in the log, of which the header's page is in the file.
    fs::copy(path.with_extension("db-wal"), copy.with_extension("db-wal")).unwrap();
    fs::copy(&path, &copy).unwrap();
    assert!(fs::metadata(&copy).unwrap().len() < 10 * 4096);
    patch(&copy, 28, &20_u32.to_be_bytes());
    drop(store);
    let reopened = SqliteStore::open(&copy).await.unwrap();
    assert_eq!(reopened.list("", None, 1000).await.unwrap().len(), 200);
    assert!(!is_granted(&reopened, &lease(&format!("{:0>300}", 7))).await);
}

#[tokio::test]
async fn a_file_deleted_under_a_store_has_one_holder_a_key() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let old = SqliteStore::open(&path).await.unwrap();
    let before = lease("k");
    assert!(is_granted(&old, &before).await);
    for file in contents(directory.path()).into_keys() {
        fs::remove_file(file).unwrap();
    }
    let new = SqliteStore::open(&path).await.unwrap();
    let after = lease("k");
    assert!(is_granted(&new, &after).await);
    // What the first store held is forgotten, and it knows from its next request on.
    assert_eq!(old.renew(&before).await.unwrap(), Renewed::Lost);
    assert!(!is_granted(&old, &lease("k")).await);
    assert!(!is_granted(&new, &lease("k")).await);
    assert!(matches!(old.renew(&after).await.unwrap(), Renewed::Renewed { .. }));
    assert!(old.release(&after, None).await.is_ok());
    assert!(is_granted(&new, &lease("k")).await);
}

#[tokio::test]
async fn a_log_deleted_under_a_store_is_noticed_and_costs_nothing() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let held = lease("k");
    assert!(is_granted(&store, &held).await);
    for end in ["db-wal", "db-shm"] {
        fs::remove_file(path.with_extension(end)).unwrap();
    }
    // Another process would now begin a log of its own, in which the grant is not.
    assert!(matches!(store.renew(&held).await.unwrap(), Renewed::Renewed { .. }));
    assert!(path.with_extension("db-wal").exists() && path.with_extension("db-shm").exists());
    assert!(!is_granted(&SqliteStore::open(&path).await.unwrap(), &lease("k")).await);
}

#[tokio::test]
async fn a_file_replaced_under_a_store_is_looked_at_again() {
    let directory = TempDir::new().unwrap();
    let (path, other) = (directory.path().join("locks.db"), directory.path().join("other.db"));
    let elsewhere = lease("k");
    let store = SqliteStore::open(&path).await.unwrap();
    {
        let second = SqliteStore::open(&other).await.unwrap();
        assert!(is_granted(&second, &elsewhere).await);
    }
    while other.with_extension("db-wal").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fs::remove_file(path.with_extension("db-wal")).unwrap();
    fs::remove_file(path.with_extension("db-shm")).unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(!is_granted(&store, &lease("k")).await);
    assert!(matches!(store.renew(&elsewhere).await.unwrap(), Renewed::Renewed { .. }));

    fs::remove_file(&path).unwrap();
    fs::write(&path, "something else entirely, with more than a hundred bytes: ".repeat(20)).unwrap();
    let error = store.acquire(&lease("k")).await.unwrap_err();
    assert!(!error.is_unknown());
    assert!(fs::read_to_string(&path).unwrap().starts_with("something else entirely"));
}

#[tokio::test]
async fn a_locked_database_is_refused_in_time_and_works_again() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let store = SqliteOptions::new().busy_timeout(Duration::from_millis(200)).open(&path).await.unwrap();
    let mut shell = raw(&path).await;
    shell.execute("begin immediate").await.unwrap();
    let requests: Vec<_> = (0..10).map(|n| lease(&n.to_string())).collect();
    let mut waiting = tokio::task::JoinSet::new();
    for request in requests.clone() {
        let store = store.clone();
        waiting.spawn(async move { store.acquire(&request).await });
    }
    let limit = Duration::from_secs(20);
    let answers = tokio::time::timeout(limit, waiting.join_all()).await.expect("none waits for ever");
    assert!(
        answers.iter().all(|answer| answer.as_ref().is_err_and(|error| !error.is_unknown())),
        "{answers:?}"
    );
    assert_eq!(store.inspect("0").await.unwrap(), None, "reading needs no write lock");
    shell.execute("rollback").await.unwrap();
    assert!(is_granted(&store, &requests[0]).await);
}

#[tokio::test]
async fn requests_of_one_process_wait_for_each_other_however_short_the_timeout() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let store = SqliteOptions::new().busy_timeout(Duration::ZERO).open(&path).await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..50 {
        let store = store.clone();
        waiting.spawn(async move { is_granted(&store, &lease(&n.to_string())).await });
    }
    assert!(waiting.join_all().await.into_iter().all(|granted| granted));
}

#[tokio::test]
async fn a_renewal_does_not_wait_behind_all_other_requests() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let held = lease("k");
    assert!(is_granted(&store, &held).await);
    let mut shell = raw(&path).await;
    shell.execute("begin immediate").await.unwrap();
    let mut others = tokio::task::JoinSet::new();
    for n in 0..3_000 {
        let store = store.clone();
        others.spawn(async move { is_granted(&store, &lease(&n.to_string())).await });
    }
    // So that all of them are on their way.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    let (renewed, ended) = tokio::join!(store.renew(&held), shell.execute("rollback"));
    ended.unwrap();
    assert!(matches!(renewed.unwrap(), Renewed::Renewed { .. }));
    let granted = store.list("", None, 4_000).await.unwrap().len();
    assert!(granted < 2_500, "{granted} came first");
    assert!(others.join_all().await.into_iter().all(|granted| granted));
}

#[tokio::test]
async fn a_missing_table_or_a_damaged_record_is_an_error_and_never_a_lock_that_is_taken() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("locks.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let held = lease("k");
    assert!(is_granted(&store, &held).await);
    let mut shell = raw(&path).await;
    shell.execute("update lockattr_lock set owner = x'0102'").await.unwrap();
    assert!(store.acquire(&lease("k")).await.is_err());
    assert!(store.release(&held, None).await.is_err());
    shell.execute("drop table lockattr_lock").await.unwrap();
    assert!(store.acquire(&lease("k")).await.is_err());
    assert!(store.renew(&held).await.is_err());
}

#[tokio::test]
async fn audit_names_the_file_and_what_it_relies_on() {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open(directory.path().join("locks.db")).await.unwrap();
    let audit = store.audit().await.unwrap();
    assert_eq!(audit.level, Level::P2);
    let text = &audit.findings[0].text;
    assert!(
        text.contains("locks.db") && text.contains("journal mode wal") && text.contains("synchronous 1"),
        "{text}"
    );
}

#[tokio::test]
async fn a_url_names_a_file() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("100% é?.db");
    let url = format!("sqlite://{}/100%25%20é%3F.db?busy_timeout=7", directory.path().display());
    let locker = Locker::connect(&url).await.unwrap();
    let guard = locker.lock("k").acquire().await.unwrap();
    assert!(path.is_file());
    assert!(!is_granted(&SqliteStore::open(&path).await.unwrap(), &lease("k")).await);
    guard.release().await.unwrap();
}
