#!/bin/sh
# Tests the C++ client: see scripts/test-clients.sh, which runs this.
#
# Needs g++, thrift-compiler, libthrift-dev, and libboost-dev, whose headers those of
# libthrift-dev include although the package does not ask for it.
set -eu
cd "$(dirname "$0")"
./run.sh test_client
../check-example.sh ./run.sh example
