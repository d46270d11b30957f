#!/bin/sh
# Builds and lints the client alone, as a program that uses only that builds it, and
# checks that it brings few dependencies.
set -eu
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}"

"$CARGO" clippy --locked --no-default-features --features client -- -D warnings

# Each with a reason: tokio's, Thrift's, and theirs.
most=20
have=$("$CARGO" tree --locked --no-default-features --features client --edges normal --prefix none |
    sort -u | sed '/^idgen /d' | grep -c .)
if [ "$have" -gt "$most" ]; then
    echo "check-client: the client alone has $have dependencies; at most $most are expected" >&2
    exit 1
fi
