#!/bin/sh
# Runs a program of this folder: clients/cpp/run.sh PROGRAM [ARGUMENT …]
#
# Makes what it needs under target/clients/cpp: the code from the IDL, and the programs;
# each again when something changed that it is made of. Several of these may run at the
# same time.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
base=${CARGO_TARGET_DIR:-$root/target}/clients/cpp
flags="-std=c++17 -O1 -Wall -Wextra"

mkdir -p "$base"
(
    flock 9
    if ! cmp -s "$root/idl/idgen.thrift" "$base/code/idgen.thrift"; then
        rm -rf "$base/code" "$base/made" "$base/code.new"
        mkdir "$base/code.new"
        thrift --gen cpp:no_skeleton -out "$base/code.new" "$root/idl/idgen.thrift"
        (
            cd "$base/code.new"
            # shellcheck disable=SC2086
            ${CXX:-g++} $flags -c IdGenService.cpp idgen_types.cpp
        )
        cp "$root/idl/idgen.thrift" "$base/code.new/idgen.thrift"
        mv "$base/code.new" "$base/code"
    fi
    if [ ! -e "$base/made" ] || [ -n "$(find "$here" -name '*.[ch]pp' -newer "$base/made")" ]; then
        touch "$base/made.new"
        for program in example test_client; do
            # shellcheck disable=SC2086
            ${CXX:-g++} $flags -I"$base/code" -o "$base/$program.new" \
                "$here/$program.cpp" "$here/nodes.cpp" "$base"/code/*.o -lthrift
            # By a rename: the one that is there may be running.
            mv "$base/$program.new" "$base/$program"
        done
        mv "$base/made.new" "$base/made"
    fi
) 9>"$base/lock" >&2

program=$base/$1
shift
exec "$program" "$@"
