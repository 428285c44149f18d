//! Redis servers and connections that fail: what is certain, what is not, and that it works again after.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lockattr::lease::{Acquired, FencingToken, Lease, Owner, RecordState, Released, Renewed};
use lockattr::store::{RedisStore, Store, StoreError};
use lockattr::{LockError, Locker};

use super::redis_server::Server;
use crate::servers::free_port;

const TTL: Duration = Duration::from_secs(60);

fn lease(key: &str) -> Lease {
    Lease::new(format!("lockattr:{key}"), Owner::random(), TTL)
}

async fn take(store: &RedisStore, lease: &Lease) -> FencingToken {
    match store.acquire(lease).await {
        Ok(Acquired::Granted { token, .. }) => token,
        other => panic!("{other:?}"),
    }
}

fn why(error: &StoreError) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}

/// Asks until the store answers.
async fn eventually<T>(mut ask: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    let started = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) if started.elapsed() > Duration::from_secs(20) => panic!("{error:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let (one, other) = (lease("one"), lease("other"));
    for _ in 0..2 {
        server.tell(&["SCRIPT", "FLUSH"]);
        let token = take(&store, &one).await;
        server.tell(&["SCRIPT", "FLUSH"]);
        assert!(matches!(store.renew(&one).await, Ok(Renewed::Renewed { .. })));
        server.tell(&["SCRIPT", "FLUSH"]);
        assert_eq!(store.inspect(&one.key).await.unwrap().unwrap().token, token);
        server.tell(&["SCRIPT", "FLUSH"]);
        store.force_release(&one.key, token).await.unwrap();
        take(&store, &other).await;
        server.tell(&["SCRIPT", "FLUSH"]);
        assert_eq!(store.release(&other, None).await.unwrap(), Released::Released);
        server.tell(&["SCRIPT", "FLUSH"]);
        assert_eq!(store.collect(Duration::ZERO, 10).await.unwrap(), 2);
    }
}

#[tokio::test]
async fn a_restart_with_nothing_kept_forgets_but_tokens_grow() {
    let mut server = Server::start(&[]);
    let store = server.store().await;
    let (old, new) = (lease("job"), lease("job"));
    let token = take(&store, &old).await;
    server.kill();
    server.start_again();
    assert_eq!(eventually(async || store.renew(&old).await).await, Renewed::Lost);
    assert!(take(&store, &new).await > token);
    assert_ne!(store.release(&old, None).await.unwrap(), Released::Released);
    assert!(matches!(store.renew(&new).await, Ok(Renewed::Renewed { .. })));
}

#[tokio::test]
async fn a_restart_with_the_append_only_file_keeps_what_is_held() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = server.store().await;
    let old = lease("job");
    let token = take(&store, &old).await;
    server.kill();
    server.start_again();
    let answer = eventually(async || store.acquire(&lease("job")).await).await;
    assert!(matches!(answer, Acquired::Taken { .. }), "{answer:?}");
    assert!(matches!(store.renew(&old).await, Ok(Renewed::Renewed { .. })));
    assert_eq!(take(&store, &old).await, token);
}

