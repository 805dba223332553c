# The verbs of this repository. Each one does all it needs, and nothing twice.
#
#   make setup       install what a fresh Debian or Ubuntu lacks (asks sudo unless root)
#   make build       the release binary, target/release/shiftwork
#   make install     the built command, man pages, completions and service (PREFIX=/usr/local, DESTDIR); uninstall removes them
#   make c           the C library, target/release/libshiftwork.so and .a; header: crates/c/include/shiftwork.h
#   make install-c   puts it where compilers find it (PREFIX=/usr/local, LIBDIR, DESTDIR)
#   make deb         the packages for Debian and Ubuntu, target/deb/*.deb
#   make wheel       the Python package, target/wheels/*.whl
#   make release     what is published, for x86-64 and aarch64, into target/dist: static commands, packages, wheels, images, bills
#                    of materials, checksums (ARCHITECTURES=x86_64); half an hour
#   make reproducible  makes it twice, in other folders and at another time, and compares; for this machine's architecture
#                    (AGAINST=FOLDER: once, and compares with the files there)
#   make supply      licences, versions, sources and known vulnerabilities of what this depends on; installs cargo-deny below target/
#   make demo        run the examples, one of them for real in an emulator (LIVE=1: on this machine);
#                    tables here, traces and pages in demo/
#   make test        everything that must hold; shows how far it is
#   make test-live   only the live tests: on a real kernel, in an emulator that is fetched once
#   make test-long   all of them, with much larger random counts and on more kernels
#   make soak        random tasks, faults and interleavings on a real kernel, by seed (SEED=1, COUNT=10,
#                    KERNEL=newest, SHRINK=0: boots that may be spent on making a failure smaller)
#   make bench       nanoseconds and instructions per event, simulation speed, concurrent queues
#   make papers      compute again what papers publish, and write docs/papers; a quarter of an hour
#   make proofs      check the machine-checked proofs in proofs/; needs coq and mathcomp, not part of make test
#   make models      check the models of what crosses the core's lock, with spin; two minutes
#   make faults      put old faults back, one by one, and measure which tests and models find each (ONLY=NAME); an hour
#   make coverage    lines and branches of the programs in the kernel that live tests and the soak execute (TESTS="WORD ..", or none
#                    for none; SEED=1, COUNT=10 seeds of the soak; ANEW=1, EXECUTE=0: see .ci/coverage); an hour
#   make fuzz-core   the core in C under sanitizers: reachable states, and random events for SECONDS=3600
#   make lint        only the format, clippy and documentation checks
#   make man         man pages and shell completions, into target/man and target/completions
#   make site        the documentation site, target/site/index.html, with its links followed; installs mdBook below target/

SHELL := bash
CARGO ?= cargo
# Where cargo puts things, also when CARGO_TARGET_DIR says otherwise.
TARGET := $(or $(CARGO_TARGET_DIR),target)
SHIFTWORK := $(TARGET)/release/shiftwork
# Where rustup puts cargo.
export PATH := $(PATH):$(HOME)/.cargo/bin

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib

.PHONY: setup build install uninstall c install-c deb wheel release reproducible supply demo test test-live test-long soak bench papers \
  proofs models faults coverage fuzz-core lint man site clean

setup:
	@.ci/setup

build:
	@.ci/setup --quiet
	BPF_CLANG=$$(.ci/clang) $(CARGO) build --release --locked -p shiftwork-cli

# Not built here: the user who may write there is usually not the user who builds.
install:
	@[ -x $(SHIFTWORK) ] || { echo "there is no $(SHIFTWORK); \`make build\` makes it" >&2; exit 1; }
	@DESTDIR=$(DESTDIR) .ci/install $(SHIFTWORK) $(PREFIX)

uninstall:
	@DESTDIR=$(DESTDIR) .ci/install --remove $(PREFIX)

c:
	@.ci/setup --quiet
	$(CARGO) build --release --locked -p shiftwork-c

install-c:
	@DESTDIR=$(DESTDIR) .ci/install-c $(TARGET)/release $(PREFIX) $(LIBDIR)

deb: build c
	@.ci/deb $(SHIFTWORK) $(TARGET)/deb $(TARGET)/release

wheel:
	@.ci/setup --quiet
	@.ci/wheel

ARCHITECTURES ?= x86_64 aarch64

release:
	@.ci/setup --quiet portable
	@.ci/release $(TARGET) $(ARCHITECTURES)

reproducible:
	@.ci/setup --quiet portable
	@AGAINST=$(AGAINST) .ci/reproducible $(TARGET) $(if $(AGAINST),$(ARCHITECTURES))

supply:
	@.ci/supply $(TARGET)

demo: build
	$(CARGO) build --release --locked -p shiftwork-emulator
	@LIVE=$(LIVE) examples/demo $(SHIFTWORK) demo

test:
	@.ci/setup --quiet
	@.ci/test

test-live:
	@.ci/setup --quiet
	@.ci/test live

test-long:
	@.ci/setup --quiet models sanitizers
	@SHIFTWORK_LONG=1 .ci/test

SEED ?= 1
COUNT ?= 10
KERNEL ?= newest
SHRINK ?= 0

soak:
	@.ci/setup --quiet
	BPF_CLANG=$$(.ci/clang) $(CARGO) test -p shiftwork-live-tests --test live --locked -- \
	  --soak $(SEED) --count $(COUNT) --kernel $(KERNEL) --shrink $(SHRINK)

bench:
	@.ci/setup --quiet
	@.ci/bench

papers:
	@.ci/setup --quiet
	@.ci/papers

proofs:
	@.ci/proofs $(TARGET)

models:
	@.ci/setup --quiet models
	@.ci/models $(TARGET)

faults:
	@.ci/setup --quiet models sanitizers
	@ONLY=$(ONLY) METHODS=$(METHODS) .ci/faults $(TARGET)

coverage:
	@.ci/setup --quiet coverage
	@TESTS="$(TESTS)" SEED=$(SEED) COUNT=$(COUNT) ANEW=$(ANEW) EXECUTE=$(EXECUTE) .ci/coverage $(TARGET)

SECONDS ?= 3600

fuzz-core:
	@.ci/setup --quiet sanitizers
	@.ci/core $(TARGET) $(SECONDS)

lint:
	@.ci/test lint

man: build
	$(SHIFTWORK) man --out-dir $(TARGET)/man
	$(SHIFTWORK) completions --out-dir $(TARGET)/completions

site: build
	@.ci/site $(SHIFTWORK) $(TARGET)

clean:
	$(CARGO) clean
	rm -rf demo
