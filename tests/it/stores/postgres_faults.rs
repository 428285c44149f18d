//! A PostgreSQL server that dies, hangs, forgets, or whose clock is set.

use std::error::Error as _;
use std::time::{Duration, Instant};

use lockattr::lease::{Acquired, Lease, Owner, RecordState, Released, Renewed};
use lockattr::store::{PostgresStore, Store};
use lockattr::{LockError, Locker};
use sqlx::{Connection as _, Executor as _, Row as _};

use super::postgres_server::Server;
use crate::servers::{self, clock::Clocked, postgres::Postgres};

const TTL: Duration = Duration::from_secs(60);

fn lease(key: &str) -> Lease {
    Lease::new(key, Owner::random(), TTL)
}

#[tokio::test]
async fn what_was_granted_outlives_a_crash() {
    let mut server = Server::start(&[]);
    let store = server.store().await;
    let job = lease("job");
    let Acquired::Granted { token, .. } = store.acquire(&job).await.unwrap() else { panic!("it is free") };
    server.0.kill().unwrap();
    let error = store.renew(&job).await.unwrap_err();
    // Its last words, or none.
    let why = error.source().unwrap().to_string();
    assert!(["broke", "refused", "terminating"].iter().any(|word| why.contains(word)), "{why}");
    server.0.start_again().unwrap();
    assert!(matches!(store.renew(&job).await, Ok(Renewed::Renewed { .. })));
    assert!(matches!(store.acquire(&lease("job")).await, Ok(Acquired::Taken { .. })));
    assert!(
        matches!(store.acquire(&job).await, Ok(Acquired::Granted { token: again, .. }) if again == token)
    );
    assert_eq!(store.release(&job, None).await.unwrap(), Released::Released);
}