#[tokio::test]
async fn without_a_server_a_request_is_refused_at_once_and_says_why() {
    let port = free_port().unwrap();
    let url = format!("redis://:hunter2@127.0.0.1:{port}/3");
    let store = RedisStore::new(&redis::Client::open(url.as_str()).unwrap());
    let started = Instant::now();
    for _ in 0..20 {
        let error = store.acquire(&lease("job")).await.unwrap_err();
        assert!(!error.is_unknown(), "nothing was sent");
        let why = why(&error);
        assert!(why.contains("refused") && why.contains(&port.to_string()), "{why}");
        assert!(!why.contains("hunter2") && !format!("{error:?} {store:?}").contains("hunter2"));
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());

    let locker = Locker::new(store);
    let started = Instant::now();
    let error = locker.lock("job").wait(Duration::from_millis(500)).acquire().await.unwrap_err();
    assert!(matches!(error, LockError::Store { .. }) && error.to_string().contains("refused"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_server_that_comes_later_is_found() {
    let mut server = Server::start(&[]);
    let store = RedisStore::new(&server.client());
    server.kill();
    assert!(store.acquire(&lease("job")).await.is_err());
    server.start_again();
    let job = lease("job");
    eventually(async || store.acquire(&job).await).await;
    take(&store, &job).await;
}

#[tokio::test]
async fn a_stopped_server_costs_no_more_than_the_wait_and_leaves_nothing_held() {
    let server = Server::start(&[]);
    let locker = Locker::new(server.store().await);
    locker.lock("warm").acquire().await.unwrap().release().await.unwrap();
    server.pause();
    let started = Instant::now();
    let error = locker
        .lock("job")
        .expires(Duration::from_secs(3))
        .wait(Duration::from_secs(1))
        .acquire()
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::Store { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    server.resume();
    let guard = locker.lock("job").wait(Duration::from_secs(10)).acquire().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_answers_nothing_is_replaced() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let job = lease("job");
    take(&store, &job).await;
    server.pause();
    let started = Instant::now();
    let answer = tokio::time::timeout(TTL, store.renew(&job)).await;
    let error = answer.expect("it is given up").unwrap_err();
    let waited = started.elapsed();
    assert!(error.is_unknown(), "{error:?}");
    assert!((9..15).contains(&waited.as_secs()), "{waited:?}");
    server.resume();
    let renewed = eventually(async || store.renew(&job).await).await;
    assert!(matches!(renewed, Renewed::Renewed { .. }));
}

#[tokio::test]
async fn a_holder_keeps_its_lock_while_its_connections_are_killed() {
    let server = Server::start(&[]);
    let locker = Locker::new(server.store().await);
    let rival = Locker::new(server.store().await);
    let guard = locker.lock("job").expires(Duration::from_secs(2)).acquire().await.unwrap();
    for _ in 0..40 {
        server.tell(&["CLIENT", "KILL", "TYPE", "normal"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
        if let Ok(other) = rival.lock("job").try_acquire().await {
            assert!(other.is_none(), "two hold it");
        }
    }
    assert!(guard.check().is_ok());
    guard.release().await.unwrap();
    drop(rival.lock("job").wait(Duration::from_secs(5)).acquire().await.unwrap());
}

#[tokio::test]
async fn requests_of_a_killed_connection_fail_or_answer_and_the_next_ones_work() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let enough = Arc::new(AtomicBool::new(false));
    let killing = tokio::task::spawn_blocking({
        let enough = Arc::clone(&enough);
        move || {
            // Not for ever, should the test fail before it says so.
            for _ in 0..3000 {
                if enough.load(Ordering::Relaxed) {
                    break;
                }
                server.tell(&["CLIENT", "KILL", "TYPE", "normal"]);
                std::thread::sleep(Duration::from_millis(10));
            }
            server
        }
    });
    let (mut done, mut failed) = (0, 0);
    while done < 20 || failed < 20 {
        let job = lease("job");
        // As the core does: the same owner until there is an answer, then given back until there is one.
        let granted = eventually(async || store.acquire(&job).await.inspect_err(|_| failed += 1)).await;
        assert!(matches!(granted, Acquired::Granted { .. }), "{granted:?}");
        let released =
            eventually(async || store.release(&job, None).await.inspect_err(|_| failed += 1)).await;
        assert_ne!(released, Released::NotHeld);
        done += 1;
    }
    enough.store(true, Ordering::Relaxed);
    let _server = killing.await.unwrap();
    take(&store, &lease("job")).await;
}

#[tokio::test]
async fn with_full_memory_nothing_new_is_taken_and_the_rest_goes_on() {
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let store = server.store().await;
    let held = ["renewed", "released", "kept", "forced"].map(lease);
    let (known, mut tokens) = (lease("known"), Vec::new());
    take(&store, &known).await;
    store.release(&known, None).await.unwrap();
    for lease in &held {
        tokens.push(take(&store, lease).await);
    }
    server.tell(&["CONFIG", "SET", "maxmemory", "1000000"]);
    assert!(server.try_tell(&["SET", "x", "y"]).is_err(), "memory is not full");

    for key in ["new", "known"] {
        let error = store.acquire(&lease(key)).await.unwrap_err();
        assert!(!error.is_unknown() && why(&error).contains("memory is full"), "{key}: {error:?}");
    }
    let many = [lease("a"), lease("b")];
    assert!(!store.acquire_many(&many).await.unwrap_err().is_unknown());

    let [renewed, released, kept, forced] = &held;
    let mut longer = renewed.clone();
    longer.ttl = TTL * 2;
    match store.renew(&longer).await.unwrap() {
        Renewed::Renewed { remaining } => assert!(remaining > TTL, "{remaining:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.release(released, None).await.unwrap(), Released::Released);
    assert_eq!(store.release(kept, Some(TTL / 2)).await.unwrap(), Released::Released);
    match store.inspect(&kept.key).await.unwrap().unwrap().state {
        RecordState::Kept { remaining } => assert!(remaining <= TTL / 2, "{remaining:?}"),
        other => panic!("{other:?}"),
    }
    store.force_release(&forced.key, tokens[3]).await.unwrap();
    let free = store.inspect(&forced.key).await.unwrap().unwrap();
    assert!(free.state == RecordState::Free && free.token > tokens[3], "{free:?}");

    server.tell(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(store.inspect(&many[0].key).await.unwrap(), None);
    take(&store, &lease("new")).await;
    take(&store, &lease("released")).await;
}
