//! Every example runs to its end and shows what it is there to show.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Cargo builds the examples beside the tests: `target/…/examples` next to `target/…/deps`.
pub(crate) fn example(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().expect("the path of the test");
    path.pop();
    path.pop();
    path.extend(["examples", name]);
    let path = path.with_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.is_file(), "{} is missing; `cargo build --examples` builds it", path.display());
    Command::new(path)
}

/// Runs an example and returns its lines.
fn lines(name: &str) -> Vec<String> {
    let output = example(name).output().expect("the example starts");
    succeeded(name, &output)
}

pub(crate) fn succeeded(name: &str, output: &Output) -> Vec<String> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{stdout}\n{stderr}", output.status);
    stdout.lines().map(str::to_owned).collect()
}

#[test]
fn every_example_is_run_here() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let mut found: Vec<_> = std::fs::read_dir(examples)
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path().file_stem().expect("a name").to_owned())
        .collect();
    found.sort();
    assert_eq!(found, ["axum", "cron", "fencing", "fencing_sql", "guard", "quickstart"]);
}

#[test]
fn guard_shows_the_api() {
    assert_eq!(
        lines("guard"),
        [
            "held: invoice:7",
            "free for others: false",
            "the token grew: true",
            "held: account:1 and account:2",
            "the body gave 42",
            "listed: report",
            "still held at the end: 0",
        ]
    );
}

#[test]
fn fencing_refuses_the_stale_write() {
    let lines = lines("fencing");
    assert_eq!(
        lines[..2],
        ["the next writer: written", "the paused writer: refused, its token is stale"],
        "{lines:?}"
    );
    assert!(lines[2].contains("it was lost"), "{lines:?}");
}

#[test]
fn fencing_sql_refuses_the_stale_statement() {
    assert_eq!(
        lines("fencing_sql"),
        [
            "100 cents under the lock: true",
            "50 cents under the lock: true",
            "the first writer comes back: false",
            "balance: 150",
        ]
    );
}

#[test]
fn axum_answers_busy_and_lost() {
    assert_eq!(
        lines("axum"),
        [
            "the lock of account 8 was taken away: Ok(Released)",
            "account 7: HTTP/1.1 200 OK, HTTP/1.1 409 Conflict, HTTP/1.1 409 Conflict",
            "account 8: HTTP/1.1 423 Locked",
        ]
    );
}

#[test]
fn cron_runs_once_a_tick() {
    let lines = lines("cron");
    for tick in ["tick 0:", "tick 1:"] {
        let of_tick: Vec<_> = lines.iter().filter(|line| line.starts_with(tick)).collect();
        assert_eq!(of_tick.len(), 2, "{lines:?}");
        assert_eq!(of_tick.iter().filter(|line| line.ends_with("ran")).count(), 1, "{lines:?}");
        assert_eq!(of_tick.iter().filter(|line| line.ends_with("skipped")).count(), 1, "{lines:?}");
    }
}

#[test]
fn quickstart_loses_nothing_under_the_lock() {
    let lines = lines("quickstart");
    let lost = |mode: &str| -> usize {
        let line = lines.iter().find(|line| line.starts_with(mode) && line.contains("lost of"));
        let line = line.unwrap_or_else(|| panic!("no result in {lines:?}"));
        assert!(line.contains("lost of 400 withdrawals"), "{line}");
        line[mode.len()..].split_whitespace().next().and_then(|lost| lost.parse().ok()).expect("a number")
    };
    assert_eq!(lost("locked:"), 0);
    assert!(lost("unlocked:") > 0, "without the lock there was nothing to lose: {lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("locked: waited")), "{lines:?}");
}
