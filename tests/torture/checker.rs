//! Judges a run by its histories alone.

mod grants;
mod orphans;
mod takeover;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::Failure;
use crate::history::Outcome;
use crate::register::Effects;
use crate::rows::{Row, Rule};
use grants::Story;

/// Most findings of one rule that are shown.
const SHOWN: usize = 5;

/// What a run showed.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) row: Row,
    pub(crate) grants: usize,
    pub(crate) effects: Effects,
    /// Calls that ended as lost.
    pub(crate) losses: usize,
    /// Longest time that something was held for nobody, without a crash.
    pub(crate) longest_orphan: Duration,
    pub(crate) takeovers: Vec<Duration>,
    /// From the signal to go on until the body that had lost its lock was gone.
    pub(crate) stopped_after: Vec<Duration>,
    /// How often each rule was broken, and the first few times.
    pub(crate) broken: BTreeMap<Rule, (usize, Vec<String>)>,
}

impl Report {
    fn add(&mut self, rule: Rule, text: impl FnOnce() -> String) {
        let (count, shown) = self.broken.entry(rule).or_default();
        *count += 1;
        if shown.len() < SHOWN {
            shown.push(text());
        }
    }

    pub(crate) fn count(&self, rule: Rule) -> usize {
        self.broken.get(&rule).map_or(0, |(count, _)| *count)
    }

    /// Adds what another run of the same row showed.
    pub(crate) fn merge(&mut self, other: Self) {
        self.grants += other.grants;
        self.effects.add(other.effects);
        self.losses += other.losses;
        self.longest_orphan = self.longest_orphan.max(other.longest_orphan);
        self.takeovers.extend(other.takeovers);
        self.stopped_after.extend(other.stopped_after);
        for (rule, (count, texts)) in other.broken {
            let (all, shown) = self.broken.entry(rule).or_default();
            *all += count;
            shown.extend(texts);
        }
    }

    /// What had to be shown and was not.
    pub(crate) fn missing(&self) -> Vec<Rule> {
        self.row.must().iter().copied().filter(|rule| self.count(*rule) == 0).collect()
    }

    /// What is wrong with the run: rules that were broken and should hold.
    pub(crate) fn failed(&self) -> Vec<String> {
        let allowed = |rule: &Rule| self.row.may().contains(rule) || self.row.must().contains(rule);
        let mut failed = Vec::new();
        for (rule, (count, shown)) in self.broken.iter().filter(|(rule, _)| !allowed(rule)) {
            failed.push(format!("{rule:?}, {count} times:\n    {}", shown.join("\n    ")));
        }
        if self.grants < 20 {
            failed.push(format!("only {} grants", self.grants));
        }
        failed
    }
}

pub(crate) fn judge(row: Row, directory: &Path, effects: Effects, ttl: Duration) -> Result<Report, Failure> {
    let story = Story::read(directory)?;
    let mut report = Report {
        row,
        grants: story.grants.len(),
        effects,
        losses: 0,
        longest_orphan: Duration::ZERO,
        takeovers: Vec::new(),
        stopped_after: Vec::new(),
        broken: BTreeMap::new(),
    };
    registers(&mut report);
    story.overlaps(&mut report);
    story.tokens(&mut report);
    story.outcomes(&mut report, ttl);
    takeover::check(&story, &mut report, ttl);
    orphans::check(&story, &mut report, ttl);
    for text in &story.wrong {
        report.add(Rule::Undeclared, || text.clone());
    }
    Ok(report)
}

fn registers(report: &mut Report) {
    let effects = report.effects.clone();
    for (rule, count) in
        [(Rule::StaleApplied, effects.stale_applied), (Rule::LostUpdate, effects.lost_updates)]
    {
        if count > 0 {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            report.broken.insert(rule, (count, effects.examples.clone()));
        }
    }
}

impl Story {
    /// No two beliefs of a key overlap.
    fn overlaps(&self, report: &mut Report) {
        for grants in self.of_keys().values() {
            let mut grants: Vec<_> = grants.iter().filter(|grant| grant.held).collect();
            grants.sort_by_key(|grant| grant.to);
            let Some(mut longest) = grants.first() else { continue };
            for grant in &grants[1..] {
                let (end, start) = (self.belief_ends(longest), grant.to);
                if end > start && self.belief_ends(grant) > start {
                    report.add(Rule::Overlap, || {
                        format!("{} µs: {} and {}", (end - start) / 1000, longest.show(), grant.show())
                    });
                }
                if self.belief_ends(grant) > end {
                    longest = grant;
                }
            }
        }
    }

    /// Of two grants of a key the later one has the larger token.
    fn tokens(&self, report: &mut Report) {
        // While no two can believe at once, who believes later was granted later. Where that may break, only who
        // asked later was.
        let breaks = report.row.may().contains(&Rule::Overlap);
        let mut seen = BTreeMap::new();
        for grant in &self.grants {
            if let Some(other) = seen.insert((&grant.key, grant.token), grant) {
                report
                    .add(Rule::TokenOrder, || format!("the same for {} and {}", other.show(), grant.show()));
            }
        }
        let starts = |grant: &grants::Grant| if breaks { self.calls[&grant.call].asked } else { grant.from };
        for grants in self.of_keys().values() {
            let mut by_start = grants.clone();
            by_start.sort_by_key(|grant| starts(grant));
            let mut by_end = grants.clone();
            by_end.sort_by_key(|grant| grant.to);
            let (mut earlier, mut largest) = (by_end.iter().peekable(), None::<&grants::Grant>);
            for grant in by_start {
                while let Some(before) = earlier.next_if(|before| before.to < starts(grant)) {
                    if largest.is_none_or(|largest| before.token > largest.token) {
                        largest = Some(before);
                    }
                }
                if let Some(largest) = largest.filter(|largest| largest.token > grant.token) {
                    report.add(Rule::TokenOrder, || format!("{} before {}", largest.show(), grant.show()));
                }
            }
        }
    }

    fn outcomes(&self, report: &mut Report, ttl: Duration) {
        for call in self.calls.values() {
            match &call.outcome {
                None if !self.killed.contains_key(&call.pid) => {
                    report.add(Rule::Undeclared, || format!("no end: {}", call.show()));
                }
                Some(Outcome::Undeclared { text }) => {
                    report.add(Rule::Undeclared, || format!("{text}: {}", call.show()));
                }
                Some(Outcome::Store { text }) => {
                    report.add(Rule::Failure, || format!("{text}: {}", call.show()));
                }
                Some(Outcome::Lost { cause }) => {
                    report.losses += 1;
                    let idle = cause == "Expired" && self.stood_still(call, ttl / 4);
                    if !idle && !self.was_stopped(call) {
                        report.add(Rule::FalseLoss, || format!("{cause}: {}", call.show()));
                    }
                }
                _ => {}
            }
        }
        for (pid, stops) in &self.stopped {
            for (from, continued) in stops {
                let held = self.grants.iter().filter(|grant| grant.pid == *pid && !grant.blocking);
                for grant in held.filter(|grant| grant.from < *from && !grant.finished) {
                    let lost = matches!(self.calls[&grant.call].outcome, Some(Outcome::Lost { .. }));
                    if let Some(left) = grant.left.filter(|left| lost && left > continued) {
                        report.stopped_after.push(Duration::from_nanos(left - continued));
                    }
                }
            }
        }
    }
}
