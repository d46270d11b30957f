#!/bin/sh
# Runs a class of this folder: clients/java/run.sh CLASS [ARGUMENT …]
#
# Makes what it needs under target/clients/java: the library, by Maven, once; the code
# from the IDL and the classes, again when something changed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
base=${CARGO_TARGET_DIR:-$root/target}/clients/java
mkdir -p "$base"
(
    flock 9
    if ! cmp -s "$here/pom.xml" "$base/pom.xml"; then
        rm -rf "$base/lib"
        mvn --batch-mode --quiet -Dstyle.color=never -f "$here/pom.xml" \
            org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
            -DincludeScope=runtime "-DoutputDirectory=$base/lib"
        cp "$here/pom.xml" "$base/pom.xml"
        rm -f "$base/made"
    fi
    if [ ! -e "$base/made" ] ||
        [ -n "$(find "$root/idl/idgen.thrift" "$here/src" "$here/test" -newer "$base/made")" ]; then
        rm -rf "$base/code" "$base/classes"
        mkdir -p "$base/code"
        touch "$base/made.new"
        thrift --gen java:generated_annotations=suppress -out "$base/code" "$root/idl/idgen.thrift"
        javac -encoding UTF-8 -nowarn -cp "$base/lib/*" -d "$base/classes" \
            "$base"/code/idgen/thrift/*.java "$here"/src/*.java "$here"/test/*.java
        mv "$base/made.new" "$base/made"
    fi
) 9>"$base/lock" >&2
exec java -Dfile.encoding=UTF-8 -Dorg.slf4j.simpleLogger.defaultLogLevel=off \
    -cp "$base/classes:$base/lib/*" "$@"
