#!/bin/sh
# Measures the service beside its yardsticks and prints a table; the figures
# also go to target/bench/contenders.json. How to read them:
# docs/performance.md.
#
#   scripts/bench.sh [--rounds N] [--seconds N] [--connections N] [--only NAME,...]
#
# Needs redis-server and redis-benchmark, and mariadbd with mariadb-install-db;
# what needs a missing one is left out, and said so. Everything listens on
# 127.0.0.1 only, in a temporary folder, and is stopped at the end.
set -eu
cd "$(dirname "$0")/.."
exec cargo bench --quiet --bench contenders -- "$@"
