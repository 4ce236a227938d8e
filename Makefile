# kbench: `make help` lists what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# Tools are built into .bin at the version given here.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .bin/golangci-lint-$(GOLANGCI_VERSION)

# Clusters that tests use; any free range of ports will do.
TEST_PORT_1 ?= 19092
TEST_PORT_3 ?= 19192
TEST_PORT_39 ?= 19292
# One package's bound. Packages that talk to Kafka share its clusters: not too many at once.
TEST_TIMEOUT ?= 40m
TEST_PARALLEL ?= 3
# Kafka's nodes and tools come and go: what they save by being compiled well they never earn back.
TEST_JVM := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
# The packages that take longest begin first, so that none of them ends alone; those that wait for
# Kafka before those that compute, which fill the gaps.
LONGEST := ./client ./cmd/kbench ./workloads/run/kafka ./report ./workloads/run/fault ./workloads/run/synthetic ./workloads/run/capacity
# What is tested, and flags besides: make test PKG=./client/... TESTFLAGS='-run Producer -v'
PKG ?= $(LONGEST) ./...
TESTFLAGS ?=
TAGS := kafka browser

# Packages whose benchmarks are figures of the hot path.
HOT := ./client/... ./results/hist/... ./workloads/pace/... ./workloads/payload/... ./workloads/run/...
BENCHFLAGS ?=
FUZZTIME ?= 10s

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ./kbench
	$(GO) build -trimpath -o kbench ./cmd/kbench

.PHONY: setup
setup: ## install what the tests need, where apt can; else say what is missing
	@.ci/setup

.PHONY: test
test: setup ## every test, with the race detector, real Kafka (4.4 with 1 and 3 nodes, 3.9) and a browser
	@TEST_PORT_1=$(TEST_PORT_1) TEST_PORT_3=$(TEST_PORT_3) TEST_PORT_39=$(TEST_PORT_39) \
	  KAFKA_JVM='$(TEST_JVM)' .ci/with-kafka \
	  $(GO) test -race -tags '$(TAGS)' -timeout $(TEST_TIMEOUT) -p $(TEST_PARALLEL) $(TESTFLAGS) $(PKG)

.PHONY: unit
unit: ## the tests that need nothing but Go
	$(GO) test $(TESTFLAGS) $(PKG)

.PHONY: soak
soak: export KBENCH_SOAK = 1
soak: TEST_TIMEOUT = 120m
soak: test ## every test at full length

.PHONY: check
check: fmt vet lint shell imports mod ## what must hold of the code without running it

.PHONY: fmt
fmt: ## files that gofmt would change
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  if [[ -n $$out ]]; then printf 'gofmt would change:\n%s\n' "$$out" >&2; exit 1; fi

.PHONY: vet
vet: ## go vet, without and with the build tags
	$(GO) vet ./...
	$(GO) vet -tags '$(TAGS) bench' ./...

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint, at the pinned version
	$(GOLANGCI) run ./...

$(GOLANGCI):
	GOBIN="$$PWD/.bin" GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .bin/golangci-lint $@

.PHONY: tools
tools: $(GOLANGCI) ## build the pinned tools into .bin

.PHONY: shell
shell: ## shellcheck on the scripts, where it is installed
	@if command -v shellcheck >/dev/null; then \
	  shellcheck -x docker/kafka docker/lib/*.sh .ci/run .ci/setup .ci/with-kafka; \
	else echo 'shellcheck is not installed: scripts are not checked' >&2; fi

.PHONY: imports
imports: ## the table of imports
	$(GO) test -count=1 -run 'Import' ./cmd/kbench

.PHONY: mod
mod: ## go.mod and go.sum are tidy and what was downloaded is what was published
	$(GO) mod tidy -diff
	$(GO) mod verify

# What is compared, and with whom: PEERS is the folder of a module with the other clients' program
# (see client/internal/bench), FIGURES a regular expression, SCALE a share of the messages.
PEERS ?=
ROUNDS ?= 5
FIGURES ?= .
SCALE ?= 1
PAIRS ?= 8
LENGTH ?= 20s
BENCH := $(GO) test -tags bench -count=1 -timeout 0 -v ./client/internal/bench
BESIDE_KAFKA := @TEST_CLUSTERS=1 TEST_PORT_1=$(TEST_PORT_1) .ci/with-kafka

.PHONY: bench
bench: ## CPU, rate, memory of the client, beside others with PEERS=DIR; ROUNDS FIGURES SCALE
	$(BESIDE_KAFKA) $(BENCH) -run '^TestCompare$$' -args -json '$(CURDIR)/dist/bench.json' \
	  -peers '$(if $(PEERS),$(abspath $(PEERS)))' -rounds $(ROUNDS) -figures '$(FIGURES)' -scale $(SCALE)

.PHONY: bench-refresh
bench-refresh: ## what refreshes of metadata do to p99.9 on real Kafka; PAIRS LENGTH
	$(BESIDE_KAFKA) $(BENCH) -run '^TestRefresh$$' -args -json '$(CURDIR)/dist/bench-refresh.json' -pairs $(PAIRS) -length $(LENGTH)

.PHONY: bench-go
bench-go: ## Go benchmarks of the hot path
	$(GO) test -run '^$$' -bench . -benchmem $(BENCHFLAGS) $(HOT)

.PHONY: profile
profile: ## where the CPU time of producing goes, to a discarding broker: dist/cpu.prof
	@mkdir -p dist
	@$(BENCH) -run '^TestProfile$$' -args -profile '$(CURDIR)/dist/cpu.prof' -scale $(SCALE)
	@$(GO) tool pprof -top -nodecount 40 dist/cpu.prof

# How often the gate errs on real Kafka: GATES of each set, runs of LENGTH. On a machine that is not
# quiet, LOOSEN=validity.maxStolenShare=1,validity.maxPause=1s; the summary says so and counts the runs.
GATES ?= 10
RATES_LENGTH ?= 2s
SLOWER ?= 0.1
LOOSEN ?=
RATES_OUT ?= results/data

.PHONY: gate-rates
gate-rates: setup ## how often the gate errs on real Kafka, into RATES_OUT; GATES RATES_LENGTH SLOWER LOOSEN
	@TEST_CLUSTERS=1 TEST_PORT_1=$(TEST_PORT_1) .ci/with-kafka \
	  $(GO) test -tags kafka -count=1 -timeout 0 -v -run '^TestKafkaGateRates$$' ./cmd/kbench -args \
	  -rates.gates $(GATES) -rates.sets A/A,A/B -rates.length $(RATES_LENGTH) -rates.warmup 500ms -rates.slower $(SLOWER) \
	  -rates.loosen '$(LOOSEN)' -rates.out '$(abspath $(RATES_OUT))' -rates.command 'make gate-rates $(strip $(foreach v,GATES RATES_LENGTH SLOWER LOOSEN,$(if $($(v)),$(v)=$($(v)))))'

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (10s)
	@$(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | while read -r pkg; do \
	  for target in $$($(GO) test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$pkg"; \
	  done; \
	done

.PHONY: kafka-up
kafka-up: ## start real Kafka, NODES=1 or 3, on KAFKA_PORT (9092)
	@docker/kafka up $(or $(NODES),1)

.PHONY: kafka-down
kafka-down: ## stop it, and delete its data
	@docker/kafka wipe

.PHONY: clean
clean: ## remove what was built
	rm -rf kbench .bin dist
