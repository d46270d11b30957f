#!/bin/sh
# Runs schemathesis, which makes requests from an OpenAPI document and judges the
# answers: scripts/schemathesis.sh ARGUMENT…
#
# Prepares what it needs under target/schemathesis, once: a virtual environment with
# the package. Several of these may run at the same time.
set -eu

version=4.32.5
root=$(cd "$(dirname "$0")/.." && pwd)
base=${CARGO_TARGET_DIR:-$root/target}/schemathesis
venv=$base/venv-$version

mkdir -p "$base"
(
    flock 9
    if [ ! -e "$venv/ready" ]; then
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version"
        touch "$venv/ready"
    fi
) 9>"$base/lock" >&2

PYTHONPATH=$root/tests/openapi SCHEMATHESIS_HOOKS=hooks \
    exec "$venv/bin/schemathesis" --config-file "$root/tests/openapi/schemathesis.toml" "$@"
