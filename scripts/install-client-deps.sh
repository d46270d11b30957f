#!/bin/sh
# Installs what the tests of clients/ need and finds missing, from the system's packages
# (Debian): scripts/install-client-deps.sh [--quick]. With --quick, only what `make test`
# runs. What comes from pip, npm, Maven and Go modules, each language's run.sh fetches.
set -eu

missing=
need() { # need PACKAGE COMMAND: the package that brings the command
    command -v "$2" >/dev/null 2>&1 || missing="$missing $1"
}
need thrift-compiler thrift
need util-linux flock
need python3 python3
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
need maven mvn
need default-jdk-headless javac
need nodejs node
need npm npm
if [ "${1:-}" != --quick ]; then
    need golang-go go
    need g++ g++
    # libthrift-dev needs Boost, and does not say so.
    [ -e /usr/include/thrift/Thrift.h ] || missing="$missing libthrift-dev"
    [ -e /usr/include/boost/version.hpp ] || missing="$missing libboost-dev"
    need php-cli php
    [ -e /usr/lib/php/Base/TBase.php ] || missing="$missing php-thrift"
    need ruby ruby
    ruby -e 'require "thrift"' 2>/dev/null || missing="$missing ruby-thrift"
    need perl perl
    # libthrift-perl needs the two others, and does not say so.
    perl -MThrift -e1 2>/dev/null || missing="$missing libthrift-perl"
    perl -MBit::Vector -e1 2>/dev/null || missing="$missing libbit-vector-perl"
    perl -MClass::Accessor -e1 2>/dev/null || missing="$missing libclass-accessor-perl"
fi
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "install-client-deps: please install (named as in Debian):$missing" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
        echo "install-client-deps: as root, please: apt-get install$missing" >&2
        exit 1
    }
    sudo=sudo
fi
echo "install-client-deps: installing$missing"
$sudo apt-get update -qq
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
