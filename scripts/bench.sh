#!/bin/sh
# Measures the service beside its yardsticks and prints a table. The figures
# also go to target/bench/contenders.json, and as a picture beside it. What is
# measured, and how to read it: docs/performance.md.
#
#   scripts/bench.sh            the whole comparison, about six minutes
#       [--quick]               short turns, without blocking clients: two minutes
#       [--rounds N] [--seconds N] [--connections N] [--only NAME,...] [--ramp]
#       [--publish]             also writes docs/performance.json and its picture
#   scripts/bench.sh --guard [--against FILE]
#                               a quick run, one line per ratio; warns, and fails
#                               only where something could not be measured
#   scripts/bench.sh --scale connections|nodes|types [--most N]
#                               how it grows; to target/bench/scale-*.json
#
# Needs redis-server and redis-benchmark, and mariadbd with mariadb-install-db;
# what needs a missing one is left out, and said so. Everything listens on
# 127.0.0.1 only, in a temporary folder, and is stopped at the end.
set -eu
cd "$(dirname "$0")/.."
exec cargo bench --quiet --bench contenders -- "$@"
