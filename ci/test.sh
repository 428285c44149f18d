#!/usr/bin/env bash
# Every check there is but the long ones, which are in full.sh. Needs a Rust toolchain; what else it uses it
# installs, and it starts and ends the servers it needs on ports of their own. Fails at the first step that fails.

# shellcheck source=ci/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

step "tools" 300 tools
step "dependencies" 300 cargo fetch --locked
step "format" 60 cargo fmt --all --check
step "clippy, all features" 900 \
    cargo clippy --locked --workspace --all-targets --all-features -- --deny warnings
# Not among all targets, since it has a command of its own.
step "clippy, torture" 900 cargo clippy --locked --all-features --test torture -- --deny warnings
step "clippy, no features" 900 cargo clippy --locked --workspace --lib --no-default-features -- --deny warnings
for feature in postgres postgres-tls redis redis-tls sqlite metrics testing; do
    step "clippy, $feature alone" 900 cargo clippy --locked --lib --features "$feature" -- --deny warnings
done
# Unit tests, the integration tests (attribute, conformance, simulation, processes, examples, features,
# layers), wrong uses, and all doc tests, the README's among them.
step "build the tests" 900 cargo test --locked --workspace --all-features --no-run
step "tests" 900 cargo test --locked --workspace --all-features --no-fail-fast
# Processes that are killed, stopped and cut off, over every store that is here; see tests/torture/main.rs.
step "torture" 600 cargo test --locked --all-features --test torture
step "nothing runs on" 60 nothing_runs_on
RUSTDOCFLAGS="--deny warnings" step "documentation" 900 \
    cargo doc --locked --workspace --all-features --no-deps
