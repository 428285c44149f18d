//! A key is its bytes: no collation, no pattern, no quoting, no trimming.

use super::bench::{Bench, take};
use crate::lease::RecordState;
use crate::store::Store;

/// Each pair or triple is one key under some collation, pattern language or careless quoting.
const NAMES: [&str; 30] = [
    "A",
    "a",
    "job",
    "job ",
    " job",
    "Job",
    "é",
    "e\u{301}",
    "ß",
    "ss",
    "%",
    "%25",
    "_",
    "x_y",
    "x%y",
    "*",
    "[a]",
    "a\\",
    "a\\\\",
    "'",
    "''",
    "'; drop table lockattr_lock; --",
    "\"",
    "$owner",
    "{a}",
    "a?b",
    "🔒",
    "🔓",
    "0",
    "00",
];

pub(super) async fn keys_are_their_exact_bytes<S: Store>(bench: &Bench<S>) {
    let mut tokens = Vec::new();
    for name in NAMES {
        tokens.push(take(&*bench.store, &bench.lease(name)).await);
    }
    for (name, token) in NAMES.iter().zip(tokens) {
        let key = bench.key(name);
        let record = bench.store.inspect(&key).await.unwrap().expect("it was granted");
        assert_eq!((record.key, record.token), (key, token));
    }
    let listed = bench.store.list(&bench.prefix, None, 1000).await.unwrap();
    assert_eq!(listed.len(), NAMES.len());
}

pub(super) async fn a_key_of_383_bytes_is_kept_whole<S: Store>(bench: &Bench<S>) {
    let fill = 383 - bench.prefix.len() - 4;
    let (one, other) = (format!("{}🔒", "x".repeat(fill)), format!("{}🔓", "x".repeat(fill)));
    let lease = bench.lease(&one);
    assert_eq!(lease.key.len(), 383);
    take(&*bench.store, &lease).await;
    take(&*bench.store, &bench.lease(&other)).await;
    assert_eq!(bench.store.inspect(&lease.key).await.unwrap().map(|record| record.key), Some(lease.key));
}

pub(super) async fn list_takes_a_prefix_literally<S: Store>(bench: &Bench<S>) {
    for name in NAMES {
        take(&*bench.store, &bench.lease(&format!("{name}1"))).await;
        take(&*bench.store, &bench.lease(&format!("other{name}2"))).await;
    }
    for name in NAMES {
        let prefix = bench.key(name);
        let mut wanted: Vec<_> = NAMES
            .iter()
            .flat_map(|name| [bench.key(&format!("{name}1")), bench.key(&format!("other{name}2"))])
            .filter(|key| key.starts_with(&*prefix))
            .collect();
        wanted.sort();
        let listed = bench.store.list(&prefix, None, 1000).await.unwrap();
        let listed: Vec<_> = listed.into_iter().map(|record| record.key).collect();
        assert_eq!(listed, wanted, "below {prefix:?}");
    }
}

pub(super) async fn list_pages_in_the_order_of_bytes<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    let mut wanted = Vec::new();
    for number in 0..25_u32 {
        // Upper and lower case, and lengths, mixed: their order is a matter of bytes.
        let name = if number % 2 == 0 { format!("a{number}") } else { format!("B{number}") };
        take(store, &bench.lease(&name)).await;
        wanted.push(bench.key(&name));
    }
    let freed = bench.lease("a_freed");
    take(store, &freed).await;
    store.release(&freed, None).await.unwrap();
    wanted.sort();

    for limit in [1, 7, 25, 26, 1000] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = store.list(&bench.prefix, after.as_deref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            assert!(page.iter().all(|record| matches!(record.state, RecordState::Held { .. })));
            seen.extend(page.iter().map(|record| record.key.clone()));
            assert!(seen.len() <= wanted.len(), "paging goes round in circles: {seen:?}");
            match page.last() {
                Some(last) if page.len() == limit => after = Some(last.key.clone()),
                _ => break,
            }
        }
        assert_eq!(seen, wanted, "in pages of {limit}");
    }
}
