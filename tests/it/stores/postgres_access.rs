//! Which PostgreSQL servers, users and tables are used, and what is said of the others.

use std::error::Error as _;
use std::fs;
use std::time::Duration;

use lockattr::lease::{Acquired, Lease, Owner, RecordState, Released, Renewed};
use lockattr::store::{Level, PostgresOptions, PostgresStore, Store, StoreError};
use lockattr::{LockError, Locker};
use sqlx::Row as _;

use super::postgres_server::Server;
use crate::servers::{self, postgres::PgBouncer};

const TTL: Duration = Duration::from_secs(60);

fn lease(key: &str) -> Lease {
    Lease::new(key, Owner::random(), TTL)
}

async fn refusal(url: &str) -> String {
    match PostgresStore::connect(url).await {
        Ok(_) => panic!("{url} was accepted"),
        Err(error @ LockError::Store { .. }) => {
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
            error.to_string()
        }
        Err(error) => panic!("{error}"),
    }
}

fn why(error: &StoreError) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}

/// Everything that a store does.
async fn use_all(store: &PostgresStore) -> Result<(), StoreError> {
    let all = [lease("a"), lease("b")];
    store.acquire_many(&all).await?;
    assert!(matches!(store.renew(&all[0]).await?, Renewed::Renewed { .. }));
    assert_eq!(store.list("", None, 10).await?.len(), 2);
    assert_eq!(store.release(&all[0], Some(TTL)).await?, Released::Released);
    let kept = store.inspect(&all[0].key).await?.unwrap();
    assert!(matches!(kept.state, RecordState::Kept { .. }), "{kept:?}");
    store.force_release(&all[0].key, kept.token).await?;
    assert_eq!(store.release_many(&all, None).await?.len(), 2);
    assert_eq!(store.collect(Duration::ZERO, 10).await?, 2);
    store.audit().await?;
    Ok(())
}

/// Makes a user with a password that has only these rights on the table.
async fn user(server: &Server, name: &str, rights: &str) {
    let file = server.0.place.directory.join("data/pg_hba.conf");
    let lines = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("host all {name} 127.0.0.1/32 scram-sha-256\n{lines}")).unwrap();
    let grant =
        if rights.is_empty() { String::new() } else { format!("grant {rights} on lockattr_lock to {name};") };
    server
        .tell(&format!("create role {name} login password 'hunter2'; {grant} select pg_reload_conf()"))
        .await;
}

#[tokio::test]
async fn the_least_rights_are_enough_and_a_missing_one_is_named() {
    let server = Server::start(&[]);
    server.store().await;
    user(&server, "ann", "select, insert, update, delete").await;
    let store = PostgresStore::connect(&server.url_as("ann", "hunter2")).await.unwrap();
    use_all(&store).await.unwrap();
    // With no right to create, a table that is there is used all the same.
    PostgresOptions::new().migrate(true).connect(&server.url_as("ann", "hunter2")).await.unwrap();
    for missing in ["select", "insert", "update", "delete"] {
        server.tell(&format!("revoke {missing} on lockattr_lock from ann")).await;
        let said = match PostgresStore::connect(&server.url_as("ann", "hunter2")).await {
            Err(error) => error.to_string(),
            Ok(store) => {
                let error = use_all(&store).await.expect_err(missing);
                assert!(!error.is_unknown());
                why(&error)
            }
        };
        assert!(said.contains("grant select, insert, update, delete"), "{missing}: {said}");
        server.tell(&format!("grant {missing} on lockattr_lock to ann; delete from lockattr_lock")).await;
    }
}

#[tokio::test]
async fn a_wrong_password_is_said_and_never_shown() {
    let server = Server::start(&[]);
    user(&server, "ann", "").await;
    let text = refusal(&server.url_as("ann", "hunter22")).await;
    assert!(text.contains("password"), "{text}");
    let text = refusal(&server.url().replace("/postgres?", "/elsewhere?")).await;
    assert!(text.contains("database of that name"), "{text}");
    let store = PostgresOptions::new().open(server.url_as("ann", "hunter2").parse().unwrap());
    let shown = format!("{store:?} {:?}", Locker::new(store.clone()));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn a_missing_table_comes_with_what_makes_it() {
    let server = Server::start(&[]);
    let text = refusal(&server.url()).await;
    assert!(text.contains("create table") && text.contains("lockattr_migrate=true"), "{text}");
    let pool = server.pool().await;
    let store = PostgresStore::from_pool(&pool);
    let error = store.acquire(&lease("job")).await.unwrap_err();
    assert!(!error.is_unknown() && why(&error).contains("create table"), "{}", why(&error));
    // The text itself works, twice over.
    for _ in 0..2 {
        server.tell(&store.ddl()).await;
        store.migrate().await.unwrap();
    }
    use_all(&store).await.unwrap();
    // A user who may not create is told so.
    server.tell("drop table lockattr_lock").await;
    user(&server, "ann", "").await;
    let error = PostgresOptions::new().migrate(true).connect(&server.url_as("ann", "hunter2")).await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("not all the rights"), "{text}");
}

