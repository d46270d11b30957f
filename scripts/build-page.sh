#!/bin/sh
# Builds the admin page into web-admin/dist, from where it becomes part of the
# program. Does nothing where that is up to date. Says in one line what is missing.
set -eu
cd "$(dirname "$0")/../web-admin"

if [ ! -e package.json ]; then
    echo "build-page: there is no web-admin/package.json: nothing to build" >&2
    exit 1
fi
if ! command -v npm >/dev/null 2>&1; then
    echo "build-page: npm is missing: install Node.js 20 or newer to get the admin page" >&2
    exit 1
fi
if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)'; then
    echo "build-page: Node.js is $(node --version): 20.19 or newer is needed for the admin page" >&2
    exit 1
fi
# npm notes here what it has installed.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
    # Not `npm ci`: it refuses the lock for optional packages of other platforms that the
    # registry did not show when it was made. This installs the versions of the lock, too.
    npm install --no-save --no-audit --no-fund
fi
newer=
if [ -e dist/index.html ]; then
    newer=$(find . \( -name node_modules -o -name dist -o -name e2e \) -prune -o -type f -newer dist/index.html -print)
fi
if [ ! -e dist/index.html ] || [ -n "$newer" ]; then
    npm run build
fi
