//! Who may use whom: read from the sources, so that a wrong arrow fails and not only a cycle of crates.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the runtime, lowest first, and which of the others each may name.
const MAY_USE: [(&str, &[&str]); 16] = [
    // Values.
    ("time", &[]),
    ("lease", &[]),
    ("options", &[]),
    ("key", &[]),
    ("fence", &["lease"]),
    ("error", &["lease", "store"]),
    ("term", &["error", "time"]),
    // What the machine gives.
    ("keeper", &["time"]),
    ("env", &["keeper", "lease", "store", "time"]),
    // The contract and the stores.
    ("store", &["error", "keeper", "lease", "time"]),
    // Above any store.
    ("held", &["env", "error", "lease", "observe", "term", "time"]),
    ("observe", &["error", "held", "store"]),
    ("lock", &["env", "error", "held", "key", "lease", "observe", "options", "store", "term", "time"]),
    ("registry", &["error", "lock"]),
    ("run", &["error", "held", "key", "lease", "lock", "options", "registry"]),
    ("sim", &["env", "lease", "lock", "store", "time"]),
];

/// From lower layers only these items of the store's module.
const FROM_STORE: [(&str, &[&str]); 2] = [("error", &["StoreError"]), ("env", &["Boxed"])];

/// A module and a name that it uses.
type Arrow = (String, Vec<String>);

/// Every path in `text` that begins with `crate::` or leads out of its module, as lists of names.
/// Comments and tests are left out.
fn arrows(module: &str, text: &str) -> Vec<Arrow> {
    let code =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let code = code.split("mod tests {").next().unwrap_or_default();
    let mut arrows = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || before == '_' || before == '$') {
            continue;
        }
        for path in paths(&code[at + "crate::".len()..]) {
            arrows.push((module.to_owned(), path));
        }
    }
    arrows
}

/// The paths at the beginning of `text`, groups in braces taken apart.
fn paths(text: &str) -> Vec<Vec<String>> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let rest = &text[name.len()..];
    if name.is_empty() {
        let Some(group) = text.strip_prefix('{') else { return vec![Vec::new()] };
        return parts(group).into_iter().flat_map(|part| paths(part.trim())).collect();
    }
    let Some(rest) = rest.strip_prefix("::") else { return vec![vec![name]] };
    let mut all = paths(rest);
    for path in &mut all {
        path.insert(0, name.clone());
    }
    all
}

/// The parts of a group, up to its closing brace.
fn parts(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// What is wrong with an arrow, if anything is.
fn wrong((module, path): &Arrow) -> Option<String> {
    let shown = || format!("{module} uses crate::{}", path.join("::"));
    let used = path.first()?;
    if used == module {
        return None;
    }
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| name == module) else {
        return Some(format!("{}, and the list here does not know the module {module}", shown()));
    };
    if !allowed.contains(&used.as_str()) {
        return Some(shown());
    }
    let (_, items) = FROM_STORE.iter().find(|(name, _)| used == "store" && name == module)?;
    let item = path.get(1).map(String::as_str).unwrap_or_default();
    (!items.contains(&item)).then(shown)
}

/// The module of the runtime that a file belongs to.
fn module(root: &Path, file: &Path) -> String {
    let inside = file.strip_prefix(root).expect("a file below the root");
    let first = inside.components().next().expect("a file").as_os_str();
    Path::new(first).file_stem().expect("a name").to_string_lossy().into_owned()
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn runtime() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lockattr-runtime/src")
}

/// All arrows of the runtime. The suite and tests stand above everything and are left out, as is `lib.rs`.
fn runtime_arrows() -> Vec<Arrow> {
    let root = runtime();
    let above = |file: &Path| {
        let inside = file.strip_prefix(&root).expect("a file below the root");
        inside == Path::new("lib.rs")
            || inside.starts_with("conformance")
            || inside.iter().any(|part| part == "tests" || part == "tests.rs")
    };
    let files = sources(&root).into_iter().filter(|file| !above(file));
    files
        .flat_map(|file| arrows(&module(&root, &file), &fs::read_to_string(&file).expect("a source file")))
        .collect()
}

#[test]
fn the_runtime_has_no_wrong_arrow() {
    let wrong: Vec<_> = runtime_arrows().iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_arrow_that_is_allowed_is_there() {
    let there: BTreeSet<_> =
        runtime_arrows().into_iter().map(|(module, path)| (module, path[0].clone())).collect();
    for (module, used) in MAY_USE {
        for used in used {
            assert!(there.contains(&(module.to_string(), used.to_string())), "{module} never uses {used}");
        }
    }
}

#[test]
fn the_macros_know_none_of_ours() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("lockattr-macros");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let (_, dependencies) = manifest.split_once("[dependencies]").expect("dependencies");
    assert!(!dependencies.contains("lockattr"), "{dependencies}");
    assert!(!manifest.contains("[features]"), "the macros have no features");
    for file in sources(&root.join("src")) {
        let text = fs::read_to_string(&file).expect("a source file");
        for line in text.lines().filter(|line| line.trim_start().starts_with("use ")) {
            assert!(!line.contains("lockattr"), "{}: {line}", file.display());
        }
    }
}

#[test]
fn a_wrong_arrow_is_found() {
    let wrong_in = |module: &str, text: &str| arrows(module, text).iter().filter_map(wrong).count();

    assert_eq!(wrong_in("store", "use crate::lock::Locker;"), 1);
    assert_eq!(wrong_in("store", "use crate::{lease::Lease, run::body, time::{Moment}, registry};"), 2);
    assert_eq!(wrong_in("store", "    crate::registry::installed(|| locked)"), 1);
    assert_eq!(wrong_in("store", "pub(crate) use crate::Locker;"), 1);
    assert_eq!(wrong_in("lease", "use crate::store::Store;"), 1);
    assert_eq!(wrong_in("error", "use crate::store::MemoryStore;"), 1);
    assert_eq!(wrong_in("error", "use crate::store::{Store, StoreError};"), 1);
    assert_eq!(wrong_in("term", "use crate::store::StoreError;"), 1);
    assert_eq!(wrong_in("lock", "use crate::registry::installed;"), 1);
    assert_eq!(wrong_in("newcomer", "use crate::lease::Lease;"), 1);

    assert_eq!(wrong_in("store", "use crate::lease::Lease;\nuse crate::store::StoreError;"), 0);
    assert_eq!(wrong_in("store", "/// See [`Locker`](crate::lock::Locker)."), 0);
    assert_eq!(wrong_in("error", "use crate::store::StoreError;"), 0);
    assert_eq!(wrong_in("store", "#[cfg(test)]\nmod tests {\n    use crate::lock::Locker;\n}"), 0);
}
