# How the tests are compiled and linked: suites of Criterion, fuzz targets, and the programs that scripts run.
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
# What these test is the same under sanitizers, where `make check` runs them; the other suites try more without.
SANITIZED_ONLY := $(B)/tests/contract-store $(addprefix $(B)/tests/unit-,base client compat import live profctl query record \
                  relay render requests tier writer)
SUITE_LIBS_unit_elf := -lcapstone # the oracle of elf_x86.c; else it is loaded when it is needed
$(foreach s,$(SUITES),$(foreach r,$(COMPONENTS) server,$(eval $(call suite,$(s),$(r),$(r)))))
$(B)/tests/%.o: WARN += -Wno-pedantic -Wno-conversion -Wno-missing-prototypes
# Much of a build's time would go into optimizing assertions. What is tested keeps $(OPT) and $(HARDEN).
SUITE_OPT ?= -O0 -g1
# A suite's own accesses are checked, too. They read memory that the tested code returned, which may be freed, and a
# suite compiles inline functions of the headers. gcc calls a function for each access: code in place of that takes
# longer to compile.
SUITE_SANITIZE := $(SANITIZE)$(if $(findstring address,$(SANITIZE)),$(if $(findstring clang,$(CC)),, --param asan-instrumentation-with-call-threshold=0 -fno-sanitize=null))
$(foreach s,$(SUITES),$(eval $(B)/tests/$(s)/%.o: override OPT = $$(SUITE_OPT)))
$(foreach s,$(SUITES),$(eval $(B)/tests/$(s)/%.o: override SANITIZE = $$(SUITE_SANITIZE)))
$(foreach s,$(SUITES),$(eval $(B)/tests/$(s)/%.o: HARDEN :=))

FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_NAMES := $(FUZZ_SRC:tests/fuzz/fuzz_%.c=%)
fuzz_component = $(firstword $(subst _, ,$(1)))
define fuzz_target
$$(B)/tests/replay-$(1): $$(B)/tests/fuzz/fuzz_$(1).o $$(B)/tests/fuzz/replay.o $(LEAKS) $$(call archives_of,$$(call fuzz_component,$(1)))
	$$(FOLDER)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -o $$@ $$(B)/tests/fuzz/fuzz_$(1).o $$(B)/tests/fuzz/replay.o $(LEAKS) -Wl,--start-group $$(call archives_of,$$(call fuzz_component,$(1))) -Wl,--end-group $$(call libs_of,$$(call fuzz_component,$(1)))
$$(B)/tests/fuzz-$(1): $$(B)/tests/fuzz/fuzz_$(1).o $$(call archives_of,$$(call fuzz_component,$(1)))
	$$(FOLDER)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -fsanitize=fuzzer -o $$@ $$(B)/tests/fuzz/fuzz_$(1).o -Wl,--start-group $$(call archives_of,$$(call fuzz_component,$(1))) -Wl,--end-group $$(call libs_of,$$(call fuzz_component,$(1)))
endef
$(foreach f,$(FUZZ_NAMES),$(eval $(call fuzz_target,$(f))))

# tests/oracle/test_gprof_*.py want `profctl gprof`, with sanitizers too.
TESTS += $(B)/profctl

# Threads under the thread sanitizer: plain programs, because Criterion does not run there.
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
$(B)/tests/sealed.so: daemon/store/sqlite_seal.c daemon/store/store_internal.h $(call archives_of,proto)
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
objects: $(foreach r,$(COMPONENTS) server,$(OBJ_$(r))) $(PBC:=.o) $(OBJ_collect) $(B)/collect/interpose.o $(B)/collect/own_exec.o \
         $(patsubst %.c,$(B)/%.o,$(SRC_main) daemon/relay/profd_relay.c client/profctl/profctl_main.c $(SRC_tests))
