//! A future dropped anywhere: what it had begun may land later, and an owner-checked release ends it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::bench::{Bench, eventually, is_held, rival, take};
use crate::lease::{Lease, Owner, RecordState};
use crate::store::Store;

/// Polls `work` at most this often, and drops it then.
pub(super) async fn polled<T>(work: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut work = pin!(work);
    let mut left = times;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match work.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Drops `work` after none, one, two … polls, with `after` behind each, until it once ran to its end.
pub(super) async fn at_every_poll<T>(mut work: impl AsyncFnMut(usize) -> Option<T>) {
    for polls in 0..100_000 {
        if work(polls).await.is_some() {
            assert!(polls > 0);
            return;
        }
    }
    panic!("it does not end within 100,000 polls");
}

pub(super) async fn an_acquire_dropped_anywhere_leaves_nothing_held<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    at_every_poll(async |polls| {
        let lease = bench.lease(&format!("dropped{polls}"));
        let ended = polled(store.acquire(&lease), polls).await.map(|answer| answer.unwrap());
        eventually("nothing to be held", async || {
            store.release(&lease, None).await.unwrap();
            (!is_held(store, &lease.key).await).then_some(())
        })
        .await;
        take(store, &rival(&lease)).await;
        ended
    })
    .await;
}

pub(super) async fn an_acquire_of_many_dropped_anywhere_leaves_nothing_held<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    at_every_poll(async |polls| {
        let owner = Owner::random();
        let leases = ["a", "b", "c"].map(|name| Lease { owner, ..bench.lease(&format!("{name}{polls}")) });
        let ended = polled(store.acquire_many(&leases), polls).await.map(|answer| answer.unwrap());
        for lease in &leases {
            eventually("nothing to be held", async || {
                store.release_many(&leases, None).await.unwrap();
                (!is_held(store, &lease.key).await).then_some(())
            })
            .await;
        }
        for lease in &leases {
            take(store, &rival(lease)).await;
        }
        ended
    })
    .await;
}

pub(super) async fn a_release_dropped_anywhere_can_be_repeated<S: Store>(bench: &Bench<S>) {
    let store = &*bench.store;
    at_every_poll(async |polls| {
        let lease = bench.lease(&format!("dropped{polls}"));
        take(store, &lease).await;
        let ended = polled(store.release(&lease, None), polls).await.map(|answer| answer.unwrap());
        store.release(&lease, None).await.unwrap();
        let record = store.inspect(&lease.key).await.unwrap();
        assert!(record.is_none_or(|record| record.state == RecordState::Free));
        take(store, &rival(&lease)).await;
        ended
    })
    .await;
}
