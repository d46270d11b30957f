#!/bin/sh
# Tests the clients of clients/ against a real node, a language at a time.
#
#   scripts/test-clients.sh              every language
#   scripts/test-clients.sh --quick      those that `make test` runs
#   scripts/test-clients.sh go java …    these
#
# CLIENTS_PROGRAM is the service to test; it is built if not given. What each test says
# is in target/clients/LANGUAGE.log. One line per language; exits with 1 if one failed.
# What a language needs is installed by scripts/install-client-deps.sh.
set -eu
cd "$(dirname "$0")/.."
root=$PWD

# Node.js, C++ and so on as the folders of clients/ are called.
all="python java go nodejs php ruby perl cpp"
quick="python java nodejs"
case "${1:-}" in
    --quick) languages=$quick ;;
    "") languages=$all ;;
    *) languages=$* ;;
esac

case "${1:-}" in
    --quick) scripts/install-client-deps.sh --quick ;;
    *) scripts/install-client-deps.sh ;;
esac
if [ -z "${CLIENTS_PROGRAM:-}" ]; then
    "${CARGO:-cargo}" build --release --locked
    CLIENTS_PROGRAM=${CARGO_TARGET_DIR:-$root/target}/release/idgen
fi
base=${CARGO_TARGET_DIR:-$root/target}/clients
mkdir -p "$base"
data=$(mktemp -d)
node=
cleanup() {
    [ -z "$node" ] || kill "$node" 2>/dev/null || true
    [ -z "$node" ] || wait "$node" 2>/dev/null || true
    rm -rf "$data"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

: >"$base/node.log"
# Port 0: the node takes free ones, and says which. Nothing of the caller's own
# settings may get in.
for name in $(env | sed -n 's/^\(IDGEN_[A-Z0-9_]*\)=.*/\1/p'); do
    unset "$name"
done
export CLIENTS_PROGRAM
"$CLIENTS_PROGRAM" serve --data "$data/node" --thrift 127.0.0.1:0 --http 127.0.0.1:0 --node-deadline-ms 300 \
    >"$base/node.log" 2>&1 &
node=$!
while ! grep -q '^  admin ' "$base/node.log"; do
    kill -0 "$node" 2>/dev/null || {
        cat "$base/node.log" >&2
        exit 1
    }
    sleep 0.05
done
CLIENTS_NODE=$(sed -n 's/^  thrift *//p' "$base/node.log")
IDGEN_URL=$(sed -n 's/^  http *//p' "$base/node.log")
export CLIENTS_NODE

# The types that every test expects; docs/clients.md tells what they are for.
add() {
    IDGEN_URL=$IDGEN_URL IDGEN_DATA=$data/node "$CLIENTS_PROGRAM" "$@" >>"$base/node.log"
}
add type add order --prefix OD
add type add event --mode segment
add type add account --mode sharded --app-id 7
add type add big --first-id 9007199254740993
add type add huge --first-id 9223372036854000000
add type add umlaut --prefix 'Größe-№-'
add redis add nowhere redis://127.0.0.1:1 --no-test
add type add down --redis nowhere

failed=
for language in $languages; do
    log=$base/$language.log
    begun=$(date +%s)
    # Long enough for a cold cache of Maven; no test hangs for ever.
    if timeout 300 sh "clients/$language/test.sh" >"$log" 2>&1; then
        echo "$language: passed after $(($(date +%s) - begun)) s"
    else
        echo "$language: FAILED; see $log"
        tail -n 20 "$log" | sed 's/^/    /'
        failed="$failed $language"
    fi
done
case "${1:-}" in
    "") echo "csharp: cannot be had here: Debian has no .NET SDK; see docs/clients.md" ;;
esac
[ -z "$failed" ] || {
    echo "test-clients: failed:$failed" >&2
    exit 1
}
