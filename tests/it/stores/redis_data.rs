//! What lies in a Redis database: records, what others keep beside them, and what memory pressure takes.

use std::error::Error as _;
use std::time::Duration;

use lockattr::lease::{Acquired, FencingToken, Holder, Lease, Owner, RecordState};
use lockattr::store::{RedisStore, Store};

use super::redis_server::Server;

const TTL: Duration = Duration::from_secs(60);
const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1000;

fn lease(key: &str) -> Lease {
    Lease::new(key, Owner::random(), TTL)
}

async fn take(store: &RedisStore, lease: &Lease) -> FencingToken {
    match store.acquire(lease).await {
        Ok(Acquired::Granted { token, .. }) => token,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn eviction_spares_what_is_held_kept_or_in_its_window() {
    for policy in ["volatile-lru", "volatile-ttl", "volatile-random", "volatile-lfu"] {
        let server = Server::start(&["--maxmemory-policy", policy]);
        let store = server.store().await;
        let (mut held, mut freed) = (Vec::new(), Vec::new());
        for number in 0..50 {
            let (used, kept, mut window, free) = (
                lease(&format!("held:{number}")),
                lease(&format!("kept:{number}")),
                lease(&format!("window:{number}")),
                lease(&format!("free:{number}")),
            );
            window.once_per = Some(TTL * 60 * 24);
            for lease in [&used, &kept, &window, &free] {
                take(&store, lease).await;
            }
            store.release(&kept, Some(TTL)).await.unwrap();
            store.release(&window, None).await.unwrap();
            store.release(&free, None).await.unwrap();
            held.extend([used, kept, window]);
            freed.push(free);
        }
        server.tell(&["CONFIG", "SET", "maxmemory", "2500000"]);
        // More than there is room for; what has no key ttl itself is refused in the end.
        for number in 0..2000 {
            let filler = format!("filler:{number}");
            let value = "x".repeat(2000);
            if server.try_tell(&["SET", &filler, &value]).is_err() {
                break;
            }
        }
        let evicted: usize = freed.iter().map(|lease| 1 - server.ask::<usize>(&["EXISTS", &lease.key])).sum();
        assert!(evicted > 0, "{policy}: there was no pressure");
        for lease in &held {
            let mut rival = lease.clone();
            rival.owner = Owner::random();
            let refused = store.acquire(&rival).await.unwrap();
            assert!(matches!(refused, Acquired::Taken { .. }), "{policy}: {} is {refused:?}", lease.key);
        }
    }
}

#[tokio::test]
async fn only_what_is_over_has_a_key_ttl() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let ttl = |key: &str| server.ask::<i64>(&["PTTL", key]);
    for _ in 0..2 {
        let job = lease("job");
        take(&store, &job).await;
        assert_eq!(ttl("job"), -1);
        store.renew(&job).await.unwrap();
        assert_eq!(ttl("job"), -1);
        store.release(&job, None).await.unwrap();
        assert!((WEEK_MS - 60_000..=WEEK_MS).contains(&ttl("job")), "{}", ttl("job"));
    }
    let record: Vec<String> = server.ask(&["HVALS", "job"]);
    let bytes: usize = server.ask(&["MEMORY", "USAGE", "job"]);
    assert!(bytes < 400, "{bytes} bytes: {record:?}");
}

#[tokio::test]
async fn what_others_keep_is_neither_taken_nor_shown_nor_removed() {
    let server = Server::start(&[]);
    let store = server.store().await;
    server.tell(&["SET", "text", "x"]);
    server.tell(&["HSET", "hash", "owner", "x", "expires", "1", "ttl", "1"]);
    server.tell(&["HSET", "empty", "", ""]);
    let binary: redis::Value = {
        let mut admin = server.client().get_connection().unwrap();
        redis::cmd("HSET").arg(b"bin\xff\x00").arg("a").arg("b").query(&mut admin).unwrap()
    };
    assert_eq!(binary, redis::Value::Int(1));
    for key in ["text", "hash", "empty"] {
        let error = store.acquire(&lease(key)).await.unwrap_err();
        let why = error.source().map(ToString::to_string).unwrap_or_default();
        assert!(!error.is_unknown() && why.contains("something else"), "{key}: {why}");
    }
    let many = [lease("free"), lease("hash")];
    assert!(!store.acquire_many(&many).await.unwrap_err().is_unknown());
    for key in ["hash", "empty", "free"] {
        assert_eq!(store.inspect(key).await.unwrap(), None, "{key}");
        assert!(matches!(store.renew(&lease(key)).await, Ok(lockattr::lease::Renewed::Lost)));
        store.release(&lease(key), None).await.unwrap();
        store.force_release(key, FencingToken::new(1)).await.unwrap();
    }
    assert_eq!(store.list("", None, 100).await.unwrap(), []);
    assert_eq!(store.collect(Duration::ZERO, 100).await.unwrap(), 0);
    assert_eq!(server.ask::<usize>(&["DBSIZE"]), 4);
    assert_eq!(server.ask::<usize>(&["HLEN", "hash"]), 3);
}

#[tokio::test]
async fn what_a_crashed_holder_left_is_collected() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let mut crashed = lease("order:1");
    crashed.ttl = Duration::from_millis(200);
    let token = take(&store, &crashed).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.ask::<i64>(&["PTTL", "order:1"]), -1);
    assert_eq!(store.collect(TTL, 10).await.unwrap(), 0);
    assert_eq!(store.collect(Duration::from_millis(50), 10).await.unwrap(), 1);
    assert_eq!(server.ask::<usize>(&["DBSIZE"]), 0);
    assert!(take(&store, &lease("order:1")).await > token);
}

