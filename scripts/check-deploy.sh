#!/bin/sh
# Checks what is in deploy/, and the documents that belong to it, with what is on this
# machine. Says in one line which tool is missing and what was not checked for that.
# Debian: python3-yaml, systemd, prometheus (promtool).
set -eu
cd "$(dirname "$0")/.."

# Where scripts/install-test-deps.sh unpacks promtool.
PATH=$PATH:$PWD/target/promtool/usr/bin

failed=
fail() {
    echo "check-deploy: $1" >&2
    failed=1
}
have() { # have COMMAND WHAT: whether it is there; says what is not checked if not
    command -v "$1" >/dev/null 2>&1 && return
    echo "check-deploy: $1 is missing: $2" >&2
    return 1
}
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# Files against the code and each other: metrics, settings, links, times, labels.
if have python3 "deploy/ was not compared with the code"; then
    python3 scripts/check_deploy.py || failed=1
fi

if have systemd-analyze "the systemd unit was not checked"; then
    # The program need not be installed on this machine.
    unit=$temporary/idgen.service
    sed 's|/usr/local/bin/idgen|/bin/true|' deploy/systemd/idgen.service >"$unit"
    # It ends with 0 for settings that it does not know, too.
    said=$(systemd-analyze verify --man=no "$unit" 2>&1) || fail "systemd-analyze verify failed"
    [ -z "$said" ] || fail "systemd-analyze verify: $said"
    # 1.2 as it is; 0 would be a service that may do nothing.
    systemd-analyze security --offline=true --threshold=15 "$unit" >"$temporary/security" 2>&1 ||
        fail "the systemd unit is exposed: $(tail -n 1 "$temporary/security")"
fi

if have promtool "alert rules, their tests and the dashboard's queries were not run"; then
    promtool check config deploy/prometheus/scrape.yaml >"$temporary/promtool" 2>&1 ||
        fail "promtool check config: $(cat "$temporary/promtool")"
    promtool test rules deploy/prometheus/alerts_test.yaml >"$temporary/promtool" 2>&1 ||
        fail "promtool test rules: $(cat "$temporary/promtool")"
    if command -v python3 >/dev/null 2>&1; then
        python3 scripts/check_deploy.py --queries >"$temporary/queries.yaml"
        promtool check rules "$temporary/queries.yaml" >"$temporary/promtool" 2>&1 ||
            fail "queries of the dashboard: $(cat "$temporary/promtool")"
    fi
fi

if have kubectl "the Kubernetes files were not put together"; then
    kubectl kustomize deploy/kubernetes >/dev/null 2>"$temporary/kubectl" ||
        fail "kubectl kustomize: $(cat "$temporary/kubectl")"
fi

if docker compose version >/dev/null 2>&1; then
    # Secrets of any kind: they are looked at, not used.
    sed 's/=$/=secret123/' deploy/docker/env.example >"$temporary/env"
    docker compose -f deploy/docker/compose.yaml --env-file "$temporary/env" config --quiet \
        2>"$temporary/compose" || fail "docker compose config: $(cat "$temporary/compose")"
else
    echo "check-deploy: docker compose is missing: compose.yaml was only read as YAML" >&2
fi

# The example configuration, read by the program: 2 is a wrong one, 1 a server out of reach.
program=${IDGEN_PROGRAM:-target/release/idgen}
if [ -x "$program" ]; then
    code=0
    env -i PATH="$PATH" "$program" doctor --config deploy/systemd/idgen.toml \
        >/dev/null 2>"$temporary/doctor" || code=$?
    [ "$code" -ne 2 ] || fail "$(cat "$temporary/doctor")"
else
    echo "check-deploy: $program is missing: idgen.toml was not read" >&2
fi

[ -z "$failed" ] || exit 1
echo "check-deploy: ok"
