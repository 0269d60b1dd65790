# profd: one non-recursive Makefile. Everything built lands below build/.
#   make            builds (never installs packages)        make check   installs what is missing, builds, tests
#   make deps       installs missing packages               make demo    installs, builds, profiles a small fleet
#   make lint bench fuzz install uninstall clean            V=1 shows the commands
VERSION := 0.1.0
PROTOCOL_ABI := 0

prefix ?= /usr/local
bindir ?= $(prefix)/bin
sbindir ?= $(prefix)/sbin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir ?= $(prefix)/share/man
docdir ?= $(prefix)/share/doc/profd
bashcompdir ?= $(prefix)/share/bash-completion/completions
zshcompdir ?= $(prefix)/share/zsh/vendor-completions
fishcompdir ?= $(prefix)/share/fish/vendor_completions.d
sysconfdir ?= /etc
# systemd reads /usr/lib for a system's prefixes too; a prefix of one's own gets nothing outside of it.
systemddir ?= $(if $(filter /usr /usr/local,$(prefix)),/usr/lib,$(prefix)/lib)
unitdir ?= $(systemddir)/systemd/system
sysusersdir ?= $(systemddir)/sysusers.d
tmpfilesdir ?= $(systemddir)/tmpfiles.d

CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
B ?= build/plain
Q := $(if $(V),,@)
SANITIZE ?=
WERROR ?= -Werror

# -ffp-contract=off: the reports' doubles must not depend on the machine's fused instructions.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
        -Wundef -Wvla -Wcast-qual -Wwrite-strings -Wimplicit-fallthrough $(WERROR)
OPT ?= -O2 -g
HARDEN := $(if $(SANITIZE),,-D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection)
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -I. -Idaemon -Iclient -I$(B)/gen $(OPT) -fPIC -ffp-contract=off -fvisibility=hidden \
             -fno-omit-frame-pointer -pthread -MMD -MP $(HARDEN) $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all) \
             -DPROFD_VERSION='"$(VERSION)"' -DSYSCONFDIR='"$(sysconfdir)"'
LDFLAGS_ALL = -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE),-Wl,-z,relro,-z,now) $(LDFLAGS)

# --- components: sources, libraries, and what each may link --------------------------------------------------
# "client" is the library, libprofd; "gprof" is the local command, "import" the files of other tools, "record" the sampling of
# a host, "profctl" the program.
COMPONENTS := proto core compat elf ingest query render store net base writer live requests web client gprof import record profctl \
              relay tier
