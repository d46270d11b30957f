#!/bin/sh
# Runs a program of this folder: clients/ruby/run.sh PROGRAM.rb [ARGUMENT …]
#
# Makes the code from the IDL under target/clients/ruby, again when the IDL changes.
# Several of these may run at the same time.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
base=${CARGO_TARGET_DIR:-$root/target}/clients/ruby
code=$base/code

mkdir -p "$base"
(
    flock 9
    if ! cmp -s "$root/idl/idgen.thrift" "$code/idgen.thrift"; then
        rm -rf "$code" "$code.new"
        mkdir "$code.new"
        thrift --gen rb -out "$code.new" "$root/idl/idgen.thrift"
        cp "$root/idl/idgen.thrift" "$code.new/idgen.thrift"
        mv "$code.new" "$code"
    fi
) 9>"$base/lock" >&2

program=$here/$1
shift
exec ruby -I "$code" "$program" "$@"