#[tokio::test]
async fn ten_thousand_keys_are_listed_in_pages() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let mut wanted = Vec::new();
    for chunk in 0..100_u32 {
        let leases: Vec<_> =
            (0..100_u32).map(|n| lease(&format!("list*[{}]", (chunk * 100 + n) * 7919 % 10_000))).collect();
        wanted.extend(leases.iter().map(|lease| lease.key.clone()));
        store.acquire_many(&leases).await.unwrap();
    }
    take(&store, &lease("list")).await;
    wanted.sort();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.list("list*[", after.as_deref(), 1500).await.unwrap();
        seen.extend(page.iter().map(|record| record.key.clone()));
        match page.last() {
            Some(last) if page.len() == 1500 => after = Some(last.key.clone()),
            _ => break,
        }
    }
    assert_eq!(seen.len(), 10_000);
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn odd_keys_and_holders_come_back_as_they_are() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let long = "ü".repeat(190);
    for key in ["{a}{b}", "a\u{a0}b", "\u{202e}x", "%s%d", "'\"\\", "🔒", "^-]", &long] {
        let mut lease = lease(key);
        lease.holder = std::sync::Arc::new(Holder::new("a b\u{e9}", 7, "line\nand {other}\n"));
        let token = take(&store, &lease).await;
        let record = store.list(key, None, 10).await.unwrap().pop().unwrap();
        assert_eq!((&*record.key, record.token), (key, token));
        match record.state {
            RecordState::Held { holder, .. } => assert_eq!(holder, lease.holder),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_clock_that_went_back_holds_nobody_out_for_longer_than_a_ttl() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let (held, free) = (lease("held"), lease("free"));
    let token = take(&store, &held).await;
    take(&store, &free).await;
    store.release(&free, None).await.unwrap();
    // An hour from now, as the server's clock would see what it stamped before it was set back.
    let ahead: Vec<i64> = server.ask(&["TIME"]);
    let ahead = ((ahead[0] + 3600) * 1_000_000).to_string();
    server.tell(&["HSET", "held", "expires", &ahead, "granted", &ahead, "lockattr", &ahead]);
    server.tell(&["HSET", "free", "expires", &format!("-{ahead}"), "lockattr", &ahead]);
    match store.acquire(&lease("held")).await.unwrap() {
        Acquired::Taken { remaining, .. } => assert!(remaining <= TTL, "{remaining:?}"),
        other => panic!("{other:?}"),
    }
    match store.renew(&held).await.unwrap() {
        lockattr::lease::Renewed::Renewed { remaining } => assert!(remaining <= TTL, "{remaining:?}"),
        other => panic!("{other:?}"),
    }
    store.release(&held, None).await.unwrap();
    for key in ["held", "free"] {
        assert_eq!(take(&store, &lease(key)).await.get(), ahead.parse::<u64>().unwrap() + 1, "{token}");
    }
}
