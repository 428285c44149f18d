//! Which Redis servers and users are used, and what is said of the others.

use std::error::Error as _;
use std::time::Duration;

use lockattr::lease::{Acquired, Lease, Owner, RecordState, Released, Renewed};
use lockattr::store::{Level, RedisOptions, RedisStore, Store, StoreError, Wake};
use lockattr::{LockError, Locker};

use super::redis_server::Server;
#[cfg(feature = "redis-tls")]
use crate::servers::free_port;

const TTL: Duration = Duration::from_secs(60);
/// What the documentation of the store says.
const LEAST: [&str; 16] = [
    "+ping",
    "+hello",
    "+select",
    "+info",
    "+eval",
    "+evalsha",
    "+time",
    "+hmget",
    "+hgetall",
    "+hset",
    "+hdel",
    "+persist",
    "+pexpire",
    "+scan",
    "+publish",
    "+subscribe",
];

fn lease(key: &str) -> Lease {
    Lease::new(format!("lockattr:{key}"), Owner::random(), TTL)
}

async fn refusal(url: &str) -> String {
    match RedisStore::connect(url).await {
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

/// Makes the user that has only these rights.
fn user(server: &Server, name: &str, rights: &[&str]) {
    let mut command = vec!["ACL", "SETUSER", name, "reset", "on", ">hunter2", "~lockattr:*", "&lockattr:*"];
    command.extend(rights);
    server.tell(&command);
}

/// Everything that a store does.
async fn use_all(store: &RedisStore) -> Result<(), StoreError> {
    let all = [lease("a"), lease("b")];
    store.acquire_many(&all).await?;
    assert!(matches!(store.renew(&all[0]).await?, Renewed::Renewed { .. }));
    assert_eq!(store.list("lockattr:", None, 10).await?.len(), 2);
    assert_eq!(store.release(&all[0], Some(TTL)).await?, Released::Released);
    let kept = store.inspect(&all[0].key).await?.unwrap();
    assert!(matches!(kept.state, RecordState::Kept { .. }), "{kept:?}");
    store.force_release(&all[0].key, kept.token).await?;
    assert_eq!(store.release_many(&all, None).await?.len(), 2);
    // A record that was released has a key ttl, which a grant takes away.
    let again = lease("a");
    assert!(matches!(store.acquire(&again).await?, Acquired::Granted { .. }));
    store.release(&again, None).await?;
    assert_eq!(store.collect(Duration::ZERO, 10).await?, 2);
    store.audit().await?;
    Ok(())
}

#[tokio::test]
async fn the_least_rights_are_enough() {
    let server = Server::start(&["--databases", "4"]);
    user(&server, "ann", &LEAST);
    // Of others in the same database.
    server.tell(&["HSET", "session:7", "user", "bob"]);
    let store = RedisStore::connect(&server.url_as("ann", "hunter2")).await.unwrap();
    use_all(&store).await.unwrap();
    RedisStore::connect(&format!("{}&db=2", server.url_as("ann", "hunter2"))).await.unwrap();
    assert_eq!(server.ask::<String>(&["HGET", "session:7", "user"]), "bob");
    for right in ["KEYS *", "GET x", "FLUSHALL", "CONFIG GET *"] {
        let mut ann = redis::Client::open(server.url_as("ann", "hunter2")).unwrap().get_connection().unwrap();
        let words: Vec<_> = right.split(' ').collect();
        assert!(redis::cmd(words[0]).arg(&words[1..]).exec(&mut ann).is_err(), "{right} is a right");
    }
}

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    let server = Server::start(&[]);
    for missing in LEAST {
        // These can be done without: below.
        if ["+ping", "+hello", "+select", "+publish", "+subscribe"].contains(&missing) {
            continue;
        }
        let rights: Vec<_> = LEAST.into_iter().filter(|right| *right != missing).collect();
        user(&server, "ann", &rights);
        server.tell(&["SCRIPT", "FLUSH"]);
        for key in ["lockattr:a", "lockattr:b"] {
            server.tell(&["DEL", key]);
        }
        let name = &missing[1..];
        let said = match RedisStore::connect(&server.url_as("ann", "hunter2")).await {
            Err(error) => error.to_string(),
            Ok(store) => {
                let error = use_all(&store).await.expect_err(name);
                assert_eq!(error.is_unknown(), name == "persist", "{name}: {}", why(&error));
                why(&error)
            }
        };
        assert!(said.contains(&format!("{name}`")) || said.contains(&format!("'{name}'")), "{name}: {said}");
        assert!(said.contains("+evalsha"), "{said}");
    }
}

#[tokio::test]
async fn keys_that_are_no_right_are_named() {
    let server = Server::start(&[]);
    user(&server, "ann", &LEAST);
    let store = RedisStore::connect(&server.url_as("ann", "hunter2")).await.unwrap();
    let error = store.acquire(&Lease::new("elsewhere:job", Owner::random(), TTL)).await.unwrap_err();
    assert!(!error.is_unknown() && why(&error).contains("key"), "{error:?}");
    assert!(!why(&error).contains("elsewhere"));
}

#[tokio::test]
async fn without_a_right_to_the_channel_waiters_ask_instead() {
    let server = Server::start(&[]);
    let rights: Vec<_> =
        LEAST.into_iter().filter(|right| !["+publish", "+subscribe"].contains(right)).collect();
    user(&server, "ann", &rights);
    let store = RedisStore::connect(&server.url_as("ann", "hunter2")).await.unwrap();
    use_all(&store).await.unwrap();
    let (one, other) = (Locker::new(store.clone()), Locker::new(store));
    let guard = one.lock("job").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { other.lock("job").wait(TTL).acquire().await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    guard.release().await.unwrap();
    drop(waiting.await.unwrap().unwrap());
}

#[tokio::test]
async fn a_release_by_another_store_is_told() {
    let server = Server::start(&[]);
    let (here, there) = (server.store().await, server.store().await);
    let mut watch = here.watch().unwrap();
    let mut next = async || tokio::time::timeout(TTL, watch.next()).await.expect("a hint");
    assert_eq!(next().await, Some(Wake::Missed), "whatever was freed before it listened");
    for round in 0..2 {
        let job = lease("job");
        there.acquire(&job).await.unwrap();
        there.release(&job, None).await.unwrap();
        assert_eq!(next().await, Some(Wake::Freed(job.key)), "{round}");
        // It listens again by itself.
        server.tell(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        server.tell(&["CLIENT", "KILL", "TYPE", "normal"]);
        assert_eq!(next().await, Some(Wake::Missed), "{round}");
        while there.inspect("lockattr:job").await.is_err() {}
    }
}

#[tokio::test]
async fn a_wrong_password_is_said_and_never_shown() {
    let server = Server::start(&[]);
    user(&server, "ann", &LEAST);
    server.tell(&["ACL", "SETUSER", "default", "resetpass", ">other", "on"]);
    for (name, password) in [("ann", "hunter22"), ("nobody", "hunter2")] {
        let text = refusal(&server.url_as(name, password)).await;
        assert!(text.contains("password"), "{text}");
    }
    let text = refusal(&server.url()).await;
    assert!(text.contains("password"), "{text}");
    let store = RedisStore::connect(&server.url_as("ann", "hunter2")).await.unwrap();
    let shown = format!("{store:?} {:?}", Locker::new(store.clone()));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn databases_are_apart_and_one_that_is_missing_is_said() {
    let server = Server::start(&["--databases", "4"]);
    let url = server.url();
    let store = async |number: u32| RedisStore::connect(&format!("{url}?db={number}")).await.unwrap();
    let (one, other) = (store(1).await, store(2).await);
    let job = lease("job");
    one.acquire(&job).await.unwrap();
    assert_eq!(other.inspect(&job.key).await.unwrap(), None);
    assert!(matches!(other.acquire(&lease("job")).await, Ok(Acquired::Granted { .. })));
    let text = refusal(&format!("{url}?db=4")).await;
    assert!(text.contains("does not have the database"), "{text}");
}

#[tokio::test]
async fn an_address_works_as_well_as_a_socket() {
    let server = Server::start_with_port(&[]);
    let port = server.port();
    let locker = Locker::connect(&format!("redis://127.0.0.1:{port}/0")).await.unwrap();
    let guard = locker.lock("job").acquire().await.unwrap();
    let elsewhere = Locker::connect(&server.url()).await.unwrap();
    assert!(elsewhere.lock("job").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_replica_is_not_used() {
    let primary = Server::start_with_port(&[]);
    let port = primary.port().to_string();
    // A replica that takes writes would keep them from everybody else.
    let replica = Server::start(&["--replicaof", "127.0.0.1", &port, "--replica-read-only", "no"]);
    let text = refusal(&replica.url()).await;
    assert!(text.contains("replica of 127.0.0.1"), "{text}");
    primary.store().await;
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_refuses() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let job = lease("job");
    store.acquire(&job).await.unwrap();
    server.tell(&["REPLICAOF", "127.0.0.1", "1"]);
    for _ in 0..3 {
        let error = store.renew(&job).await.unwrap_err();
        assert!(!error.is_unknown() && why(&error).contains("replica"), "{}", why(&error));
    }
    server.tell(&["REPLICAOF", "NO", "ONE"]);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert!(matches!(store.renew(&job).await, Ok(Renewed::Renewed { .. })));
}

#[tokio::test]
async fn a_sentinel_is_not_used() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("sentinel.conf");
    std::fs::write(&file, "").unwrap();
    let sentinel = Server::start(&[file.to_str().unwrap(), "--sentinel"]);
    let text = refusal(&sentinel.url()).await;
    assert!(text.contains("Sentinel"), "{text}");
}

#[tokio::test]
async fn a_server_that_evicts_what_is_held_is_used_only_by_name() {
    let server = Server::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let text = refusal(&server.url()).await;
    assert!(text.contains("allkeys-lru") && text.contains("allow_eviction"), "{text}");
    let store = RedisStore::new(&server.client());
    assert!(why(&store.acquire(&lease("job")).await.unwrap_err()).contains("allkeys-lru"));

    let store = RedisOptions::new().allow_eviction(true).connect(&server.url()).await.unwrap();
    store.acquire(&lease("job")).await.unwrap();
    let audit = store.audit().await.unwrap();
    assert_eq!(audit.level, Level::None);
    assert!(audit.findings.iter().any(|finding| finding.text.contains("allkeys-lru")), "{audit:?}");
    Locker::connect(&format!("{}?allow_eviction=true", server.url())).await.unwrap();
}

#[tokio::test]
async fn the_audit_tells_what_a_server_keeps() {
    let durable = Server::start_with_port(&["--appendonly", "yes"]);
    let store = durable.store().await;
    assert_eq!(store.audit().await.unwrap().level, Level::P2);
    Locker::new(store.clone()).require(Level::P2).await.unwrap();

    let port = durable.port().to_string();
    let _replica = Server::start(&["--replicaof", "127.0.0.1", &port]);
    let mut audit = store.audit().await.unwrap();
    for _ in 0..200 {
        if audit.level == Level::None {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        audit = store.audit().await.unwrap();
    }
    assert!(audit.findings.iter().any(|finding| finding.text.contains("1 replicas")), "{audit:?}");

    let forgetful = Server::start(&[]);
    let error = Locker::new(forgetful.store().await).require(Level::P1).await.unwrap_err();
    assert!(error.to_string().contains("append-only file is off"), "{error}");
}

#[cfg(feature = "redis-tls")]
#[tokio::test]
async fn tls_works_and_is_missed_where_it_is_missing() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = tempfile::TempDir::new().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key, port) = (file("cert.pem"), file("key.pem"), free_port().unwrap().to_string());
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let args = ["--tls-port", &port, "--tls-cert-file", &certificate, "--tls-key-file", &key];
    let _server = Server::start(&[&args[..], &["--tls-auth-clients", "no"]].concat());

    let trusted = redis::TlsCertificates { client_tls: None, root_cert: Some(made.cert.pem().into_bytes()) };
    let url = format!("rediss://localhost:{port}");
    let client = redis::Client::build_with_tls(url.as_str(), trusted).unwrap();
    use_all(&RedisStore::new(&client)).await.unwrap();

    let text = refusal(&url).await;
    assert!(text.contains("certificate is not trusted"), "{text}");
    let text = refusal(&format!("redis://:hunter2@localhost:{port}")).await;
    assert!(text.contains("`rediss:`"), "{text}");
}

#[cfg(feature = "redis-tls")]
#[tokio::test]
async fn tls_to_a_server_without_it_is_said() {
    let server = Server::start_with_port(&[]);
    let text = refusal(&format!("rediss://:hunter2@127.0.0.1:{}", server.port())).await;
    assert!(text.contains("TLS"), "{text}");
}
