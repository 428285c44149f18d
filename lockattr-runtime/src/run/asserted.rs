//! What `assert_locked!` calls.
//!
//! Invariant: its text shows templates, never keys.

use std::fmt::Write as _;

use crate::lock;

/// Checks that the running body holds `key`, which `template` gave.
///
/// # Panics
///
/// When it does not.
#[track_caller]
pub fn assert_locked(template: &'static str, key: &str) {
    assert!(lock::holds(key), "`{template}` is not locked here: {}", instead(template, key));
}

/// What is held instead.
fn instead(template: &str, key: &str) -> String {
    let mut text = String::new();
    for held in lock::held_by_body() {
        if held.keys().any(|held| held == key) {
            return "the body that runs held it, and has lost it".to_owned();
        }
        for name in held.names() {
            let and = if text.is_empty() { "the body that runs holds " } else { ", " };
            // Writing to a text cannot fail.
            let _ = write!(text, "{and}{name}");
            if name.template() == template {
                text.push_str(" with other values");
            }
        }
    }
    if text.is_empty() {
        text.push_str(
            "no locked body runs; a spawned task is not the body that spawned it, and a guard has none",
        );
    }
    text
}
