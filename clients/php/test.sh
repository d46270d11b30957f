#!/bin/sh
# Tests the PHP client: see scripts/test-clients.sh, which runs this.
# Debian packages: php-cli php-thrift thrift-compiler
set -eu
cd "$(dirname "$0")"
./run.sh test_client.php
../check-example.sh ./run.sh example.php
