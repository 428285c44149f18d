//! Whole programs that one test crate cannot hold: other editions, every lint of clippy, lints that are
//! forbidden, another name of the crate, and no locker. They are compiled against the library that this
//! test itself was built with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[test]
fn every_edition() {
    for edition in ["2018", "2021", "2024"] {
        Input::new("editions", edition).runs();
    }
    for edition in ["2018", "2021"] {
        Input::new("older_editions", edition).runs();
    }
}

#[test]
fn no_lint_fires_because_of_the_attribute() {
    for edition in ["2021", "2024"] {
        for file in ["quiet_lints", "explicit_returns"] {
            let output = Input::new(file, edition).clippy();
            assert!(output.status.success(), "{file} {edition}: {}", stderr(&output));
        }
    }
}

#[test]
fn lints_may_be_forbidden() {
    Input::new("forbidden_lints", "2024").runs();
}

#[test]
fn lints_on_the_users_code_still_fire() {
    let output = Input::new("loud_lints", "2024").clippy();
    let errors = stderr(&output);
    for lint in ["missing_errors_doc", "clone_on_copy", "unused_mut", "dead_code"] {
        let at = format!("// {lint}");
        let source = include_str!("compile/loud_lints.rs");
        let line = source.lines().position(|line| line.ends_with(&at)).unwrap() + 1;
        assert!(errors.contains(&format!("loud_lints.rs:{line}:")), "{lint} is not reported in {errors}");
    }
}

#[test]
fn another_name_and_no_prelude() {
    Input { name: "locks", ..Input::new("renamed", "2024") }.runs();
}

#[test]
fn without_a_locker_a_call_fails() {
    Input::new("not_installed", "2024").runs();
}

/// A program in `tests/it/compile/`.
#[derive(Clone, Copy)]
struct Input {
    file: &'static str,
    edition: &'static str,
    /// What the program calls the library.
    name: &'static str,
}

impl Input {
    fn new(file: &'static str, edition: &'static str) -> Self {
        Self { file, edition, name: "lockattr" }
    }

    /// Compiles it without a warning and runs it.
    fn runs(self) {
        let program = self.out();
        let compiled = self.command("rustc").arg("-Cdebuginfo=0").arg("-o").arg(&program).output().unwrap();
        assert!(compiled.status.success(), "{} {}: {}", self.file, self.edition, stderr(&compiled));
        let run = Command::new(&program).output().unwrap();
        assert!(run.status.success(), "{} {}: {}", self.file, self.edition, stderr(&run));
    }

    fn clippy(self) -> Output {
        let mut command = self.command("clippy-driver");
        command.arg("--emit=metadata").arg("-o").arg(self.out()).output().expect("clippy is installed")
    }

    fn command(self, tool: &str) -> Command {
        let deps = deps();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/compile").join(self.file);
        let mut command = Command::new(tool);
        command
            .args(["--edition", self.edition, "--crate-name", "input", "-Dwarnings"])
            .arg(source.with_extension("rs"))
            .arg("-L")
            .arg(format!("dependency={}", deps.display()))
            .arg("--extern")
            .arg(format!("{}={}", self.name, library(&deps).display()));
        command
    }

    fn out(self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{}", self.file, self.edition))
    }
}

fn deps() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// The newest build of the library: Cargo has made sure of it before it ran this test.
fn library(deps: &Path) -> PathBuf {
    let built = fs::read_dir(deps).unwrap().map(|entry| entry.unwrap().path());
    let libraries = built.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("liblockattr-") && name.ends_with(".rlib")
    });
    libraries
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
        .expect("the library is built")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
