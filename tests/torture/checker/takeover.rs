//! After a crash: others get the key when its lease is over, not before, and not much later.

use std::time::Duration;

use super::Report;
use super::grants::{Grant, Story};
use crate::rows::Rule;

/// The longest pause between two questions of a waiter.
const POLL: Duration = Duration::from_secs(1);
/// What a loaded machine may add.
const SLACK: Duration = Duration::from_millis(500);

pub(super) fn check(story: &Story, report: &mut Report, ttl: Duration) {
    for grants in story.of_keys().values() {
        let mut grants = grants.clone();
        grants.sort_by_key(|grant| grant.from);
        for dead in grants.iter().filter(|grant| grant.left.is_none() && grant.held) {
            let Some((killed, gone)) = story.killed.get(&dead.pid) else { continue };
            let next = grants.iter().find(|grant| grant.from > *gone);
            if let Some(next) = next {
                if next.held && next.to < dead.until {
                    report.add(Rule::EarlyTakeover, || {
                        format!(
                            "{} ms: {} after {}",
                            (dead.until - next.to) / 1_000_000,
                            next.show(),
                            dead.show()
                        )
                    });
                }
                let waited = story.calls[&next.call].asked < *killed;
                if waited {
                    report.takeovers.push(Duration::from_nanos(next.from - killed));
                }
            }
            if let Some(who) = somebody_waited_too_long(story, dead, *gone, next.map(|next| next.from), ttl) {
                report.add(Rule::LateTakeover, || format!("{who} after {}", dead.show()));
            }
        }
    }
}

/// Somebody who asked for this key alone while the dead one's lease ran, and had nothing of it long after.
fn somebody_waited_too_long(
    story: &Story,
    dead: &Grant,
    gone: u64,
    next: Option<u64>,
    ttl: Duration,
) -> Option<String> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let bound = gone + nanos(ttl + POLL + SLACK);
    if next.is_some_and(|next| next <= bound) {
        return None;
    }
    let waiting = story.calls.values().find(|call| {
        call.keys == [dead.key.as_str()]
            && call.asked <= gone + nanos(ttl)
            && call.ended.is_some_and(|ended| ended > bound)
            && call.got.is_none_or(|got| got > bound)
            && !story.stood_still(call, ttl / 4)
    });
    waiting.map(super::grants::Call::show)
}
