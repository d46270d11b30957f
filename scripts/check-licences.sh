#!/bin/sh
# Checks the licences of all dependencies against deny.toml, without a network.
# Where cargo-deny is installed, it also checks bans, sources and (with the
# advisory database at hand) known vulnerabilities.
set -eu
cd "$(dirname "$0")/.."

python3 scripts/check_licences.py
if command -v cargo-deny >/dev/null 2>&1; then
    cargo deny --offline check bans licenses sources
    cargo deny --offline check advisories ||
        echo "check-licences: advisories were not checked: their database is not on this machine"
fi