#[tokio::test]
async fn a_server_that_hangs_is_a_store_failure_within_the_wait() {
    let server = Server::start(&[]);
    let locker = Locker::new(server.store().await);
    drop(locker.lock("job").acquire().await.unwrap());
    server.0.pause().unwrap();
    let started = Instant::now();
    let error = locker.lock("job").wait(Duration::from_secs(2)).acquire().await.unwrap_err();
    assert!(matches!(error, LockError::Store { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    server.0.resume().unwrap();
    let guard = locker.lock("job").wait(Duration::from_secs(30)).acquire().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_session_that_is_ended_is_replaced() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let job = lease("job");
    store.acquire(&job).await.unwrap();
    server.tell("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename is not null").await;
    assert!(store.renew(&job).await.unwrap_err().is_unknown());
    assert!(matches!(store.renew(&job).await, Ok(Renewed::Renewed { .. })));
}

#[tokio::test]
async fn a_row_that_another_transaction_has_is_waited_for_and_never_busy() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let job = lease("job");
    store.acquire(&job).await.unwrap();
    store.release(&job, None).await.unwrap();
    let mut other = sqlx::PgConnection::connect(&server.url()).await.unwrap();
    let mut transaction = other.begin().await.unwrap();
    transaction.execute("select 1 from lockattr_lock for share").await.unwrap();
    let error = store.acquire(&lease("job")).await.unwrap_err();
    assert!(!error.is_unknown() && error.source().unwrap().to_string().contains("locked"), "{error:?}");
    transaction.rollback().await.unwrap();
    assert!(matches!(store.acquire(&lease("job")).await, Ok(Acquired::Granted { .. })));
}

#[tokio::test]
async fn waiters_read_and_do_not_write() {
    let server = Server::start(&[]);
    let store = server.store().await;
    store.acquire(&lease("job")).await.unwrap();
    let version = async || {
        let row = &server
            .tell("select xmin::text || ' ' || xmax::text || ' ' || ctid::text from lockattr_lock")
            .await[0];
        row.get::<String, _>(0)
    };
    let before = version().await;
    for _ in 0..10 {
        assert!(matches!(store.acquire(&lease("job")).await, Ok(Acquired::Taken { .. })));
    }
    assert_eq!(version().await, before);
    // Even where the row is locked against writing.
    let mut other = sqlx::PgConnection::connect(&server.url()).await.unwrap();
    let mut transaction = other.begin().await.unwrap();
    transaction.execute("select 1 from lockattr_lock for update").await.unwrap();
    assert!(matches!(store.acquire(&lease("job")).await, Ok(Acquired::Taken { .. })));
}

#[tokio::test]
async fn some_of_several_keys_are_never_left_behind() {
    let server = Server::start(&["fsync=off"]);
    let mut tasks = Vec::new();
    server.store().await;
    for n in 0..4 {
        let store = PostgresStore::connect(&server.url()).await.unwrap();
        tasks.push(tokio::spawn(async move {
            for round in 0..40 {
                // Fresh keys, so that nothing but the insertion itself keeps the others out.
                let owner = Owner::random();
                let mut keys =
                    vec![format!("k{round}"), format!("k{}", round + 1), format!("only-{n}-{round}")];
                keys.sort();
                let leases: Vec<_> = keys.into_iter().map(|key| Lease::new(key, owner, TTL)).collect();
                match store.acquire_many(&leases).await {
                    Ok(lockattr::lease::AcquiredMany::Granted { .. }) => {
                        for answer in store.release_many(&leases, None).await.unwrap() {
                            assert_eq!(answer, Released::Released);
                        }
                    }
                    Ok(_) => {}
                    Err(error) => assert!(!error.is_unknown(), "{error:?}"),
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let left = server.tell("select count(*) from lockattr_lock where owner is not null").await;
    assert_eq!(left[0].get::<i64, _>(0), 0);
}

#[tokio::test]
async fn a_clock_that_is_set_back_keeps_a_lock_one_ttl_at_most() {
    let directory = tempfile::tempdir().unwrap();
    let (program, mut clock) = Clocked::new(Postgres::default().migrating(), directory.path()).unwrap();
    let server = servers::Server::start(program).unwrap();
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    let short = Duration::from_secs(2);
    let first = Lease::new("job", Owner::random(), short);
    let Acquired::Granted { token, .. } = store.acquire(&first).await.unwrap() else { panic!("it is free") };
    clock.back(Duration::from_secs(3600)).unwrap();
    let next = Lease::new("job", Owner::random(), short);
    let Acquired::Taken { remaining, .. } = store.acquire(&next).await.unwrap() else { panic!("it is held") };
    assert!(remaining <= short, "{remaining:?}");
    tokio::time::sleep(short + Duration::from_millis(50)).await;
    let Acquired::Granted { token: later, .. } = store.acquire(&next).await.unwrap() else {
        panic!("it is over")
    };
    assert_eq!(later.get(), token.get() + 1, "the clock is behind the token");
    // Forward, a lease ends early, and the token grows all the same.
    clock.forward(Duration::from_secs(7200)).unwrap();
    let RecordState::Free = store.inspect("job").await.unwrap().unwrap().state else { panic!("it is over") };
    assert_eq!(store.renew(&next).await.unwrap(), Renewed::Lost);
    let last = Lease::new("job", Owner::random(), short);
    assert!(matches!(store.acquire(&last).await, Ok(Acquired::Granted { token, .. }) if token > later));
}

#[tokio::test]
async fn a_release_does_not_overtake_an_acquisition_that_nobody_waits_for() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let blocked = lease("blocked");
    store.acquire(&blocked).await.unwrap();
    store.release(&blocked, None).await.unwrap();
    let mut other = sqlx::PgConnection::connect(&server.url()).await.unwrap();
    let mut transaction = other.begin().await.unwrap();
    transaction.execute("select 1 from lockattr_lock for share").await.unwrap();
    // These use up the connections that acquisitions may have, for two seconds.
    for _ in 0..3 {
        let store = store.clone();
        tokio::spawn(async move { store.acquire(&lease("blocked")).await });
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let job = lease("job");
    let given_up = tokio::time::timeout(Duration::from_millis(100), store.acquire(&job)).await;
    assert!(given_up.is_err(), "it waits for a connection");
    assert_eq!(store.release(&job, None).await.unwrap(), Released::Released);
    assert_eq!(store.inspect("job").await.unwrap().unwrap().state, RecordState::Free);
}
