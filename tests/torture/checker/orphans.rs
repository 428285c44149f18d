//! What the store lists as held although nobody holds it any more.

use std::time::Duration;

use super::Report;
use super::grants::Story;
use crate::history::Outcome;
use crate::nemesis::Nemesis;
use crate::rows::Rule;

/// What may be left after an end without a crash, while the store answers.
const CLEAN: Duration = Duration::from_secs(1);
/// How much later than its end a lease may be listed.
const SLACK: Duration = Duration::from_millis(500);

pub(super) fn check(story: &Story, report: &mut Report, ttl: Duration) {
    // Where clients or the store are out of reach, only the lease's own end gives the key back. So it is with a
    // grant whose caller's thread is blocked: nobody looks at it.
    let reachable = !report.row.may().contains(&Rule::Failure)
        && !matches!(report.row.nemesis, Nemesis::Kill | Nemesis::Pause | Nemesis::Busy);
    let lease = ttl + SLACK;
    let owners: std::collections::BTreeMap<_, _> =
        story.grants.iter().map(|grant| ((grant.key.as_str(), grant.token), grant)).collect();
    for ((key, token), seen) in &story.seen {
        let owner = owners.get(&(key.as_str(), *token));
        let killed = story.killed.get(&seen.pid);
        let call = owner.map(|owner| &story.calls[&owner.call]);
        let since = match (call.and_then(|call| call.ended), killed) {
            (Some(ended), _) => ended,
            (None, Some((_, gone))) => *gone,
            // It never became a grant that anybody knew of.
            (None, None) => seen.first,
        };
        let orphan = Duration::from_nanos(seen.last.saturating_sub(since));
        let crashed = killed.is_some() && call.is_none_or(|call| call.outcome.is_none());
        if !crashed {
            report.longest_orphan = report.longest_orphan.max(orphan);
        }
        let lost = call.is_some_and(|call| matches!(call.outcome, Some(Outcome::Lost { .. })));
        let limit = if crashed || lost || !reachable { lease } else { CLEAN };
        if orphan > limit {
            report.add(Rule::Orphan, || {
                let owner = owner.map_or_else(|| "nobody knows of it".to_owned(), |owner| owner.show());
                format!("{key} with token {token} for {orphan:.1?} in process {}: {owner}", seen.pid)
            });
        }
    }
}
