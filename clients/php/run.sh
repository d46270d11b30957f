#!/bin/sh
# Runs a program of this folder: clients/php/run.sh PROGRAM.php [ARGUMENT …]
#
# Makes the code from the IDL under target/clients/php, again when the IDL changes.
# Several of these may run at the same time.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
base=${CARGO_TARGET_DIR:-$root/target}/clients/php
code=$base/code

mkdir -p "$base"
(
    flock 9
    if ! cmp -s "$root/idl/idgen.thrift" "$code/idgen.thrift"; then
        rm -rf "$code" "$code.new"
        mkdir "$code.new"
        thrift --gen php -out "$code.new" "$root/idl/idgen.thrift"
        cp "$root/idl/idgen.thrift" "$code.new/idgen.thrift"
        mv "$code.new" "$code"
    fi
) 9>"$base/lock" >&2

program=$here/$1
shift
# Debian installs the extension, but does not always switch it on.
extension=
php -r 'exit(extension_loaded("thrift_protocol") ? 0 : 1);' ||
    extension="-d extension=thrift_protocol"
# Version 0.17 of the library does what PHP 8.1 and later call deprecated.
# shellcheck disable=SC2086 # Nothing, or two words.
exec php $extension -d "include_path=$code:/usr/lib/php" -d log_errors=0 \
    -d display_errors=stderr -d "error_reporting=E_ALL & ~E_DEPRECATED" "$program" "$@"
