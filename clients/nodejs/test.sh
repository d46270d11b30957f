#!/bin/sh
# Tests the Node.js client: see scripts/test-clients.sh, which runs this.
#
# Needs nodejs (18 or newer), npm and thrift-compiler.
set -eu
cd "$(dirname "$0")"
./run.sh test_client.js
./run.sh test_nodes.js
../check-example.sh ./run.sh example.js