#[tokio::test]
async fn a_table_of_another_shape_is_left_alone() {
    let server = Server::start(&[]);
    server.tell("create table lockattr_lock (lock_key text, token bigint); insert into lockattr_lock values ('job', 7)").await;
    for url in [server.url(), format!("{}&lockattr_migrate=true", server.url())] {
        let text = refusal(&url).await;
        assert!(text.contains("not one of this store") && text.contains("lockattr_table"), "{text}");
    }
    assert_eq!(server.tell("select token from lockattr_lock").await[0].get::<i64, _>(0), 7);
    server.tell("create schema \"Locks\"").await;
    let named = format!("{}&lockattr_migrate=true&lockattr_table=Locks.Jobs", server.url());
    use_all(&PostgresStore::connect(&named).await.unwrap()).await.unwrap();
}

#[tokio::test]
async fn read_only_servers_are_not_used() {
    let server = Server::start(&[]);
    server.store().await;
    server.tell("alter role postgres set default_transaction_read_only = on").await;
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    let error = store.acquire(&lease("job")).await.unwrap_err();
    assert!(!error.is_unknown() && why(&error).contains("read-only"), "{}", why(&error));
}

#[tokio::test]
async fn no_server_is_said_at_once() {
    let text = refusal("postgres://ann:hunter2@127.0.0.1:1/app").await;
    assert!(text.contains("refused") && text.contains("127.0.0.1:1"), "{text}");
}

#[tokio::test]
async fn every_isolation_works_with_many_on_one_key() {
    let server = Server::start(&["default_transaction_isolation=serializable", "fsync=off"]);
    server.store().await;
    for isolation in ["serializable", "repeatable read", "read committed"] {
        server.tell(&format!("alter role postgres set default_transaction_isolation = '{isolation}'")).await;
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let store = PostgresStore::connect(&server.url()).await.unwrap();
            tasks.push(tokio::spawn(async move {
                let mut granted = 0;
                for _ in 0..50 {
                    let one = lease("one");
                    if let Acquired::Granted { .. } = store.acquire(&one).await.unwrap() {
                        granted += 1;
                        assert_eq!(store.release(&one, None).await.unwrap(), Released::Released);
                    }
                }
                granted
            }));
        }
        let mut granted = 0;
        for task in tasks {
            granted += task.await.unwrap();
        }
        assert!(granted >= 50, "{isolation}: {granted}");
    }
}

#[tokio::test]
async fn a_proxy_that_lends_connections_changes_nothing() {
    let server = Server::start(&["fsync=off"]);
    server.store().await;
    let proxy = servers::Server::start(PgBouncer { server: server.0.place.address() }).unwrap();
    let lockers: Vec<_> = {
        let mut lockers = Vec::new();
        for _ in 0..4 {
            lockers.push(Locker::new(PostgresStore::connect(&proxy.url()).await.unwrap()));
        }
        lockers
    };
    let inside = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for n in 0..16 {
        let (locker, inside) = (lockers[n % 4].clone(), std::sync::Arc::clone(&inside));
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                let guard = locker.lock("one").wait(TTL).acquire().await.unwrap();
                assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    server.tell("delete from lockattr_lock").await;
    use_all(&PostgresStore::connect(&proxy.url()).await.unwrap())
        .await
        .unwrap_or_else(|error| panic!("{}", why(&error)));
}

#[tokio::test]
async fn settings_that_lose_grants_are_found() {
    let server = Server::start(&[]);
    let audit = server.store().await.audit().await.unwrap();
    assert_eq!((audit.level, audit.findings.len()), (Level::P2, 0), "{audit:?}");
    let server = Server::start(&["fsync=off", "synchronous_commit=off"]);
    let store = server.store().await;
    server.tell("alter table lockattr_lock set unlogged").await;
    let audit = store.audit().await.unwrap();
    assert_eq!(audit.level, Level::None);
    for word in ["fsync", "synchronous_commit", "unlogged"] {
        assert!(audit.findings.iter().any(|finding| finding.text.contains(word)), "{word}: {audit:?}");
    }
}
