# SPDX-License-Identifier: Apache-2.0
# Attune: `make help` lists what can be done here.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VERSION ?= $(shell scripts/version)
LDFLAGS := -s -w -X github.com/attune-hpc/attune/internal/buildinfo.version=$(VERSION)
TOOL := go tool -modfile=tools/go.mod
PREFIX ?= /usr/local

# One binary per command, and one for all tunlets (tunlets/catalogue).
BINARIES := attune attuned attune-tunlets
attune_PACKAGE := ./cmd/attune
# Ahead of the Go runtime: it would change what the program must inherit.
attune_LDFLAGS := -E attune_entry
attuned_PACKAGE := ./cmd/attuned
attune-tunlets_PACKAGE := ./tunlets/catalogue/cmd/attune-tunlets

##@ Build

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-zA-Z0-9_-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build $(BINARIES:%=bin/%)
build: $(BINARIES:%=bin/%) ## Build everything into bin/
	@bin/attune-tunlets link bin

# go build knows by itself what has changed.
$(BINARIES:%=bin/%): bin/%: dmlib
	@echo "build $@"
	@CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS) $($*_LDFLAGS)' -o $@ $($*_PACKAGE)

.PHONY: dmlib
dmlib: ## Build the library that is preloaded into applications
	@scripts/deps build
	@$(MAKE) -s -C dmlib

.PHONY: slurm
slurm: ## Build the plugin for the Slurm that is installed here
	@$(MAKE) -s -C packaging/slurm/spank

# What is installed by hand, and packed: packaging/nfpm has a list for each. The
# services are root's; the plugin is compiled for the Slurm that is here.
ALL_PACKAGES := attune attuned attune-analyzer attune-slurm
HAS_SLURM := $(wildcard $(or $(SLURM_INCLUDE),/usr/include)/slurm/spank.h)
PACKAGES_HERE := $(if $(DESTDIR)$(filter 0,$(shell id -u)),attune attuned attune-analyzer $(if $(HAS_SLURM),attune-slurm),attune)
COMPONENTS ?= $(PACKAGES_HERE)
STAGE := .cache/stage
export SLURM_PLUGINS ?= /usr/lib/$(shell $(CC) -print-multiarch)/slurm-wlm

# What is made for the packages beside the programs.
.PHONY: stage
stage: build
	@set -e; umask 022; rm -rf $(STAGE); mkdir -p $(STAGE)/tunlets $(STAGE)/completion; \
	cp bin/attune-tunlets $(STAGE)/tunlets/; bin/attune-tunlets link $(STAGE)/tunlets; \
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git show -s --format=%ct HEAD 2>/dev/null)} \
	    go run ./cmd/attune/internal/manual docs/reference bin/attuned $(STAGE)/man; \
	gzip -9nr $(STAGE)/man; \
	cp -r docs $(STAGE)/; chmod -R u=rwX,go=rX $(STAGE)/docs; \
	for shell in bash zsh fish; do bin/attune completion $$shell >$(STAGE)/completion/$$shell; done

.PHONY: install uninstall
install uninstall: export ZSH_COMPLETIONS := site-functions
install: stage $(if $(filter attune-slurm,$(COMPONENTS)),slurm) ## Install below PREFIX (/usr/local); as root with the services: COMPONENTS='attune attuned'
	@go run ./packaging/cmd/install -prefix '$(PREFIX)' -destdir '$(DESTDIR)' $(COMPONENTS:%=packaging/nfpm/%.yaml)
	@$(if $(filter attune,$(COMPONENTS)),bin/attune-tunlets link '$(DESTDIR)$(PREFIX)/lib/attune/tunlets')

uninstall: stage $(if $(filter attune-slurm,$(COMPONENTS)),slurm) ## Remove what install has installed; PURGE=yes: configuration and state as well
	@go run ./packaging/cmd/install -uninstall $(PURGE:%=-purge) -prefix '$(PREFIX)' -destdir '$(DESTDIR)' $(COMPONENTS:%=packaging/nfpm/%.yaml)

