# Campaigns, oracles and measurements: what runs longer than make check, each with its length as a parameter.
# make fuzz FUZZ_TIME=60: runs each target for FUZZ_TIME seconds, with clang's libFuzzer.
FUZZ_TIME ?= 60
fuzz:
	$(Q)sh tests/deps.sh check
	$(SUB) B=$(B)-fuzz CC=clang SANITIZE=address,undefined,fuzzer-no-link OPT="-O1 -g" $(FUZZ_NAMES:%=$(B)-fuzz/tests/fuzz-%)
	$(Q)set -e; for f in $(FUZZ_NAMES); do echo "== $$f"; mkdir -p $(B)-fuzz/corpus/$$f; \
	  $(B)-fuzz/tests/fuzz-$$f -max_total_time=$(FUZZ_TIME) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	    -artifact_prefix=$(abspath $(B)-fuzz)/ $(B)-fuzz/corpus/$$f tests/fuzz/corpus/$$f 2>&1 | grep -E 'ERROR|SUMMARY|stat::(number|average)|artifact' ; done
# make oracle N=20000: random cases against the installed gprof, in two processes, and all options with all programs of
# tests/programs. FIRST is the first seed.
.PHONY: oracle oracle-glibc
N ?= 2000
FIRST ?= 1000000
oracle:
	$(Q)sh tests/deps.sh check
	$(SUB) $(B)/profctl
	$(Q)half=$$(($(N) / 2)); /usr/bin/python3 tests/oracle/test_gprof_random.py $$half $(FIRST) $(B)/profctl > $(B)/oracle-1.tap & first=$$!; \
	  half=$$(($(N) - $(N) / 2)); /usr/bin/python3 tests/oracle/test_gprof_random.py $$half $$(($(FIRST) + $(N))) $(B)/profctl > $(B)/oracle-2.tap; \
	  second=$$?; wait $$first; first=$$?; cat $(B)/oracle-1.tap $(B)/oracle-2.tap | grep -Ev '^ok |^# option|^1[.][.]'; \
	  sed -n 's/^# option \(.*\): \([0-9]*\) cases, \([0-9]*\) identical$$/\1\t\2\t\3/p' $(B)/oracle-1.tap $(B)/oracle-2.tap | LC_ALL=C sort | \
	    awk -F '\t' 'function out() { if (n) printf "%-24s %7d cases, %7d identical\n", n, c, i } $$1 != n { out(); n = $$1; c = i = 0 } \
	      { c += $$2; i += $$3 } END { out() }'; \
	  echo "$(N) random cases: $$(grep -h '^# seed' $(B)/oracle-1.tap $(B)/oracle-2.tap | wc -l) differences"; [ $$first = 0 ] && [ $$second = 0 ]
	$(Q)/usr/bin/python3 tests/oracle/test_gprof_real.py $(B)/profctl > $(B)/oracle-3.tap || { grep -A20 '^not ok' $(B)/oracle-3.tap; false; }
# glibc's gmon tests from its source package (network), with profctl gprof in gprof's place.
oracle-glibc:
	$(Q)sh tests/deps.sh check
	$(SUB) $(B)/profctl
	$(Q)/usr/bin/python3 tests/oracle/gprof_glibc.py $(B)/profctl
# make crash N=10000 CUTS=500 EIO=50: profd killed, its disk cut off and failing, under a stream of uploads; what it acknowledged must
# be there exactly once. STEP: each so-many-th operation on the database fails; SEED repeats a run.
CUTS ?= 50
EIO ?= 5
STEP ?= 7
crash: all $(B)/tests/crash-campaign $(B)/tests/crash-fault.so
	$(Q)$(B)/tests/crash-campaign $(B)/profd $(B)/tests/crash-fault.so kills=$(N) cuts=$(CUTS) eio=$(EIO) points=$(STEP) $(if $(SEED),seed=$(SEED))
