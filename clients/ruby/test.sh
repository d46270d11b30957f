#!/bin/sh
# Tests the Ruby client: see scripts/test-clients.sh, which runs this.
# Debian packages: ruby ruby-thrift thrift-compiler
set -eu
cd "$(dirname "$0")"
./run.sh test_client.rb
../check-example.sh ./run.sh example.rb