.PHONY: packages
packages: stage ## Build packages for Debian and RPM into dist/; COMPONENTS=attune builds some
	@$(if $(filter command environment,$(origin SLURM_PLUGINS)),,unset SLURM_PLUGINS; )scripts/packages $(if $(filter command environment,$(origin COMPONENTS)),$(COMPONENTS),$(ALL_PACKAGES))

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin .cache dist
	@$(MAKE) -s -C dmlib clean
	@$(MAKE) -s -C packaging/slurm/spank clean

##@ Develop

.PHONY: generate generate-proto generate-go generate-bpf
generate: generate-proto generate-go generate-bpf ## Generate the committed Go code and BPF objects again

generate-proto:
	$(TOOL) buf generate
	scripts/protocol-digests >proto/generated.sum

generate-go:
	go generate $$(go list ./... | grep -v /controller/bpf)

generate-bpf:
	@scripts/deps generate
	go generate ./controller/bpf/...

.PHONY: check-generated check-protocol check-vulnerabilities
check-generated: ## Check that the generated files are what their sources give
	@scripts/check-generated

check-protocol: ## Check the protocol's form, and generate its Go code again to compare
	$(TOOL) buf lint
	$(TOOL) buf format --diff --exit-code
	@scripts/check-generated proto

check-vulnerabilities: ## Look for known vulnerabilities in what the commands call
	$(TOOL) govulncheck ./cmd/... ./tunlets/...

.PHONY: lint
lint: dmlib ## Run the linters of Go, C and shell scripts
	@! git ls-files '*.go' | xargs gofmt -l | grep .
	$(TOOL) golangci-lint run --allow-parallel-runners ./...
	@scripts/check-c-format
	@for f in $$(git grep -lI '^#!.*\bbash' -- scripts .ci bench packaging); do bash -n $$f || exit 1; done
	@scripts/check-headers

.PHONY: fmt
fmt: ## Format Go, protobuf and C
	gofmt -w $$(git ls-files '*.go')
	$(TOOL) buf format -w
	@scripts/check-c-format --fix

.PHONY: breaking
breaking: ## Check that the protocol is still compatible with AGAINST (a git ref; origin/main)
	$(TOOL) buf breaking --against '.git#ref=$(or $(AGAINST),origin/main)'

##@ Test

.PHONY: test test-full
test: ## Set up, lint and test, in a quarter of an hour; says what this user cannot run
	@MAKE='$(MAKE)' scripts/test

test-full: ## All else: both kernels, races, a user, fuzzing, shuffled runs, promises; PART=2/5 runs a fifth
	@MAKE='$(MAKE)' scripts/test full $(PART)

.PHONY: test-unit
test-unit: dmlib ## Unit tests; no privileges needed. PACKAGES='./dmlib' runs some
	scripts/go-test unit $(or $(PACKAGES),./...)

.PHONY: test-race
test-race: dmlib ## Unit tests of what has goroutines, under the race detector
	scripts/go-test race -race $(or $(PACKAGES),$$(scripts/go-packages concurrent))

.PHONY: test-privileged
test-privileged: dmlib ## Tests that need root and BPF; they fail where they cannot run
	scripts/go-test privileged -count=1 -p 1 -tags privileged $$(scripts/go-packages privileged)

.PHONY: test-dmlib
test-dmlib: ## The tests in C: DMLib, packed files, the Slurm plugin, under the sanitizers
	@$(MAKE) -s -C dmlib test
	@$(MAKE) -s -C packaging/slurm/spank test

.PHONY: test-tutorial
test-tutorial: build ## Type in what docs/tutorial says, and check what comes of it; as root on a site, too
	scripts/go-test tutorial -count=1 -tags e2e,full$$([ $$(id -u) -ne 0 ] || echo ,site) -run 'TestTutorial|TestYour|TestNewTunlet' ./internal/testing/e2e

.PHONY: test-e2e
test-e2e: build ## Tests of the built commands on real programs; TAGS=e2e,full runs all
	scripts/test-tags e2e $(or $(TAGS),e2e)