# make fleet N=10000 HOSTS=50 RESTORES=500 PARTITIONS=1000: hosts, relays, nginx and centre are killed, restored from backups and cut
# off while programs upload. SEED repeats a run. Then the negative controls: what its judge must find.
# make fleet ENGINE=clickhouse N=400 (40 unless it is said): a centre with past days on two shards of ClickHouse, and the servers, are killed.
HOSTS ?= 3
RESTORES ?= 30
PARTITIONS ?= 10
FLEET_KILLS = $(if $(and $(ENGINE),$(filter file,$(origin N))),40,$(N))
FLEET_SEED = $(or $(SEED),$$(shuf -i 1-999999 -n 1))
fleet: all
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/fleet/fleet.py kills=$(FLEET_KILLS) hosts=$(HOSTS) restores=$(RESTORES) \
	  partitions=$(PARTITIONS) seed=$(FLEET_SEED) engine=$(ENGINE)
	$(if $(ENGINE),,$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/fleet/controls.py)
# make bench-fleet: 10,000 simulated hosts over HTTPS through nginx, uploads a second and a herd; what relaying costs a host.
bench-fleet: all $(B)/tests/simulate
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/fleet/herd.py hosts=10000 connections=256 seconds=60
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/fleet/overhead.py seconds=10 rounds=3
# make rounds ROUNDS=20: the tests with random cases try 20 times as many as in make check.
ROUNDS ?= 20
.PHONY: rounds
rounds: $(TESTS)
	$(Q)set -e; for t in $(filter $(B)/tests/unit-% $(B)/tests/property-%,$(TESTS)); do PROFD_ROUNDS=$(ROUNDS) $$t; done
# make soak T=600: everything at once, for T seconds.
T ?= 60
soak: all $(B)/tests/crash-campaign $(B)/tests/crash-fault.so
	$(Q)$(B)/tests/crash-campaign $(B)/profd $(B)/tests/crash-fault.so soak=$(T) $(if $(SEED),seed=$(SEED))
# make bench: all figures, and the list of them in profd(8). Into the page: python3 tests/bench/table.py build/plain/bench.txt daemon/profd.8
bench: all $(BENCH_PROGRAMS:%=$(B)/tests/%)
	$(Q)bash tests/bench/bench.sh $(B)
# make bench-tier: a centre with past days in ClickHouse beside one without, about ten minutes; tests/bench/bench_tier.py.
.PHONY: bench-tier
bench-tier: all $(B)/tests/history $(B)/tests/load $(B)/tests/template
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/bench/bench_tier.py $(SIZES)
# make bench-leave-out: CPU time of Debian's Lua that goes into counting, before and after its cheap hot functions are left out.
.PHONY: bench-leave-out
bench-leave-out: all
	$(Q)bash tests/oracle/packages.sh build/oracle-real lua5.4
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/bench/bench_leave_out.py build/oracle-real
# make attribution RUNS=20: seconds that land on the wrong caller, measured from stacks and by gprof's rule, in that many runs of 2,000 ticks
# of a program that knows the CPU time of its paths.
RUNS ?= 20
.PHONY: attribution
attribution: all
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/bench/attribution.py $(RUNS)
# make oracle-real PACKAGES="lua5.4 sed": programs of Debian source packages built with -pg, our listings beside gprof's. What
# cannot be fetched or built is a failed point there.
PACKAGES ?=
.PHONY: oracle-real
oracle-real:
	$(Q)sh tests/deps.sh check
	$(SUB) all
	$(Q)bash tests/oracle/packages.sh build/oracle-real $(PACKAGES) || true
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/oracle/packages.py build/oracle-real $(PACKAGES)

# make bins TICKS=2000: self times of a gmon.out beside exact addresses of the same ticks, and gprof's, on fib, calc and three
# Debian packages.
TICKS ?= 2000
.PHONY: bins
bins:
	$(Q)sh tests/deps.sh check
	$(SUB) all
	$(Q)bash tests/oracle/packages.sh build/oracle-real lua5.4 sqlite3 sed || true
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/oracle/bins.py --ticks $(TICKS) --packages build/oracle-real

