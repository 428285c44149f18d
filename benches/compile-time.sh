#!/usr/bin/env bash
# What a locked function costs the compiler: 200 plain and 200 locked functions, checked and built in turn.
# usage: benches/compile-time.sh [functions] [rounds]
set -euo pipefail
project=$(cd "$(dirname "$0")/.." && pwd)
functions=${1:-200}
rounds=${2:-5}
folder=$project/target/compile-time
mkdir -p "$folder/src"
cat > "$folder/Cargo.toml" <<EOF
[package]
name = "compile-time"
version = "0.0.0"
edition = "2024"
[lib]
path = "src/lib.rs"
[dependencies]
lockattr = { path = "$project" }
[workspace]
EOF

# write ATTRIBUTE: a library of that many functions.
write() {
    {
        echo "use lockattr::LockError;"
        for ((i = 0; i < functions; i++)); do
            [ -z "$1" ] || echo "$1"
            echo "pub async fn f$i(id: u64, name: &str) -> Result<u64, LockError> { Ok(id + name.len() as u64 + $i) }"
        done
    } > "$folder/src/lib.rs"
}

# timed COMMAND: the median of the milliseconds it takes after a change.
timed() {
    for ((round = 0; round < rounds; round++)); do
        touch "$folder/src/lib.rs"
        local start end
        start=$(date +%s%N)
        (cd "$folder" && cargo "$1" --quiet)
        end=$(date +%s%N)
        echo $(((end - start) / 1000000))
    done | sort -n | sed -n "$((rounds / 2 + 1))p"
}

for command in check build; do
    write ""
    (cd "$folder" && cargo "$command" --quiet)
    plain=$(timed "$command")
    write '#[lockattr::distributed_lock(key = "account:{id}:{name}", expires = 60, wait = 5)]'
    locked=$(timed "$command")
    awk -v c="$command" -v n="$functions" -v p="$plain" -v l="$locked" 'BEGIN {
        printf "cargo %s, %d functions: plain %d ms, locked %d ms, %.1f ms a locked function\n", c, n, p, l, (l - p) / n
    }'
done