.PHONY: test-site
test-site: build ## Tests on clusters of nodes in namespaces, with Slurm, as root; TIER=full: long ones, Grid Engine
	@scripts/deps site test $(TIER:full=packages)
	scripts/test-tags site site$(TIER:%=,% site)

.PHONY: test-vm
test-vm: build ## All that meets the kernel, on Debian's 6.1 and 6.12, in virtual machines; KERNELS='6.1' runs one
	@scripts/deps vm test
	scripts/test-vm full $(KERNELS)
	@[ -n "$(KERNELS)" ] || scripts/kernel-facing --note

.PHONY: test-vm-free
test-vm-free: test-unit test-dmlib ## What can be tested without privileges and without BPF

.PHONY: fuzz
fuzz: dmlib ## Let every fuzzer look for 30 s; ARGS='-t 10m 1/5' a fifth of them for longer
	@scripts/deps fuzz
	@scripts/fuzz $(ARGS)

##@ See what it does

.PHONY: demo
demo: build ## Speed up numpy and LAMMPS while they run (under two minutes)
	@scripts/deps demo
	@go run ./bench/cmd/demo

.PHONY: promises
promises: build ## Verify the promises of README.md (less than two hours, as root); ARGS='-run dmlib' verifies some
	@go run ./bench/cmd/promises $(ARGS)

.PHONY: bench-go
bench-go: dmlib ## Run each Go benchmark once, so that it cannot rot; as root those of BPF too
	go test -p 1 -run '^$$' -bench . -benchtime 1x $$([ $$(id -u) -ne 0 ] || echo -tags privileged) $$(git grep -l '^func Benchmark' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')

# Each is a script in bench/, which builds what it needs. `make bench` runs BENCHES, in this order.
BENCHES := account limits startup dmlib probe peers redis quiet drain announce attach detect idle inject \
	catalogue scale site archive
BENCHES_APART := estimate closed-loop hostile verdicts

.PHONY: bench $(BENCHES:%=bench-%) $(BENCHES_APART:%=bench-%)
bench: $(BENCHES:%=bench-%) ## The benchmarks below, but closed-loop, estimate, hostile and verdicts

$(BENCHES:%=bench-%) $(BENCHES_APART:%=bench-%): bench-%:
	@bench/$* $(ARGS)

bench-account: ## What it costs to know what a command took, with Attune and with other tools; as root
bench-limits: ## How soon a tree that does not want to end is ended for a limit; as root
bench-announce: ## How soon a thousand nodes know of a registration, and what they cost the registry
bench-archive: ## How fast an archive takes the accounts of tasks, and says of them what is asked
bench-estimate: ## What estimates of memory waste, on traces of Nextflow: ARGS='-check TRACE...'
bench-attach: ## How soon a hundred measure points in a running program deliver
bench-catalogue: ## All tunlets on programs with and without problems; ARGS="-run '^pipe/' -n 1" is quick
bench-closed-loop: ## The part of the catalogue that has malloc and MPI; ARGS='-n 1' is quick
bench-detect: ## How soon processes are found and instrumented, and what that costs a node; as root
bench-dmlib: ## What the preloaded library costs per call
bench-drain: ## How many events reach a tunlet, and at what cost
bench-hostile: ## What one user's attacks take from a second user's job; half an hour, as root
bench-idle: ## What twenty tunlets cost a program that needs none of them
bench-inject: ## How long a running program is stopped when DMLib comes in
bench-peers: ## What watching a function costs, with Attune and with other tools
bench-probe: ## What watching a function's calls costs, by mechanism
bench-quiet: ## What Attune, with all that it starts, costs programs without a problem
bench-redis: ## How many requests three measure points take of redis-server
bench-scale: ## What one Analyzer takes for a thousand controllers, and how soon it commands them
bench-site: ## A site's day: jobs of Slurm on two nodes found, joined and tuned; as root
bench-startup: ## What Attune costs in time to main and in memory
bench-verdicts: ## What is said of changes beside what programs' own counters say; ARGS='-n 1' is quick
