//! The table, as Markdown.
#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::time::Duration;

use crate::checker::Report;
use crate::rows::Rule;

const HEAD: [&str; 13] = [
    "store",
    "disturbed by",
    "seconds",
    "grants",
    "overlaps",
    "stale attempted",
    "stale applied",
    "lost updates",
    "lost locks",
    "longest orphan",
    "takeover p50/p99/max",
    "CONT to stopped, max",
    "result",
];

/// Prints the table of what was run.
pub(crate) fn print(rows: &[(Report, u64)]) {
    println!("| {} |", HEAD.join(" | "));
    println!("|{}", "---|".repeat(HEAD.len()));
    for (report, seconds) in rows {
        println!("| {} |", cells(report, *seconds).join(" | "));
    }
}

fn cells(report: &Report, seconds: u64) -> Vec<String> {
    let effects = &report.effects;
    vec![
        report.row.store(),
        report.row.nemesis.name().to_owned(),
        seconds.to_string(),
        report.grants.to_string(),
        report.count(Rule::Overlap).to_string(),
        effects.stale_attempted.to_string(),
        effects.stale_applied.to_string(),
        effects.lost_updates.to_string(),
        report.losses.to_string(),
        millis(report.longest_orphan),
        takeovers(&report.takeovers),
        report.stopped_after.iter().max().map_or("–".to_owned(), |time| millis(*time)),
        result(report),
    ]
}

/// What came of it, in a word or two.
fn result(report: &Report) -> String {
    if !report.failed().is_empty() {
        return "**FAILED**".to_owned();
    }
    if !report.missing().is_empty() {
        return format!("**NOT SHOWN**: {:?}", report.missing());
    }
    if report.row.must().is_empty() {
        return "holds".to_owned();
    }
    format!(
        "breaks as it must: {}",
        report.row.must().iter().map(|rule| format!("{rule:?}")).collect::<Vec<_>>().join(", ")
    )
}

fn takeovers(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
    match (at(50), at(99), times.last()) {
        (Some(middle), Some(most), Some(longest)) => {
            format!("{} / {} / {}", millis(*middle), millis(*most), millis(*longest))
        }
        _ => "–".to_owned(),
    }
}

fn millis(time: Duration) -> String {
    if time < Duration::from_millis(10) {
        format!("{:.1} ms", time.as_secs_f64() * 1e3)
    } else {
        format!("{} ms", time.as_millis())
    }
}
