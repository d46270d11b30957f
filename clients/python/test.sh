#!/bin/sh
# Tests the Python client: see scripts/test-clients.sh, which runs this.
set -eu
cd "$(dirname "$0")"
./run.sh test_client.py
./run.sh test_local_ids.py
./run.sh every_method.py "${CLIENTS_NODE%:*}" "${CLIENTS_NODE##*:}" order event account
../check-example.sh ./run.sh example.py
