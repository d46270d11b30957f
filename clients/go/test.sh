#!/bin/sh
# Tests the Go client: see scripts/test-clients.sh, which runs this.
set -eu
cd "$(dirname "$0")"
./run.sh vet . ./example
./run.sh test -count 1 -timeout 120s .
program=${CARGO_TARGET_DIR:-$PWD/../../target}/clients/go-example
./run.sh build -o "$program" ./example
../check-example.sh "$program"
