#!/bin/sh
# Installs what `make test` needs and finds missing: servers and tools from the
# system's packages (Debian), and a MySQL 8 for the tests. Does nothing where
# all is there. Says in one line what it cannot install.
set -eu
cd "$(dirname "$0")/.."

missing=
need() { # need PACKAGE COMMAND: the package that brings the command
    command -v "$2" >/dev/null 2>&1 || missing="$missing $1"
}
# Servers live in sbin, which is not on everybody's path.
PATH=$PATH:/usr/sbin:/sbin
need mariadb-server mariadbd
need mariadb-client mariadb
need redis-server redis-server
need redis-tools redis-cli
need thrift-compiler thrift
need openssl openssl
need faketime faketime
need util-linux nsenter
need util-linux unshare
need unzip unzip
need gcc cc
# The Debian package is made with these.
need dpkg-dev dpkg-shlibdeps
need binutils strip
# deploy/ is checked with these, and with the promtool of below.
need systemd systemd-analyze
python3 -c 'import yaml' >/dev/null 2>&1 || missing="$missing python3-yaml"
need python3 python3
need maven mvn
# The admin page is built with these, and tested in a real browser.
need nodejs node
need npm npm
need chromium chromium
# The MySQL 8 of the tests is linked with these.
need_library() { # need_library PACKAGE FILE
    ldconfig -p 2>/dev/null | grep -q "$2" || missing="$missing $1"
}
need_library libaio1 libaio.so.1
need_library libnuma1 libnuma.so.1
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "install-test-deps: please install (named as in Debian):$missing" >&2
        exit 1
    fi
    sudo=
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || {
            echo "install-test-deps: as root, please: apt-get install$missing" >&2
            exit 1
        }
        sudo=sudo
    fi
    echo "install-test-deps: installing$missing"
    $sudo apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing \
        >/dev/null
fi

# Only promtool of the package, unpacked here: the package would start a server.
if ! command -v promtool >/dev/null 2>&1 && [ ! -x target/promtool/usr/bin/promtool ] &&
    command -v apt-get >/dev/null 2>&1; then
    rm -rf target/promtool
    mkdir -p target/promtool
    (cd target/promtool && apt-get download -qq prometheus >/dev/null 2>&1 &&
        dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb) ||
        echo "install-test-deps: no promtool: the alert rules will not be tested" >&2
fi

scripts/install-mysql8.sh
