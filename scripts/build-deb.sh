#!/bin/sh
# Makes a Debian package of a program that is built already:
#
#   scripts/build-deb.sh [PROGRAM [FOLDER]]     target/release/idgen, target/debian
#
# and prints its path. Needs dpkg-dev. IDGEN_DEB_COMPRESSION=none is for tests.
set -eu
cd "$(dirname "$0")/.."
program=${1:-target/release/idgen}
folder=${2:-target/debian}
[ -x "$program" ] || {
    echo "build-deb: no program at $program: make build" >&2
    exit 1
}
for tool in dpkg-deb dpkg-shlibdeps dpkg-gencontrol strip gzip; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "build-deb: $tool is missing: apt-get install dpkg-dev binutils" >&2
        exit 1
    }
done

version=$("$program" --version | cut -d ' ' -f 2)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/debian/idgen
put() { # put MODE FROM TO: a file of the package
    install -D -m "$1" "$2" "$root/$3"
}

put 0755 "$program" usr/bin/idgen
strip "$root/usr/bin/idgen"
put 0600 deploy/systemd/idgen.toml etc/idgen/idgen.toml
install -d "$root/lib/systemd/system"
sed 's|/usr/local/|/usr/|g; s|doc/idgen/|doc/idgen/docs/|' deploy/systemd/idgen.service | grep -v '^#   ' \
    >"$root/lib/systemd/system/idgen.service"
put 0644 idl/idgen.thrift usr/share/idgen/idgen.thrift
put 0644 idl/openapi.json usr/share/idgen/openapi.json
put 0644 procedures/account.sql usr/share/idgen/account.sql
"$program" completions bash >"$work/idgen"
put 0644 "$work/idgen" usr/share/bash-completion/completions/idgen
put 0644 deploy/debian/copyright usr/share/doc/idgen/copyright
gzip -9n <CHANGELOG.md >"$work/changelog.gz"
put 0644 "$work/changelog.gz" usr/share/doc/idgen/changelog.gz
put 0644 README.md usr/share/doc/idgen/README.md
for page in docs/*.md; do
    put 0644 "$page" "usr/share/doc/idgen/docs/${page#docs/}"
done
for file in deploy/prometheus/alerts.yaml deploy/grafana/idgen.json; do
    put 0644 "$file" "usr/share/doc/idgen/examples/${file##*/}"
done

install -d "$root/DEBIAN"
for script in postinst prerm postrm; do
    install -m 0755 "deploy/debian/$script" "$root/DEBIAN/"
done
echo /etc/idgen/idgen.toml >"$root/DEBIAN/conffiles"
(cd "$root" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\0' |
    sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
cp deploy/debian/control "$work/debian/"
printf 'idgen (%s) stable; urgency=low\n\n  * CHANGELOG.md\n\n -- The IdGen developers <idgen@localhost>  %s\n' \
    "$version" "$(date -R)" >"$work/debian/changelog"
# The libraries that it needs, and so the Debian that it needs at least.
(cd "$work" && dpkg-shlibdeps -Odebian/idgen.substvars debian/idgen/usr/bin/idgen &&
    dpkg-gencontrol -pidgen -Pdebian/idgen -Tdebian/idgen.substvars -fdebian/files) >/dev/null

mkdir -p "$folder"
package=$folder/idgen_${version}_$(dpkg --print-architecture).deb
dpkg-deb --root-owner-group -Z"${IDGEN_DEB_COMPRESSION:-xz}" --build "$root" "$package" >/dev/null
echo "$package"
