#!/bin/sh
# Runs a program of this folder: clients/ruby/run.sh PROGRAM.rb [ARGUMENT …]
#
# Makes the code from the IDL under target/clients/ruby, again when the IDL changes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
code=${CARGO_TARGET_DIR:-$here/../../target}/clients/ruby/code
"$here/../generate.sh" rb "$code"

program=$here/$1
shift
exec ruby -I "$code" "$program" "$@"
