#!/bin/sh
# Builds the tests and runs two test programs at a time: they wait for servers and
# browsers most of the time. What each said comes when it has ended; those that
# failed are named at the end.
set -eu
cd "$(dirname "$0")/.."
: "${CARGO:=cargo}" "${RUST_TEST_THREADS:=4}"
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT

"$CARGO" test --locked --no-run --message-format=json-render-diagnostics >"$said/built"
# The longest first, so that the end is short.
python3 - "$said/built" >"$said/programs" <<'END'
import json, sys

LONGEST = ["page", "migration", "cluster", "idgen", "kinds", "live", "mysql_store"]
programs = {}
for line in open(sys.argv[1]):
    message = json.loads(line)
    if message.get("executable") and message["profile"]["test"]:
        programs[message["executable"]] = message["target"]["name"]
rank = {name: at for at, name in enumerate(LONGEST)}
for path in sorted(programs, key=lambda path: rank.get(programs[path], len(rank))):
    print(path)
END
[ -s "$said/programs" ]

export said RUST_TEST_THREADS CARGO_MANIFEST_DIR="$PWD"
# shellcheck disable=SC2016 # the variables are those of the inner shell
if xargs -n 1 -P 2 sh -c '
    program=$0
    name=$(basename "$program")
    begun=$(date +%s)
    code=0
    "$program" >"$said/$name" 2>&1 </dev/null || code=$?
    echo "$name: code $code after $(($(date +%s) - begun)) s" >>"$said/$name"
    flock "$said/programs" cat "$said/$name"
    [ "$code" -eq 0 ] || { echo "$name" >>"$said/failed"; exit 1; }
' <"$said/programs"; then
    echo "run-tests: $(wc -l <"$said/programs") programs, all well"
else
    echo "run-tests: failed: $(tr '\n' ' ' <"$said/failed")" >&2
    exit 1
fi
