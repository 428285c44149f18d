//! One holder at a time, and nobody kept out without one.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::task::JoinSet;

use super::bench::{Bench, is_held, refuse, rival, take};
use crate::lease::{Acquired, Lease, Mode};
use crate::store::{Feature, Store};

pub(super) async fn a_free_key_is_granted<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("free");
    assert_eq!(bench.store.inspect(&lease.key).await.unwrap(), None);
    match bench.store.acquire(&lease).await.unwrap() {
        Acquired::Granted { remaining, .. } => {
            assert!(remaining <= lease.ttl && remaining > Duration::ZERO, "{remaining:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(is_held(&*bench.store, &lease.key).await);
}

pub(super) async fn a_held_key_is_refused_and_names_its_holder<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("held");
    take(&*bench.store, &lease).await;
    match bench.store.acquire(&rival(&lease)).await.unwrap() {
        Acquired::Taken { remaining, holder, .. } => {
            assert!(remaining <= lease.ttl, "{remaining:?}");
            assert!(holder.is_none_or(|holder| holder == lease.holder), "the holder is somebody else");
        }
        other => panic!("{other:?}"),
    }
}

pub(super) async fn a_live_lease_is_not_taken_over_by_an_equal_request<S: Store>(bench: &Bench<S>) {
    let lease = bench.lease("equal");
    take(&*bench.store, &lease).await;
    for _ in 0..20 {
        refuse(&*bench.store, &rival(&lease)).await;
    }
    assert!(is_held(&*bench.store, &lease.key).await);
}

pub(super) async fn another_handle_sees_the_lease<S: Store>(bench: &Bench<S>) {
    let (here, there) = (&*bench.store, bench.another().await);
    let lease = bench.lease("shared");
    take(here, &lease).await;
    refuse(&there, &rival(&lease)).await;
    there.release(&lease, None).await.unwrap();
    take(here, &rival(&lease)).await;
}

pub(super) async fn different_keys_do_not_exclude_each_other<S: Store>(bench: &Bench<S>) {
    for name in ["a", "b", "aa", "a:b", "a/b"] {
        take(&*bench.store, &bench.lease(name)).await;
    }
}

pub(super) async fn of_many_first_requests_one_is_granted<S: Store>(bench: &Bench<S>) {
    for round in 0..20 {
        let lease = bench.lease(&format!("first{round}"));
        let mut requests = JoinSet::new();
        for _ in 0..8 {
            let (store, lease) = (bench.another().await, rival(&lease));
            requests.spawn(async move { persistent(&store, &lease).await });
        }
        let answers = requests.join_all().await;
        let grants = answers.iter().filter(|answer| matches!(answer, Acquired::Granted { .. })).count();
        assert_eq!(grants, 1, "{answers:?}");
    }
}

/// Asks again when the store failed, as the core does: a conflict is a failure, never a grant.
async fn persistent<S: Store>(store: &S, lease: &Lease) -> Acquired {
    for _ in 0..20 {
        match store.acquire(lease).await {
            Ok(answer) => return answer,
            Err(_) => tokio::time::sleep(super::bench::PAUSE).await,
        }
    }
    panic!("the store failed twenty times on {}", lease.key);
}

pub(super) async fn a_mode_that_is_not_supported_is_refused<S: Store>(bench: &Bench<S>) {
    let modes = [(Feature::Shared, Mode::Shared), (Feature::Permits, Mode::Permits(NonZeroU32::MIN))];
    for (feature, mode) in modes {
        if bench.store.supports(feature) {
            continue;
        }
        let lease = Lease { mode, ..bench.lease("mode") };
        let error = bench.store.acquire(&lease).await.expect_err("a weaker lock is no lock");
        assert!(!error.is_unknown());
        assert!(!is_held(&*bench.store, &lease.key).await);
    }
}
