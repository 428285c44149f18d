# Shared by the scripts of this directory: named steps with their seconds, and no process left behind.
#
# A step that fails ends the script. Whatever happens, processes that were started from the target directory
# and still run are ended, and the directory for temporary files is removed.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(cargo metadata --format-version 1 --no-deps --offline 2>/dev/null |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p') || true
target=${target:-${CARGO_TARGET_DIR:-$PWD/target}}
temporary=$(mktemp -d)
# As open as any: some tests run as another user.
chmod 1777 "$temporary"
export TMPDIR=$temporary
summary=()

# The processes whose program lies in the target directory, one `pid program` a line.
running() {
    local process program
    if [ -d /proc/self ]; then
        for process in /proc/[0-9]*; do
            program=$(readlink "$process/exe" 2>/dev/null) || continue
            case $program in "$target"/*) echo "${process#/proc/} $program" ;; esac
        done
    else
        ps -axo pid=,comm= | awk -v at="$target/" 'index($2, at) == 1'
    fi
}

before=$(running)
# Those that were not there at the start.
left_behind() { comm -13 <(sort <<<"$before") <(running | sort); }

finish() {
    local code=$? process
    trap - EXIT
    while read -r process _; do
        # It may have ended meanwhile.
        if [ -n "$process" ]; then kill -KILL "$process" 2>/dev/null || true; fi
    done < <(left_behind)
    rm -rf "$temporary"
    echo
    if [ ${#summary[@]} -gt 0 ]; then printf '%s\n' "${summary[@]}"; fi
    printf '%6d s  in all: %s\n' "$SECONDS" "$([ "$code" = 0 ] && echo passed || echo FAILED)"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# step NAME LIMIT COMMAND…: runs the command for at most so many seconds.
step() {
    local name=$1 limit=$2 start=$SECONDS code=0
    shift 2
    printf '\n=== %s: %s\n' "$name" "$*"
    if [ "$(type -t "$1")" = file ] && command -v timeout >/dev/null; then
        timeout --foreground --kill-after=30 "$limit" "$@" || code=$?
    else
        "$@" || code=$?
    fi
    summary+=("$(printf '%6d s  %s%s' $((SECONDS - start)) "$name" "$([ "$code" = 0 ] || echo ": FAILED with $code")")")
    if [ "$code" != 0 ]; then exit 1; fi
}

nothing_runs_on() {
    local still
    # A child may need a moment to end after its parent.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        still=$(left_behind)
        if [ -z "$still" ]; then return 0; fi
        sleep 0.5
    done
    printf 'still running after the tests:\n%s\n' "$still"
    return 1
}

# Installs packages of Debian, without starting what they bring.
install() {
    local as_root=()
    if [ "$(id -u)" != 0 ]; then as_root=(sudo); fi
    "${as_root[@]}" apt-get update --quiet
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install --yes --quiet --no-install-recommends "$@"
}

# Installs what the checks need beside a Rust toolchain.
tools() {
    if ! command -v cargo >/dev/null; then
        echo "there is no Rust toolchain here; https://rustup.rs installs one"
        return 1
    fi
    local component
    for component in rustfmt clippy; do
        if ! cargo "${component/rust/}" --version >/dev/null 2>&1; then rustup component add "$component"; fi
    done
    # A compiler for SQLite, which comes as source, and the servers that the tests start on ports of their own.
    local missing=()
    if ! command -v cc >/dev/null; then missing+=(gcc libc6-dev); fi
    if ! command -v redis-server >/dev/null; then missing+=(redis-server); fi
    if ! command -v initdb >/dev/null && ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
        missing+=(postgresql)
    fi
    if ! command -v pgbouncer >/dev/null && [ ! -x /usr/sbin/pgbouncer ]; then missing+=(pgbouncer); fi
    if [ ${#missing[@]} -gt 0 ]; then install "${missing[@]}"; fi
    cargo --version
}