# make insight PROCESSES=500 SPLITS=3000 COMPARISONS=1020 POWER=60: error rates and power of profctl diff, on profiles of Lua and
# SQLite that are gathered once, and beside pprof and perf diff; profctl callers beside callgrind; profctl never-called beside gcov,
# cppcheck included. INSIGHT keeps profiles and raw results.
INSIGHT ?= build/insight
PROCESSES ?= 500
SPLITS ?= 3000
COMPARISONS ?= 1020
POWER ?= 60
.PHONY: insight
insight:
	$(Q)sh tests/deps.sh check
	$(SUB) all $(B)/tests/resample
	$(Q)bash tests/oracle/packages.sh build/oracle-real lua5.4 sqlite3 cppcheck || true
	$(Q)export PROFD_BUILD=$(B); failed=0; python=/usr/bin/python3; \
	  $$python tests/insight/insight.py $(INSIGHT) build/oracle-real processes=$(PROCESSES) splits=$(SPLITS) \
	    comparisons=$(COMPARISONS) power=$(POWER) || failed=1; \
	  $$python tests/bench/bench_diff.py || failed=1; \
	  $$python tests/insight/callers.py build/oracle-real || failed=1; \
	  $$python tests/insight/dead.py $(INSIGHT)/dead build/oracle-real || failed=1; \
	  exit $$failed

# make regression PAIRS=150: a regression between two versions of a Debian package, from the verdict of profctl diff to the line;
# prints the commands and what they print. REGRESSION keeps sources and programs.
REGRESSION ?= build/regression
PAIRS ?= 150
.PHONY: regression
regression:
	$(Q)sh tests/deps.sh check
	$(SUB) all
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/insight/regression.py $(REGRESSION) runs=$(PAIRS)

# make ci-trial SEEDED=40 EQUAL=200: schema/ci/profd-compare.sh on Debian's bzip2 with a regression of 10 %, and on equal trees; how
# often it reports one. RUNS processes of each, if it is said; a comparison takes 20 seconds.
SEEDED ?= 40
EQUAL ?= 200
.PHONY: ci-trial
ci-trial:
	$(Q)sh tests/deps.sh check
	$(SUB) all
	$(Q)bash tests/oracle/packages.sh build/oracle-real bzip2
	$(Q)$(if $(filter command line,$(origin RUNS)),RUNS=$(RUNS)) PROFD_BUILD=$(B) /usr/bin/python3 tests/insight/ci.py build/ci-trial \
	  build/oracle-real/bzip2/tree seeded=$(SEEDED) equal=$(EQUAL)

# make collect-real: programs of Debian source packages, with plugins and threads, under the collector; every call count beside
# callgrind's.
COLLECT_REAL := lua5.4 lua-lpeg bzip2 pbzip2 mawk byacc gzip sed sqlite3 libzstd
.PHONY: collect-real
collect-real:
	$(Q)sh tests/deps.sh check
	$(SUB) all $(B)/tests/harvester
	$(Q)bash tests/oracle/packages.sh build/oracle-real $(COLLECT_REAL) || true
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/collect/real.py build/oracle-real

# make nspawn NSPAWN_ROOT=dir: the installed service in a booted systemd-nspawn container, with its whole sandbox. The
# directory is made by debootstrap if it does not exist, and is not changed. Needs root.
NSPAWN_ROOT ?= build/nspawn-root
.PHONY: nspawn
nspawn:
	$(Q)sh tests/deps.sh nspawn
	$(SUB) all
	$(Q)sh tests/nspawn/root.sh $(NSPAWN_ROOT)
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/nspawn/nspawn.py $(NSPAWN_ROOT)

# make image-check: the images and the pods of systemd/kubernetes, run by crun; tests/nspawn/pods.py. Needs root.
.PHONY: image-check
image-check: image
	$(Q)sh tests/deps.sh image-check
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/nspawn/pods.py build/image

