#!/bin/sh
# Runs a program of this folder: clients/perl/run.sh PROGRAM.pl [ARGUMENT …]
#
# Makes the code from the IDL under target/clients/perl, again when the IDL changes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
code=${CARGO_TARGET_DIR:-$here/../../target}/clients/perl/code
"$here/../generate.sh" perl "$code"

program=$here/$1
shift
exec perl -I "$code" -I "$here" "$program" "$@"
