#!/bin/sh
# Tests the Perl client: see scripts/test-clients.sh, which runs this.
# Debian packages: perl libthrift-perl libbit-vector-perl libclass-accessor-perl
# thrift-compiler (libthrift-perl needs the two before it, and does not say so)
set -eu
cd "$(dirname "$0")"
./run.sh test_client.pl
../check-example.sh ./run.sh example.pl
