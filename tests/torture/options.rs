//! What to run: from the command line to the rows, each for its time and with its seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Failure;
use crate::checker::Report;
use crate::history::now;
use crate::nemesis::Nemesis;
use crate::rows::{self, Row};
use crate::run::run;
use crate::table;

const USAGE: &str =
    "--store NAME  --nemesis NAME  --seconds N  --seed N  --jobs N  --keep yes  (each may be left out)";
/// Another seed is tried so often before a run that has to break something counts as one that does not.
const TRIES: u64 = 3;

#[derive(Debug)]
pub(crate) struct Options {
    store: Option<String>,
    nemesis: Option<Nemesis>,
    seconds: Option<u64>,
    seed: u64,
    /// How many rows are run at the same time. Clients mostly sleep.
    jobs: usize,
    /// Whether histories stay also where all is well.
    keep: bool,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut options =
            Self { store: None, nemesis: None, seconds: None, seed: now() % 1_000_000, jobs: 0, keep: false };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("{} needs a value; {USAGE}", pair[0]).into());
            };
            match name.as_str() {
                "--store" => options.store = Some(value.clone()),
                "--nemesis" => {
                    options.nemesis =
                        Some(Nemesis::named(value).ok_or_else(|| format!("no nemesis is called {value}"))?);
                }
                "--seconds" => options.seconds = Some(value.parse()?),
                "--seed" => options.seed = value.parse()?,
                "--keep" => options.keep = value == "yes",
                "--jobs" => options.jobs = value.parse()?,
                _ => return Err(format!("{name} is not known; {USAGE}").into()),
            }
        }
        if options.jobs == 0 {
            options.jobs = if options.seconds.is_some() { 1 } else { 3 };
        }
        Ok(options)
    }

    fn wants(&self, row: &Row) -> bool {
        self.store.as_ref().is_none_or(|store| *store == row.store())
            && self.nemesis.is_none_or(|nemesis| nemesis == row.nemesis)
    }

    /// Runs what was asked for, prints the table, and says whether all went as it must.
    pub(crate) fn run(&self) -> Result<bool, Failure> {
        let rows: Vec<Row> = rows::all().into_iter().filter(|row| self.wants(row)).collect();
        if rows.is_empty() {
            return Err("there is no such row".into());
        }
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                // The clients of a row die with the thread that started them, so each row stays on one.
                scope.spawn(|| {
                    while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let place = rows.iter().position(|other| std::ptr::eq(other, row));
                        let ended = self.one(*row);
                        if let Ok(mut done) = done.lock() {
                            done.push((place, *row, ended));
                        }
                    }
                });
            }
        });
        let mut done = done.into_inner().map_err(|_| "a row's thread panicked")?;
        done.sort_by_key(|(place, ..)| *place);
        let (mut reports, mut fine) = (Vec::new(), true);
        for (_, row, ended) in done {
            let (report, seconds) =
                ended.map_err(|error| format!("{} {}: {error}", row.store(), row.nemesis.name()))?;
            fine &= report.failed().is_empty() && report.missing().is_empty();
            reports.push((report, seconds));
        }
        table::print(&reports);
        for (report, _) in &reports {
            for text in report.failed() {
                eprintln!("\n{} {}: {text}", report.row.store(), report.row.nemesis.name());
            }
        }
        Ok(fine)
    }

    /// One row; again with other seeds while it does not show what it has to.
    fn one(&self, row: Row) -> Result<(Report, u64), Failure> {
        let seconds = self.seconds.unwrap_or(row.seconds);
        let mut report = run(row, self.seed, seconds, self.keep)?;
        let mut all = seconds;
        for seed in 1..TRIES {
            if report.missing().is_empty() || !report.failed().is_empty() {
                break;
            }
            report.merge(run(row, self.seed + seed, seconds, self.keep)?);
            all += seconds;
        }
        let outcome = if report.failed().is_empty() && report.missing().is_empty() { "ok" } else { "FAILED" };
        eprintln!(
            "{} {}, seed {}: {outcome}, {} grants",
            row.store(),
            row.nemesis.name(),
            self.seed,
            report.grants
        );
        Ok((report, all))
    }
}
