#!/bin/sh
# Makes a language's code from the IDL: clients/generate.sh GENERATOR FOLDER
#
# GENERATOR is what `thrift --gen` takes. Only where the IDL has changed; several of these
# may run at the same time.
set -eu
idl=$(cd "$(dirname "$0")/.." && pwd)/idl/idgen.thrift
code=$2
mkdir -p "${code%/*}"
(
    flock 9
    if ! cmp -s "$idl" "$code/idgen.thrift"; then
        rm -rf "$code" "$code.new"
        mkdir "$code.new"
        thrift --gen "$1" -out "$code.new" "$idl"
        cp "$idl" "$code.new/idgen.thrift"
        mv "$code.new" "$code"
    fi
) 9>"$code.lock" >&2
