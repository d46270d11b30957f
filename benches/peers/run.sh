#!/bin/sh
# Compares IdGen with Leaf and CosId on this machine, in one run of less than six
# minutes, and prints tables. The figures also go to target/bench/peers.json.
# What is measured, and how fair it is: docs/comparison.md.
#
#   benches/peers/run.sh [--rounds N] [--seconds N] [--publish] [--note TEXT]
#
# --publish   also writes the tables into docs/comparison.md, between its two markers
# --note      a sentence that is put above the tables, such as what else the machine did
# IDGEN       the program to measure; target/release/idgen unless told
#
# Needs Java 17, Maven, wrk, Python 3, redis-server, and mariadbd with its tools (Debian:
# openjdk-17-jdk-headless maven wrk python3 redis-server mariadb-server). The first run
# fetches the Java libraries. Everything listens on 127.0.0.1 only, with data in a
# temporary folder, and is stopped at the end.
set -eu
cd "$(dirname "$0")/../.."
for program in java javac mvn wrk python3 redis-server mariadbd mariadb-install-db mariadb \
    mariadb-dump; do
    command -v "$program" >/dev/null || PATH="$PATH:/usr/sbin"
    command -v "$program" >/dev/null || { echo "peers: $program is missing" >&2; exit 1; }
done
export PATH
IDGEN="${IDGEN:-target/release/idgen}"
test -x "$IDGEN" || { echo "peers: no program $IDGEN; run make build, or set IDGEN" >&2; exit 1; }
export IDGEN
echo "peers: building the Java side" >&2
mvn -q -B -f benches/peers/pom.xml compile dependency:copy-dependencies >&2
# IdGen's own helper for Java, where this version has one.
if [ -e clients/java/src/LocalIds.java ]; then
    java=target/bench/peers/java
    clients/java/run.sh --version >/dev/null
    helper=${CARGO_TARGET_DIR:-target}/clients/java
    mkdir -p "$java/lease"
    javac -cp "$helper/classes:$helper/lib/*" -d "$java/lease" \
        benches/peers/src/lease/IdGenLease.java
    export PEERS_HELPER="$java/lease:$helper/classes:$helper/lib/*"
fi
exec python3 benches/peers/peers.py "$@"
