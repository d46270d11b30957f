# The two commands of the README are `make run` and `make test`; each installs
# or builds what it needs. The rest are their parts.

CARGO ?= cargo

.PHONY: run build page test test-deps check unit simulate chaos fuzz hostile bench bench-guard \
	bench-micro bench-client bench-peers test-clients deb clean

## Builds the service and starts it on the embedded store (Ctrl-C stops it).
run: build
	./target/release/idgen serve

## Without the page where it cannot be built, as on a machine without Node.js.
build:
	@$(MAKE) --no-print-directory page || echo "make build: going on without a new admin page"
	$(CARGO) build --release --locked

## The admin page, which the program takes from web-admin/dist.
page:
	@scripts/build-page.sh

## Installs what the tests need, then runs every check and every test.
test: test-deps check unit

test-deps:
	scripts/install-test-deps.sh

## What a tool can check: formatting, lints, types, generated code, licences.
check: page
	cd web-admin && npm run check
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	CARGO="$(CARGO)" scripts/check-client.sh
	scripts/generate-thrift.sh --check
	scripts/check-licences.sh
	scripts/check-deploy.sh

unit: page
	cd web-admin && npm test
	CARGO="$(CARGO)" scripts/run-tests.sh
	CLIENTS_PROGRAM="$(CURDIR)/target/debug/idgen" scripts/test-clients.sh --quick

## The clients of every language, against a real node; see docs/clients.md.
test-clients: build
	scripts/test-clients.sh

## Simulates many schedules of faults, for ten minutes; see docs/simulation.md.
simulate:
	SIMULATE_SEEDS=$${SIMULATE_SEEDS:-20000} $(CARGO) test --release --locked \
		--test simulation schedules -- --nocapture

## Measures the service beside its yardsticks; see docs/performance.md.
bench:
	scripts/bench.sh

## A quick run of that: one line per ratio. Misses are warnings, no failure.
bench-guard:
	scripts/bench.sh --guard

## Measures the service beside Leaf and CosId, in five minutes; see docs/comparison.md.
## Options of the comparison: make bench-peers PEERS='--publish'.
bench-peers: build
	benches/peers/run.sh $(PEERS)

## Measures the parts of one request; MICRO='call/' picks some. docs/performance.md.
bench-micro:
	$(CARGO) bench --locked --bench micro -- $(MICRO)

## Measures ids of local leases beside a bare counter; docs/rust-client.md.
bench-client:
	$(CARGO) bench --locked --no-default-features --features client --bench client

## Faults under load on real processes, at most 25 minutes; docs/reliability.md.
## Options of the campaign: make chaos CHAOS='--only redis'. Needs root.
CHAOS ?= --all
chaos: test-deps build
	CHAOS_PROGRAM=$(CURDIR)/target/release/idgen \
		$(CARGO) test --locked --test chaos -- $(CHAOS) --report $(CURDIR)/target/chaos.md

## Runs each fuzz target for FUZZ_SECONDS (60 unless told); see docs/hostile-clients.md.
fuzz:
	scripts/fuzz.sh

## The long form of tests/hostile: ten million malformed messages and the rest in full.
hostile:
	IDGEN_TEST_HOSTILE=full $(CARGO) test --locked --release --test hostile -- --nocapture --test-threads 1

clean:
	$(CARGO) clean

## A Debian package of the program: target/debian/idgen_*.deb.
deb: export IDGEN_COMMIT ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
deb: build
	scripts/build-deb.sh
