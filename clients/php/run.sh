#!/bin/sh
# Runs a program of this folder: clients/php/run.sh PROGRAM.php [ARGUMENT …]
#
# Makes the code from the IDL under target/clients/php, again when the IDL changes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
code=${CARGO_TARGET_DIR:-$here/../../target}/clients/php/code
"$here/../generate.sh" php "$code"

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