DIR_proto := proto
DIR_client := client/lib
$(foreach r,gprof import record profctl,$(eval DIR_$(r) := client/$(r)))
$(foreach r,core compat elf ingest query render store net base writer live requests web relay tier,$(eval DIR_$(r) := daemon/$(r)))
$(foreach r,$(COMPONENTS),$(eval SRC_$(r) := $(wildcard $(DIR_$(r))/*.c)))
# The collector's interpreter of unwind entries, compiled like other code.
SRC_record += client/collect/cfi.c client/collect/frame_entry.c
SRC_server := $(filter-out daemon/main.c,$(wildcard daemon/*.c))
SRC_main := daemon/main.c
SRC_profctl := $(filter-out client/profctl/main.c,$(SRC_profctl))
SRC_relay := $(filter-out daemon/relay/main.c,$(SRC_relay))

NEEDS_proto := proto
NEEDS_core := core proto
NEEDS_compat := compat core proto
NEEDS_elf := elf core proto
NEEDS_store := store core proto
NEEDS_ingest := ingest store core proto
NEEDS_render := render compat core proto
NEEDS_query := query render compat store core proto
NEEDS_net := net core proto
NEEDS_client := client elf core proto
NEEDS_gprof := gprof compat elf core proto
NEEDS_import := import client elf core proto
NEEDS_record := record client elf core proto
NEEDS_profctl := profctl record gprof import client compat elf core proto
NEEDS_base := base net core proto
NEEDS_tier := tier writer base net store core proto
NEEDS_relay := relay base net core proto
NEEDS_server := server requests web live writer tier base query ingest render compat elf net store core proto
NEEDS_writer := writer base net store core proto
NEEDS_live := live writer base ingest net store core proto
NEEDS_web := web query render compat store core proto
NEEDS_requests := requests web tier live writer base query ingest render compat elf net store core proto

LIBS_proto := -lprotobuf-c -lzstd -lnettle
LIBS_core := -lm
LIBS_import := -ldeflate
LIBS_profctl := -ljansson -lelf -ldw
LIBS_elf := -ldw -lelf -lnettle -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic
LIBS_store := -lsqlite3 -lpcre2-8
LIBS_render := -ljansson
LIBS_relay := -lcurl -ljansson
LIBS_tier := -lcurl
LIBS_net := -levent_core -lnettle -ldeflate
LIBS_query := -lnettle -ldeflate
libs_of = $(foreach n,$(NEEDS_$(1)),$(LIBS_$(n)))
archives_of = $(foreach n,$(NEEDS_$(1)),$(B)/lib$(n).a)

# The collector is there for the machines that it has assembly for.
# Empty before a compiler is installed: what installs one runs make again.
COLLECT_MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
INSTALLS := deps demo demo-fleet check lint nspawn deb packages fuzz oracle oracle-glibc oracle-real insight collect-real regression
ifeq ($(COLLECT_MACHINE),)
ifneq ($(filter-out $(INSTALLS) clean uninstall,$(or $(MAKECMDGOALS),all)),)
$(error $(CC) is not installed. "make deps" installs what profd needs; so do "make demo" and "make check")
endif
endif
COLLECT = $(if $(wildcard client/collect/stub_$(COLLECT_MACHINE).S),$(B)/libprofd-collect.so $(B)/libprofd-collect.a)

.PHONY: all
all: $(B)/profd $(B)/profd-relay $(B)/profctl $(B)/libprofd.so $(B)/libprofd-static.a $(COLLECT)

# The first line of a recipe: no process for a folder that is there.
FOLDER = $(if $(wildcard $(@D)/.),,@mkdir -p $(@D))

# --- generated code (never in git; its own warning flags) -----------------------------------------------------
PBC := $(B)/gen/proto/profd.pb-c
$(PBC).c $(PBC).h &: proto/profd.proto
	@mkdir -p $(B)/gen
	$(Q)protoc-c --c_out=$(B)/gen proto/profd.proto
$(B)/gen/proto/profd.pb-c.o: $(PBC).c
	$(Q)$(CC) $(CFLAGS_ALL) -w -c $< -o $@
$(B)/proto/message.o $(B)/daemon/relay/batch.o: $(PBC).h
# SQL and static files become byte arrays.
$(B)/gen/embed/%.c: % tests/embed.sh
	$(FOLDER)
	$(Q)sh tests/embed.sh $< > $@
EMBED_store := $(filter-out schema/tier.sql,$(wildcard schema/*.sql))
EMBED_tier := schema/tier.sql
EMBED_query := schema/openapi.json
# Debian's node-dagre-layout, which lays out the call graph in the browser.
DAGRE ?= /usr/share/nodejs/dagre/dist/dagre.min.js
$(DAGRE):
	$(error $@ is missing. "make deps" installs what profd needs; DAGRE=FILE names another place)
$(B)/gen/embed/daemon/web/dagre.js.c: $(DAGRE) tests/embed.sh
	$(FOLDER)
	$(Q)sh tests/embed.sh $< daemon/web/dagre.js > $@
EMBED_web := $(filter-out %.c %.h,$(wildcard daemon/web/*)) daemon/web/dagre.js
.SECONDARY: $(patsubst %,$(B)/gen/embed/%.c,$(EMBED_store) $(EMBED_tier) $(EMBED_query) $(EMBED_web)) # they stay; missing objects are made

# PROGRESS=line: one line that changes; PROGRESS=none: nothing.
SAY_CC = $(if $(V),,$(if $(PROGRESS),$(if $(filter line,$(PROGRESS)),@printf '\r\033[K  CC %s' '$<'),$(info $()  CC $<)))
$(B)/%.o: %.c
	$(FOLDER)
	$(SAY_CC)
	$(Q)$(CC) $(CFLAGS_ALL) $(WARN) $(CFLAGS) -c $< -o $@
$(B)/gen/embed/%.o: $(B)/gen/embed/%.c
	$(Q)$(CC) $(CFLAGS_ALL) -w -c $< -o $@

define component
OBJ_$(1) := $$(SRC_$(1):%.c=$$(B)/%.o) $$(EMBED_$(1):%=$$(B)/gen/embed/%.o)
$$(B)/lib$(1).a: $$(OBJ_$(1)) $(if $(filter proto,$(1)),$$(B)/gen/proto/profd.pb-c.o)
	$$(FOLDER)
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
endef
$(foreach r,$(COMPONENTS) server,$(eval $(call component,$(r))))

$(B)/profd: $(SRC_main:%.c=$(B)/%.o) $(call archives_of,server)
	$(Q)$(CC) $(LDFLAGS_ALL) -pie -o $@ $< -Wl,--start-group $(call archives_of,server) -Wl,--end-group $(call libs_of,server)
$(B)/profd-relay: $(B)/daemon/relay/main.o $(call archives_of,relay)
	$(Q)$(CC) $(LDFLAGS_ALL) -pie -o $@ $< -Wl,--start-group $(call archives_of,relay) -Wl,--end-group -Wl,--as-needed $(call libs_of,relay)
$(B)/profctl: $(B)/client/profctl/main.o $(call archives_of,profctl)
	$(Q)$(CC) $(LDFLAGS_ALL) -pie -o $@ $< -Wl,--start-group $(call archives_of,profctl) -Wl,--end-group $(call libs_of,profctl)
$(B)/libprofd.so: $(call archives_of,client) client/libprofd.map
	$(Q)$(CC) $(LDFLAGS_ALL) -shared -Wl,--as-needed -Wl,-soname,libprofd.so.$(PROTOCOL_ABI) -Wl,--version-script=client/libprofd.map -o $@ \
	  -Wl,--whole-archive $(B)/libclient.a -Wl,--no-whole-archive -Wl,--start-group $(call archives_of,client) -Wl,--end-group $(call libs_of,client)
$(B)/libprofd-static.a: $(call archives_of,client)
	$(Q)rm -f $@ && (echo create $@; $(foreach a,$^,echo addlib $(a);) echo save; echo end) | $(AR) -M

# --- the collector: it runs inside calls of any program, so it uses no vector registers, no sanitizer, and only those
# functions of libc that are listed. All its code is in one section, so that a tick can tell whether it fell there.
SRC_collect := $(filter-out client/collect/interpose.c client/collect/own_exec.c,$(wildcard client/collect/*.c client/collect/*_$(COLLECT_MACHINE).S))
OBJ_collect := $(patsubst client/collect/%,$(B)/collect/%.o,$(basename $(SRC_collect)))
CFLAGS_collect = -std=c11 -D_GNU_SOURCE -I. $(OPT) -fPIC -fvisibility=hidden -fno-omit-frame-pointer -ftls-model=initial-exec \
                 -fno-builtin -mgeneral-regs-only -fno-stack-protector -U_FORTIFY_SOURCE -MMD -MP $(WARN) \
                 $(if $(findstring clang,$(CC)),,-fno-tree-loop-distribute-patterns -fno-reorder-functions) \
                 $(if $(filter aarch64,$(COLLECT_MACHINE)),-mno-outline-atomics)
OBJCOPY ?= objcopy
$(B)/collect/%.o: client/collect/%.c
	$(FOLDER)
	$(SAY_CC)
	$(Q)$(CC) $(CFLAGS_collect) $(CFLAGS) -c $< -o $@ && $(OBJCOPY) --rename-section .text=profd_collect_text $@
$(B)/collect/%.o: client/collect/%.S
	$(FOLDER)
	$(Q)$(CC) -I. -MMD -MP $(CFLAGS) -c $< -o $@
$(B)/collect/whole.o: $(OBJ_collect)
	$(Q)$(LD) -r -o $@ $^ && $(OBJCOPY) --localize-hidden $@
$(B)/libprofd-collect.so: $(OBJ_collect) $(B)/collect/interpose.o $(B)/collect/own_exec.o client/collect/libprofd-collect.map
	$(Q)$(CC) -shared -o $@ $(filter %.o,$^) -Wl,-soname,libprofd-collect.so.$(PROTOCOL_ABI) -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-z,noseparate-code \
	  -Wl,--version-script=client/collect/libprofd-collect.map $(LDFLAGS)
$(B)/libprofd-collect.a: $(B)/collect/whole.o
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/client/profctl/verb_run.o: CFLAGS_ALL += -DPROFD_LIBDIR='"$(libdir)"' -DPROFD_COLLECT_ABI='"$(PROTOCOL_ABI)"'

# --- tests --------------------------------------------------------------------------------------------------
# tests/{unit,property,contract,golden}/DIR/SUBJECT.c: Criterion, one program per kind and directory, linked with what
# that directory may link. tests/fuzz/fuzz_DIR_subject.c: libFuzzer targets.
# Under the address sanitizer tests/asan_fork.c is in each.
ASAN_FORK := $(if $(findstring address,$(SANITIZE)),$(B)/tests/asan_fork.o)
define suite
SRC_$(1)_$(2) := $$(filter-out tests/$(1)/$(2)/tsan_%,$$(wildcard tests/$(1)/$(2)/*.c))
ifneq ($$(SRC_$(1)_$(2)),)
TESTS += $$(B)/tests/$(1)-$(2)
$$(B)/tests/$(1)-$(2): $$(SRC_$(1)_$(2):%.c=$$(B)/%.o) $(ASAN_FORK) $$(call archives_of,$(3))
	$$(FOLDER)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) $(if $(ASAN_FORK),-static-libasan) -o $$@ $$(SRC_$(1)_$(2):%.c=$$(B)/%.o) $(ASAN_FORK) -Wl,--start-group $$(call archives_of,$(3)) -Wl,--end-group $$(call libs_of,$(3)) $$(SUITE_LIBS_$(1)_$(2)) -lcriterion -lm
endif
endef
SUITES := unit property contract golden
SUITE_LIBS_unit_elf := -lcapstone # the oracle of elf_x86.c; else it is loaded when it is needed
$(foreach s,$(SUITES),$(foreach r,$(COMPONENTS) server,$(eval $(call suite,$(s),$(r),$(r)))))
$(B)/tests/%.o: WARN += -Wno-pedantic -Wno-conversion -Wno-missing-prototypes
# Much of a build's time would go into optimizing assertions. What is tested keeps $(OPT) and $(HARDEN).
SUITE_OPT ?= -O0 -g1
$(foreach s,$(SUITES),$(eval $(B)/tests/$(s)/%.o: override OPT = $$(SUITE_OPT)))
$(foreach s,$(SUITES),$(eval $(B)/tests/$(s)/%.o: HARDEN :=))

FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_NAMES := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%)
fuzz_component = $(firstword $(subst _, ,$(1)))
define fuzz_target
$$(B)/tests/replay-$(1): $$(B)/tests/fuzz/fuzz_$(1).o $$(B)/tests/fuzz/replay.o $$(call archives_of,$$(call fuzz_component,$(1)))
	$$(FOLDER)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -o $$@ $$(B)/tests/fuzz/fuzz_$(1).o $$(B)/tests/fuzz/replay.o -Wl,--start-group $$(call archives_of,$$(call fuzz_component,$(1))) -Wl,--end-group $$(call libs_of,$$(call fuzz_component,$(1)))
$$(B)/tests/fuzz-$(1): $$(B)/tests/fuzz/fuzz_$(1).o $$(call archives_of,$$(call fuzz_component,$(1)))
	$$(FOLDER)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -fsanitize=fuzzer -o $$@ $$(B)/tests/fuzz/fuzz_$(1).o -Wl,--start-group $$(call archives_of,$$(call fuzz_component,$(1))) -Wl,--end-group $$(call libs_of,$$(call fuzz_component,$(1)))
endef
$(foreach f,$(FUZZ_NAMES),$(eval $(call fuzz_target,$(f))))

# tests/oracle/test_gprof_*.py want `profctl gprof`, with sanitizers too.
TESTS += $(B)/profctl

# Threads under the thread sanitizer: plain programs, because Criterion does not run there (DECISIONS 39).
define tsan_test
TSAN_TESTS += $$(B)/tests/tsan-$(1)
$$(B)/tests/tsan-$(1): $$(B)/tests/unit/$(2)/tsan_$(1).o $$(call archives_of,$(2))
	$$(FOLDER)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -o $$@ $$< -Wl,--start-group $$(call archives_of,$(2)) -Wl,--end-group $$(call libs_of,$(2))
endef
$(eval $(call tsan_test,work,net))
$(eval $(call tsan_test,writer,writer))

# The daemon's part for the collector's tests, and programs that count their own calls (tests/collect/*.py build those).
TESTS += $(if $(SANITIZE),,$(B)/tests/harvester)
$(B)/tests/harvester: $(B)/tests/collect/harvester.o $(call archives_of,proto)
	$(FOLDER)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(call archives_of,proto) -Wl,--end-group $(call libs_of,proto)

# Prints unwind tables and stacks walked by them (tests/record/*.py).
TESTS += $(if $(SANITIZE),,$(B)/tests/unwinder)
$(B)/tests/unwinder: $(B)/tests/record/unwinder.o $(call archives_of,record)
	$(FOLDER)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(call archives_of,record) -Wl,--end-group $(call libs_of,record)

# Compares samples of processes with the daemon's code (tests/insight/*.py).
TESTS += $(if $(SANITIZE),,$(B)/tests/resample)
$(B)/tests/resample: $(B)/tests/insight/resample.o $(call archives_of,elf)
	$(FOLDER)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(call archives_of,elf) -Wl,--end-group $(call libs_of,elf)

.PHONY: unit-%
# make unit-core: build and run all Criterion suites of one component.
unit-%:
	$(Q)$(MAKE) --no-print-directory B=$(B) $(foreach s,$(SUITES),$(if $(wildcard tests/$(s)/$*/*.c),$(B)/tests/$(s)-$*))
	$(Q)set -e; for t in $(foreach s,$(SUITES),$(if $(wildcard tests/$(s)/$*/*.c),$(B)/tests/$(s)-$*)); do $$t; done

# The bench's own programs (tests/bench/NAME*.c): the load generator, what makes its uploads, and bare SQLite beside it.
BENCH_PROGRAMS := load template bare_sqlite window rollup history
NEEDS_bench_load := proto
NEEDS_bench_window := store core proto
NEEDS_bench_rollup := store core proto
NEEDS_bench_history := store core proto
NEEDS_bench_template := client elf core proto
LIBS_bench_bare_sqlite := -lsqlite3
define bench_program
$$(B)/tests/$(1): $$(patsubst %.c,$$(B)/%.o,$$(wildcard tests/bench/$(1).c tests/bench/$(1)_*.c)) $$(foreach n,$$(NEEDS_bench_$(1)),$$(B)/lib$$(n).a)
	$$(FOLDER)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $$(foreach n,$$(NEEDS_bench_$(1)),$$(LIBS_$$(n))) $$(LIBS_bench_$(1))
endef
$(foreach p,$(BENCH_PROGRAMS),$(eval $(call bench_program,$(p))))
TESTS += $(if $(SANITIZE),,$(B)/tests/load) # tests/integration/flow.py floods with it

# The crash campaign (tests/crash): a client, a judge, and a library that makes the daemon's own system calls fail.
CRASH_SRC := $(filter-out tests/crash/fault.c,$(wildcard tests/crash/*.c))
$(B)/tests/crash-campaign: $(CRASH_SRC:%.c=$(B)/%.o) $(B)/daemon/store/sqlite_seal.o $(call archives_of,client)
	$(FOLDER)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(CRASH_SRC:%.c=$(B)/%.o) $(B)/daemon/store/sqlite_seal.o -Wl,--start-group $(call archives_of,client) -Wl,--end-group $(call libs_of,client) -lsqlite3
$(B)/tests/crash-fault.so: $(B)/tests/crash/fault.o
	$(Q)$(CC) $(LDFLAGS_ALL) -shared -o $@ $< -ldl
TESTS += $(if $(SANITIZE),,$(B)/tests/crash-campaign $(B)/tests/crash-fault.so)

# Tests that change a database by SQL load the layer that gives each page its checksum.
$(B)/tests/sealed.so: daemon/store/sqlite_seal.c daemon/store/sqlite.h $(call archives_of,proto)
	$(FOLDER)
	$(Q)$(CC) $(filter-out -fvisibility=hidden,$(CFLAGS_ALL)) $(LDFLAGS_ALL) -shared -o $@ $< $(call archives_of,proto) -lsqlite3
TESTS += $(if $(SANITIZE),,$(B)/tests/sealed.so)

# Simulated hosts of a fleet, thousands in a process.
$(B)/tests/simulate: $(patsubst %.c,$(B)/%.o,$(wildcard tests/fleet/*.c)) $(call archives_of,proto)
	$(FOLDER)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(call libs_of,proto) -lssl -lcrypto
TESTS += $(if $(SANITIZE),,$(B)/tests/simulate)

.PHONY: tests
tests: $(TESTS) $(if $(SANITIZE),$(FUZZ_NAMES:%=$(B)/tests/replay-%)) # after the last line that adds to TESTS

# All that `all tests` compiles, and the bench; nothing is linked.
SRC_tests := $(wildcard $(SUITES:%=tests/%/*/*.c) $(foreach d,fuzz crash fleet collect record bench,tests/$(d)/*.c))
.PHONY: objects
objects: $(foreach r,$(COMPONENTS) server,$(OBJ_$(r))) $(B)/gen/proto/profd.pb-c.o $(OBJ_collect) $(B)/collect/interpose.o $(B)/collect/own_exec.o \
         $(patsubst %.c,$(B)/%.o,$(SRC_main) $(foreach d,daemon/relay client/profctl,$(d)/main.c) $(SRC_tests))

# --- what the README tells people to type -------------------------------------------------------------------
JOBS := -j$(shell nproc 2>/dev/null || echo 2)
SUB = +$(Q)$(MAKE) --no-print-directory $(JOBS)
# The same with one line of progress.
SUB_LINE = +$(Q)echo "Compiling profd and profctl, a minute or two (V=1 shows the commands)"; \
  if [ -t 1 ]; then progress=line; end='\r\033[K'; else progress=none; end=; fi; \
  $(MAKE) --no-print-directory $(JOBS) PROGRESS=$$progress $(1) && printf "$$end"

.PHONY: deps demo demo-fleet check lint tsan bench bench-fleet fuzz crash fleet soak
deps:
	$(Q)sh tests/deps.sh build
demo:
	$(Q)sh tests/deps.sh demo
	$(call SUB_LINE,all)
	$(Q)PROFD_BUILD=$(B) bash tests/demo/demo.sh
# A centre behind nginx and six hosts: the report over all of them beside what the programs counted. RUNS of each program in each phase.
RUNS ?= 4
demo-fleet:
	$(Q)sh tests/deps.sh demo-fleet
	$(call SUB_LINE,all)
	$(Q)PROFD_BUILD=$(B) /usr/bin/python3 tests/demo/fleet.py $(RUNS)
# The tests run once more under the address, undefined-behaviour and thread sanitizers. run.sh compiles for these while the first tests run.
check:
	$(Q)sh tests/deps.sh check
	$(SUB) all tests
	$(Q)bash tests/run.sh $(B)
tsan: $(TSAN_TESTS)
lint:
	$(Q)sh tests/deps.sh lint
	$(SUB) all tests
	$(Q)/usr/bin/python3 tests/lint/structure.py --build $(B)
	$(Q)bash tests/lint/analyse.sh
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

# make deb: Debian packages in DEB, checked by lintian.
DEB ?= build/deb
.PHONY: deb
deb:
	$(Q)sh tests/deps.sh deb
	$(Q)PROFD_CC="$(CC)" sh systemd/debian/build.sh $(DEB) $(VERSION)
	$(Q)lintian --fail-on error,warning --tag-display-limit 0 $(DEB)/*.changes
	@ls $(DEB)/*.deb

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

# --- installation ---------------------------------------------------------------------------------------------
INSTALL ?= install
.PHONY: install install-collect uninstall
EXAMPLES := schema/prometheus-alerts.yaml systemd/nginx.conf systemd/haproxy.cfg
UNITS := $(wildcard systemd/*.service systemd/*.socket)
MANUALS := daemon/profd.8 daemon/profd-fleet.7 daemon/relay/profd-relay.8 daemon/profd.conf.5 client/profctl.1 $(wildcard client/man/*.1) \
           client/libprofd.3 proto/profd-protocol.7
manual_path = $(mandir)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))
define INSTALLED
$(sbindir)/profd $(sbindir)/profd-relay $(bindir)/profctl $(libdir)/libprofd.so $(libdir)/libprofd.so.$(PROTOCOL_ABI) \
$(libdir)/libprofd.so.$(PROTOCOL_ABI).$(VERSION) $(libdir)/libprofd.a $(libdir)/pkgconfig/libprofd.pc \
$(foreach f,.so .so.$(PROTOCOL_ABI) .so.$(PROTOCOL_ABI).$(VERSION) .a,$(libdir)/libprofd-collect$(f)) \
$(libdir)/pkgconfig/libprofd-collect.pc $(call manual_path,client/collect/profd-collect.7) \
$(includedir)/profd/profd.h $(includedir)/profd/proto/status.h $(addprefix $(unitdir)/,$(notdir $(UNITS))) \
$(sysusersdir)/profd.conf $(tmpfilesdir)/profd.conf $(foreach m,$(MANUALS),$(call manual_path,$(m))) \
$(docdir)/README.md $(docdir)/LICENSE $(addprefix $(docdir)/examples/,$(notdir $(EXAMPLES))) $(bashcompdir)/profctl $(zshcompdir)/_profctl $(fishcompdir)/profctl.fish
endef
package_config = sed -e 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|; s|@includedir@|$(includedir)|; s|@version@|$(VERSION)|'
install-collect: all
	$(INSTALL) -D -m 644 $(B)/libprofd-collect.so $(DESTDIR)$(libdir)/libprofd-collect.so.$(PROTOCOL_ABI).$(VERSION)
	ln -sf libprofd-collect.so.$(PROTOCOL_ABI).$(VERSION) $(DESTDIR)$(libdir)/libprofd-collect.so.$(PROTOCOL_ABI)
	ln -sf libprofd-collect.so.$(PROTOCOL_ABI) $(DESTDIR)$(libdir)/libprofd-collect.so
	$(INSTALL) -D -m 644 $(B)/libprofd-collect.a $(DESTDIR)$(libdir)/libprofd-collect.a
	$(INSTALL) -D -m 644 client/collect/profd-collect.7 $(DESTDIR)$(call manual_path,client/collect/profd-collect.7)
	$(INSTALL) -d $(DESTDIR)$(libdir)/pkgconfig
	$(package_config) client/collect/libprofd-collect.pc.in > $(DESTDIR)$(libdir)/pkgconfig/libprofd-collect.pc
install: all $(if $(COLLECT),install-collect)
	$(INSTALL) -d $(DESTDIR)$(sbindir)
	$(INSTALL) -m 755 $(B)/profd $(B)/profd-relay $(DESTDIR)$(sbindir)
	$(INSTALL) -D -m 755 $(B)/profctl $(DESTDIR)$(bindir)/profctl
	$(INSTALL) -D -m 644 $(B)/libprofd.so $(DESTDIR)$(libdir)/libprofd.so.$(PROTOCOL_ABI).$(VERSION)
	ln -sf libprofd.so.$(PROTOCOL_ABI).$(VERSION) $(DESTDIR)$(libdir)/libprofd.so.$(PROTOCOL_ABI)
	ln -sf libprofd.so.$(PROTOCOL_ABI) $(DESTDIR)$(libdir)/libprofd.so
	$(INSTALL) -D -m 644 $(B)/libprofd-static.a $(DESTDIR)$(libdir)/libprofd.a
	$(INSTALL) -D -m 644 client/profd.h $(DESTDIR)$(includedir)/profd/profd.h
	$(INSTALL) -D -m 644 proto/status.h $(DESTDIR)$(includedir)/profd/proto/status.h
	$(INSTALL) -d $(DESTDIR)$(libdir)/pkgconfig
	$(package_config) client/libprofd.pc.in > $(DESTDIR)$(libdir)/pkgconfig/libprofd.pc
	$(foreach m,$(MANUALS),$(INSTALL) -D -m 644 $(m) $(DESTDIR)$(call manual_path,$(m)) &&) true
	$(INSTALL) -d $(DESTDIR)$(unitdir)
	$(foreach u,$(UNITS),sed 's|/usr/sbin/profd|$(sbindir)/profd|; s|/usr/bin/profctl|$(bindir)/profctl|' $(u) > $(DESTDIR)$(unitdir)/$(notdir $(u)) &&) true
	$(INSTALL) -D -m 644 systemd/profd.sysusers $(DESTDIR)$(sysusersdir)/profd.conf
	$(INSTALL) -D -m 644 systemd/profd.tmpfiles $(DESTDIR)$(tmpfilesdir)/profd.conf
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(docdir) README.md LICENSE
	$(INSTALL) -D -m 644 -t $(DESTDIR)$(docdir)/examples $(EXAMPLES)
	$(INSTALL) -d $(addprefix $(DESTDIR),$(bashcompdir) $(zshcompdir) $(fishcompdir))
	$(B)/profctl completion bash > $(DESTDIR)$(bashcompdir)/profctl
	$(B)/profctl completion zsh > $(DESTDIR)$(zshcompdir)/_profctl
	$(B)/profctl completion fish > $(DESTDIR)$(fishcompdir)/profctl.fish
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))

.PHONY: clean
clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
