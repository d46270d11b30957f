#!/bin/sh
# Runs the go command here, with the code made from the IDL: clients/go/run.sh test ./...
# The code goes to idgen/, the package that the others import.
set -eu
cd "$(dirname "$0")"
idl=$PWD/../../idl/idgen.thrift
if ! cmp -s "$idl" idgen/idgen.thrift; then
    rm -rf idgen
    thrift --gen go:skip_remote -out . "$idl"
    cp "$idl" idgen/idgen.thrift
fi
exec go "$@"
