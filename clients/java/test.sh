#!/bin/sh
# Tests the Java client: see scripts/test-clients.sh, which runs this.
set -eu
cd "$(dirname "$0")"
./run.sh ClientTest
./run.sh LocalIdsTest
../check-example.sh ./run.sh Example
