//! What each feature brings: no driver comes without its feature, and none at all without features.

use std::collections::BTreeSet;
use std::process::Command;

/// What only a feature may bring, and which one.
const FEATURES: [(&str, &[&str]); 7] = [
    ("postgres", &["sqlx", "sqlx-postgres"]),
    ("postgres-tls", &["sqlx", "sqlx-postgres", "rustls"]),
    ("redis", &["redis"]),
    ("redis-tls", &["redis", "rustls", "tokio-rustls"]),
    ("sqlite", &["sqlx", "sqlx-sqlite", "libsqlite3-sys"]),
    ("metrics", &["metrics"]),
    ("testing", &["tokio-macros"]),
];

/// The crates that a program with these features of lockattr links.
fn crates(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "lockattr", "--edges", "normal", "--prefix", "none", "--format", "{lib}"])
        .args(["--locked", "--no-default-features", "--features", &features.join(",")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().replace('_', "-")).collect()
}

#[test]
fn without_features_there_is_no_driver() {
    let crates = crates(&[]);
    assert!(crates.contains("tokio") && crates.contains("lockattr-runtime"), "{crates:?}");
    for (feature, drivers) in FEATURES {
        for driver in drivers {
            assert!(!crates.contains(*driver), "{driver} comes without the feature {feature}");
        }
    }
    let (count, most) = (crates.len(), 40);
    assert!(count <= most, "{count} crates without any feature, and {most} is the most: {crates:?}");
}

#[test]
fn a_feature_brings_its_own_driver_and_no_other() {
    for (feature, own) in FEATURES {
        let crates = crates(&[feature]);
        for (other, drivers) in FEATURES {
            for driver in drivers {
                let expected = own.contains(driver);
                assert_eq!(crates.contains(*driver), expected, "{driver} of {other} with {feature} alone");
            }
        }
    }
}
