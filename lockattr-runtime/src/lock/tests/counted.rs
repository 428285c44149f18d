//! Counters and gauges, through a recorder that adds them up.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use super::observed::{TEMPLATE, all_that_happens, faulty, options, user};
use super::*;

/// What was recorded: by name, and by outcome or cause.
#[derive(Default)]
struct Sums(Mutex<BTreeMap<(String, String), Arc<AtomicU64>>>);

/// Counts how often something was measured.
struct Count(Arc<AtomicU64>);

impl HistogramFn for Count {
    fn record(&self, _: f64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Sums {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let mut kind = String::new();
        for label in key.labels() {
            match label.key() {
                "template" => assert_eq!(label.value(), TEMPLATE),
                "store" => assert_eq!(label.value(), "memory"),
                _ => label.value().clone_into(&mut kind),
            }
        }
        let mut sums = self.0.lock().expect("no panic");
        Arc::clone(sums.entry((key.name().to_owned(), kind)).or_default())
    }

    fn count(&self, name: &str, kind: &str) -> u64 {
        let sums = self.0.lock().expect("no panic");
        sums.get(&(name.to_owned(), kind.to_owned())).map_or(0, |sum| sum.load(Ordering::Relaxed))
    }

    /// Gauges keep the bits of a double.
    fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.count(name, ""))
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Count(self.cell(key))))
    }
}

fn recorded(work: impl AsyncFnOnce(&Sums)) {
    let sums = Sums::default();
    metrics::with_local_recorder(&sums, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(work(&sums));
    });
}

#[test]
fn counters_carry_the_template_and_say_how_it_went() {
    recorded(async |sums| {
        let (locker, store) = faulty();
        all_that_happens(&locker, &store).await;
        for (outcome, times) in
            [("acquired", 3), ("busy", 1), ("timeout", 1), ("cancelled", 1), ("store_error", 1)]
        {
            assert_eq!(sums.count("lockattr_acquire_total", outcome), times, "{outcome}");
        }
        assert_eq!(sums.count("lockattr_wait_seconds", ""), 7);
        assert!(sums.count("lockattr_renew_total", "failed") >= 3);
        assert!(sums.count("lockattr_renew_total", "renewed") >= 1);
        assert_eq!(sums.count("lockattr_lost_total", "expired"), 1);
        assert_eq!(sums.count("lockattr_release_errors_total", ""), 1);
        assert!(sums.count("lockattr_hold_seconds", "") >= 1);
    });
}

#[test]
fn gauges_say_how_many_hold_and_wait_now() {
    recorded(async |sums| {
        let (locker, _) = faulty();
        let population = || (sums.gauge("lockattr_held"), sums.gauge("lockattr_waiting"));
        let guard = locker.enter(user(), options(SECOND, Duration::ZERO), here()).await.expect("it is free");
        assert_eq!(population(), (1.0, 0.0));
        let waiter = tokio::spawn({
            let locker = locker.clone();
            async move { locker.enter(user(), options(SECOND, 5 * SECOND), here()).await }
        });
        tokio::time::sleep(SECOND).await;
        assert_eq!(population(), (1.0, 1.0));
        waiter.await.expect("no panic").expect_err("it is held");
        assert_eq!(population(), (1.0, 0.0));
        drop(guard);
        assert_eq!(population(), (0.0, 0.0));
    });
}
