#!/bin/sh
# Runs every fuzz target for FUZZ_SECONDS seconds (60 unless told), from the
# corpus in fuzz/corpus. What libFuzzer finds on the way stays in fuzz/target;
# an input that breaks something is shown, and kept in fuzz/artifacts.
#
#   scripts/fuzz.sh [TARGET...]
#
# Needs the nightly compiler and cargo-fuzz, and installs both where they are
# missing.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}

missing() {
    echo "make fuzz: $1" >&2
    exit 1
}
cargo +nightly --version >/dev/null 2>&1 ||
    rustup toolchain install nightly --profile minimal ||
    missing "the nightly compiler is missing, and rustup could not install it"
cargo fuzz --version >/dev/null 2>&1 ||
    cargo install cargo-fuzz --locked ||
    missing "cargo-fuzz is missing, and cargo could not install it"

export CARGO_TARGET_DIR=fuzz/target
[ $# -gt 0 ] || set -- $(ls fuzz/corpus)
cargo +nightly fuzz build
for target in "$@"; do
    found=fuzz/target/found/$target
    mkdir -p "$found"
    echo "fuzzing $target for $seconds s"
    dictionary=fuzz/dictionaries/$target
    [ -f "$dictionary" ] && dictionary="-dict=$dictionary" || dictionary=
    cargo +nightly fuzz run "$target" "$found" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 -print_final_stats=1 $dictionary
done
