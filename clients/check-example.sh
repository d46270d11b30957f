#!/bin/sh
# Runs a language's example: clients/check-example.sh COMMAND [ARGUMENT …]
#
# The command takes a list of nodes and a type. The first of the nodes is one that
# nobody listens at, so the example has to go on to the next; and one type can never
# be served, so it has to give up in the end and say why. Needs CLIENTS_NODE.
set -eu

said=$("$@" "127.0.0.1:1,$CLIENTS_NODE" order) || {
    echo "check-example: failed: $*: $said" >&2
    exit 1
}
line=0
for wanted in '^id: [0-9]+$' '^ids: [0-9]+ to [0-9]+$' '^text: OD[0-9]+$' '^refused: UNKNOWN_TYPE$'; do
    line=$((line + 1))
    echo "$said" | sed -n "${line}p" | grep -Eq "$wanted" || {
        echo "check-example: line $line is not as $wanted: $*: $said" >&2
        exit 1
    }
done

if said=$("$@" "$CLIENTS_NODE" down 2>&1); then
    echo "check-example: a type that is out of reach was served: $*: $said" >&2
    exit 1
fi
echo "$said" | grep -q '^failed after 4 attempts: UNAVAILABLE: ' || {
    echo "check-example: did not try 4 times, or not say why it failed: $*: $said" >&2
    exit 1
}
echo "example: ok"