# make deb: Debian packages in DEB, checked by lintian.
DEB ?= build/deb
.PHONY: deb
deb:
	$(Q)sh tests/deps.sh deb
	$(Q)PROFD_CC="$(CC)" sh systemd/debian/build.sh $(DEB) $(VERSION)
	$(Q)lintian --fail-on error,warning --tag-display-limit 0 $(DEB)/*.changes
	@ls $(DEB)/*.deb

# make deb-arm64: the packages for both architectures; those for arm64 are cross-built in DEB-arm64, and run by qemu's user emulation.
.PHONY: deb-arm64
deb-arm64: deb
	$(Q)sh tests/deps.sh check
	$(Q)sh tests/sysroot.sh arm64 $(AARCH64)/sysroot
	$(Q)PROFD_SYSROOT=$(abspath $(AARCH64))/sysroot PROFD_NATIVE=$(abspath $(DEB))/tree/obj/profctl sh systemd/debian/build.sh $(DEB)-arm64 $(VERSION) arm64
	$(Q)lintian --fail-on error,warning --tag-display-limit 0 $(DEB)-arm64/*.changes
	$(Q)/usr/bin/python3 tests/collect/aarch64_packages.py $(DEB)-arm64 $(AARCH64_ROOT)
	@ls $(DEB)-arm64/*.deb

# make check-aarch64: everything, built for AArch64 with Debian's cross compiler and libraries, which lie below AARCH64. Under qemu's
# user emulation: the collector's suite, and scripts whose profd and profctl are emulated; their answers are those of
# x86-64. The emulator (7.2) lacks seccomp, Landlock, ptrace, perf_event_open, process_vm_readv and rseq, and executes no AArch64
# program: workers of this build have no sandbox, as under a sanitizer, and profctl run and record cannot be tried.
AARCH64 ?= build/aarch64
AARCH64_ROOT = $(abspath $(AARCH64))/sysroot/root
AARCH64_MAKE = B=$(AARCH64)/plain CC="aarch64-linux-gnu-gcc --sysroot=$(AARCH64_ROOT)" LD=aarch64-linux-gnu-ld AR=aarch64-linux-gnu-ar \
  OBJCOPY=aarch64-linux-gnu-objcopy CFLAGS=-D__SANITIZE_THREAD__=1 LDFLAGS=-L$(AARCH64_ROOT)/usr/lib/gcc/aarch64-linux-gnu/12
AARCH64_SCRIPTS ?= released gprof_names diff_golden
.PHONY: check-aarch64
check-aarch64:
	$(Q)sh tests/deps.sh check
	$(Q)sh tests/sysroot.sh arm64 $(AARCH64)/sysroot
	$(SUB) $(AARCH64_MAKE) all
	$(SUB) all $(B)/tests/harvester $(B)/tests/sealed.so
	@mkdir -p $(AARCH64)/emulated
	$(Q)for p in profd profctl profd-relay; do printf '#!/bin/sh\nexec qemu-aarch64 -L %s %s "$$@"\n' $(AARCH64_ROOT) \
	  $(abspath $(AARCH64))/plain/$$p > $(AARCH64)/emulated/$$p && chmod +x $(AARCH64)/emulated/$$p; done
	$(Q)bad=0; /usr/bin/python3 tests/collect/aarch64.py || bad=1; \
	  for t in $(AARCH64_SCRIPTS); do echo "== $$t.py"; PROFD_BUILD=$(AARCH64)/emulated /usr/bin/python3 tests/integration/$$t.py || bad=1; done; \
	  exit $$bad

# make packages: profd-fleet(7), walked to the letter with these packages in three containers; then they are upgraded under
# load, removed and purged. OLD_DEB: a directory with packages of an earlier version, which are installed first; without it
# they are those of make deb with a lower version. Needs root and a Debian mirror.
OLD_DEB ?=
.PHONY: packages
packages: deb
	$(Q)sh tests/deps.sh nspawn
	$(SUB) all
	$(Q)sh tests/nspawn/root.sh $(NSPAWN_ROOT)
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/nspawn/fleet_manual.py $(NSPAWN_ROOT) $(DEB) $(OLD_DEB)
