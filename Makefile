# slide: one command each to run, test and install the module. `make` alone lists them.

# The servers of the matrix: scripts/servers.txt says what each one is.
SERVERS ?= $(shell awk '!/^\#/ { print $$1 }' scripts/servers.txt)
# Those of them that load the module, and do not have to refuse it.
LOADING  = $(filter $(shell awk '!/^\#/ && $$3 == "loads" { print $$1 }' scripts/servers.txt),$(SERVERS))
PORT    ?= 6379
# The oldest and the newest of them, on which the client packages are tested.
CLIENT_SERVERS ?= redis-7.0 redis-8.10
# How much of the tests under faults: full or short.
EFFORT  ?= full
# How long `make fuzz` takes for each target.
SECONDS ?= 60
# How long `make test-long` goes on.
MINUTES ?= 60
# What `make package` builds for, by the names in scripts/package.d/targets.txt; empty: all.
TARGETS ?=
PREFIX  ?= /usr/local
DESTDIR ?=

# One fixed place for what is built, whatever the caller's environment says.
export CARGO_TARGET_DIR := $(CURDIR)/target

MODULE    := target/release/libslide.so
# Where Debian's and Redis's own packages put modules, below their prefix.
MODULEDIR := $(PREFIX)/lib/redis/modules
SHAREDIR  := $(PREFIX)/share/slide

.DEFAULT_GOAL := help
# The targets share target/ and the machine's ports: one at a time, even with -j.
.NOTPARALLEL:
.PHONY: help setup build run test test-unit test-servers test-examples test-clients test-faults test-long fuzz lint accuracy bench bench-guard demo package test-package test-image test-docs install clean

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## Install what building and testing need and is missing (apt; sudo if not root)
	@scripts/need-rust
	@scripts/setup-system test
	@scripts/setup-servers $(SERVERS)

build: ## Build the module: target/release/libslide.so
	@scripts/need-rust
	cargo build --release --locked

run: ## Build, then start a server with the module in the foreground (PORT=6379)
	@scripts/need-rust
	@scripts/setup-system
	@$(MAKE) --no-print-directory build
	@scripts/run-server $(PORT) $(MODULE)

test: ## Run every test, on every server of the matrix (SERVERS="redis-7.0 ..." narrows it)
	@$(MAKE) --no-print-directory setup build
	@scripts/run-tests unit $(SERVERS)

test-unit: ## Run the tests that need no server
	@scripts/need-rust
	@scripts/run-tests unit

test-servers: ## Run the tests against the servers of the matrix (SERVERS="redis-7.0 ...")
	@$(MAKE) --no-print-directory setup build
	@scripts/run-tests $(SERVERS)

test-faults: ## Run the tests under faults, load and attack (EFFORT=short: fewer rounds; ONLY=name; SERVERS)
	@$(MAKE) --no-print-directory setup build
	@SLIDE_EFFORT=$(EFFORT) ONLY='$(ONLY)' scripts/run-tests --faults $(LOADING)

test-long: ## Repeat the tests under faults with new seeds (MINUTES=60; SERVERS)
	@$(MAKE) --no-print-directory setup build
	@scripts/test-long $(MINUTES) $(LOADING)

fuzz: ## Fuzz the parsers (SECONDS=60 for each; RENEW=1: keep what is found in tests/fuzz/corpus)
	@scripts/need-rust
	@scripts/fuzz $(SECONDS)

test-examples: ## Run the tests of examples/python, examples/node and examples/rust
	@scripts/need-rust
	@scripts/setup-system examples
	@$(MAKE) --no-print-directory build
	@scripts/test-examples

test-clients: ## Build, install and test the client packages (CLIENT_SERVERS="redis-7.0 redis-8.10")
	@scripts/setup-system examples
	@$(MAKE) --no-print-directory setup build
	@scripts/test-clients $(CLIENT_SERVERS)

lint: ## Check links and formatting, and run clippy; warnings are errors
	@scripts/need-rust fmt clippy
	@scripts/check-links
	cargo fmt --check
	cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
	cargo clippy --all-targets --locked -- -D warnings
	cargo clippy --lib --test corpus --locked --manifest-path tests/fuzz/Cargo.toml -- -D warnings

accuracy: ## Measure how exact each limiter is, and write docs/ACCURACY.md
	@scripts/need-rust
	@scripts/setup-system test
	@scripts/setup-servers redis-8.2
	@$(MAKE) --no-print-directory build
	SLIDE_SERVER="$(CURDIR)/.servers/redis-8.2/redis-server" \
		cargo run --release --locked --example accuracy

bench: ## Measure how fast it is, and write docs/BENCHMARKS.md (QUICK=1: only print; SERVERS, ROUNDS)
	@$(MAKE) --no-print-directory setup build
	@scripts/setup-system guard
	cargo build --release --locked --example bench
	@scripts/bench $(LOADING)

bench-guard: ## Count instructions and compare with examples/bench/baseline.txt (RENEW=1: write it)
	@scripts/need-rust
	@scripts/setup-system guard
	@scripts/setup-servers valkey-8.1
	@$(MAKE) --no-print-directory build
	cargo build --release --locked --example bench
	@scripts/bench-guard

demo: ## Watch a fixed window and SLIDE.LOG get the same bursts, for 24 seconds
	@scripts/need-rust
	@scripts/setup-system
	@$(MAKE) --no-print-directory build
	@cargo run --release --locked --quiet --example demo

package: ## Build for x86_64 and aarch64, glibc and musl, and pack: dist/ (TARGETS="x86_64-gnu" narrows it)
	@scripts/need-rust
	@scripts/setup-system package
	@scripts/package dist $(TARGETS)

test-package: ## Test what `make package` made, each module in a server of its kind (root, or sudo)
	@scripts/need-rust
	@scripts/setup-system test-package
	@scripts/setup-servers $(LOADING)
	@scripts/test-package dist $(LOADING)

test-image: ## Build images with what `make package` made and run them (root; no daemon)
	@scripts/setup-system image
	@scripts/test-image dist

test-docs: ## Run what docs/ shows, and examples/prometheus, and compare the replies
	@$(MAKE) --no-print-directory setup build
	@scripts/test-docs $(LOADING)

# Does not build, so that `sudo make install` leaves no files of root's in target/.
install: ## Install what `make build` made (PREFIX=/usr/local, DESTDIR=)
	@test -f $(MODULE) || { echo "There is no $(MODULE) yet: run 'make build' first." >&2; exit 1; }
	install -d "$(DESTDIR)$(MODULEDIR)" "$(DESTDIR)$(SHAREDIR)"
	install -m 755 $(MODULE) "$(DESTDIR)$(MODULEDIR)/libslide.so"
	sed 's|^loadmodule .*|loadmodule $(MODULEDIR)/libslide.so|' redis.conf.example \
		> "$(DESTDIR)$(SHAREDIR)/redis.conf.example"
	chmod 644 "$(DESTDIR)$(SHAREDIR)/redis.conf.example"

clean: ## Remove all that was built and the test servers
	rm -rf target .servers dist tests/fuzz/target tests/fuzz/artifacts
	rm -rf examples/rust/target examples/node/node_modules examples/python/.venv
