#!/usr/bin/env bash
# The long checks, by hand: before a release, and after a change of the core. Hours, not minutes.
#
#   LOCKATTR_SIM_SEEDS=100000  how many simulations are run
#   LOCKATTR_MODEL_DEPTH=1     how much further than in `test.sh` the model goes; each step costs 10 to 25 times as much
#   LOCKATTR_MODEL_STATES=…    after how many states each search of the model stops; at its end by default
#   ROUNDS=50                  how often processes contend
#   TORTURE_SECONDS=120        how long each row of the torture takes

# shellcheck source=ci/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

export LOCKATTR_SIM_SEEDS=${LOCKATTR_SIM_SEEDS:-100000}
export LOCKATTR_MODEL_DEPTH=${LOCKATTR_MODEL_DEPTH:-1}
rounds=${ROUNDS:-50}
seconds=${TORTURE_SECONDS:-120}

# Four processes on one account, again and again; the example fails when a withdrawal is lost.
contention() {
    local round
    for ((round = 1; round <= rounds; round++)); do
        "$target/debug/examples/quickstart" | grep '^locked: 0 lost'
    done
}

# The tests of stores and processes again and again, for what shows only now and then.
again() {
    local round
    for ((round = 1; round <= rounds; round++)); do
        cargo test --locked --all-features --test it -- stores processes
    done
}

# What would be published: the files of each crate, built from its package alone. A crate that needs another
# of this version can be checked so only when that one is published; all three at once always can.
packages() { cargo publish --dry-run --locked --workspace; }

# The oldest compiler that is promised.
oldest() {
    local version
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    rustup toolchain install "$version" --profile minimal
    cargo "+$version" check --locked --workspace --all-features
}

# Known vulnerabilities, licences and sources of the dependencies; see deny.toml.
dependencies() {
    if ! cargo deny --version >/dev/null 2>&1; then cargo install --locked cargo-deny; fi
    cargo deny --all-features check
}

step "tools" 300 tools
step "simulation, $LOCKATTR_SIM_SEEDS seeds" 36000 \
    cargo test --locked --all-features --release --test it -- simulation
step "model, $LOCKATTR_MODEL_DEPTH deeper" 36000 \
    cargo test --locked --all-features --release -p lockattr-runtime --lib -- model --nocapture
step "examples" 900 cargo build --locked --all-features --examples
step "contention, $rounds rounds" 3600 contention
step "stores and processes, $rounds rounds" 36000 again
step "torture, $seconds seconds a row" 36000 \
    cargo test --locked --all-features --test torture -- --seconds "$seconds"
step "nothing runs on" 60 nothing_runs_on
step "packages" 1800 packages
step "oldest compiler" 1800 oldest
step "dependencies" 1800 dependencies
