#!/bin/sh
# Runs a program of this folder: clients/python/run.sh PROGRAM.py [ARGUMENT …]
#
# Prepares what it needs under target/clients/python, once: a virtual environment
# with the `thrift` package, and the code made from the IDL, made again when the IDL
# changes. Several of these may run at the same time.
set -eu

runtime=0.25.0
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
base=${CARGO_TARGET_DIR:-$root/target}/clients/python
venv=$base/venv-$runtime
code=$base/code

mkdir -p "$base"
(
    flock 9
    if [ ! -e "$venv/ready" ]; then
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "thrift==$runtime"
        touch "$venv/ready"
    fi
    "$here/../generate.sh" py "$code"
) 9>"$base/lock" >&2

program=$here/$1
shift
PYTHONPATH=$code exec "$venv/bin/python" "$program" "$@"
