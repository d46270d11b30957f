#!/bin/sh
# Runs a program of this folder: clients/nodejs/run.sh PROGRAM.js [ARGUMENT …]
#
# Prepares what it needs under target/clients/nodejs: the `thrift` package, by npm, once;
# the code made from the IDL, made again when the IDL changes; and beside it the programs
# of this folder, as they would lie in a project. Several of these may run at the same time.
set -eu

runtime=0.24.0
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
base=${CARGO_TARGET_DIR:-$root/target}/clients/nodejs
packages=$base/packages-$runtime
code=$packages/code

mkdir -p "$base"
(
    flock 9
    if [ ! -e "$packages/ready" ]; then
        rm -rf "$packages"
        mkdir "$packages"
        npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$packages" "thrift@$runtime"
        touch "$packages/ready"
    fi
    "$here/../generate.sh" js:node,es6 "$code"
    for file in "$here"/*.js; do
        name=${file##*/}
        # By a rename: another run may be reading the one that is there.
        cmp -s "$file" "$code/$name" || { cp "$file" "$code/$name.new" && mv "$code/$name.new" "$code/$name"; }
    done
) 9>"$base/lock" >&2

program=$code/$1
shift
exec node "$program" "$@"
