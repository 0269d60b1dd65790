# profd: one non-recursive make. Everything built lands below build/. V=1 shows the commands.
#   here                  all (builds, never installs packages), deps, demo, demo-fleet, check, lint, dist, clean
#   tests/build.mk        how suites, fuzz targets and helpers of tests are linked; tests, tsan, objects, unit-DIRECTORY
#   tests/campaigns.mk    longer than check: fuzz, rounds, crash, soak, fleet, oracle…, insight, bench…, nspawn, deb
#   systemd/install.mk    install, uninstall, image, kubernetes
VERSION := 1.0.0
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
SRC_server := $(filter-out daemon/daemon.c,$(wildcard daemon/*.c))
SRC_main := daemon/daemon.c
SRC_profctl := $(filter-out client/profctl/profctl_main.c,$(SRC_profctl))
SRC_relay := $(filter-out daemon/relay/profd_relay.c,$(SRC_relay))

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

LIBS_proto := -lprotobuf-c -lzstd -lnettle -ljansson -ldeflate
LIBS_core := -lm
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
INSTALLS := deps dist demo demo-fleet check lint nspawn deb deb-arm64 packages image kubernetes image-check fuzz oracle oracle-glibc oracle-real insight \
            collect-real regression ci-trial check-aarch64
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
# Each proto/X.proto becomes X.pb-c.c and X.pb-c.h, which belong to the library of proto.
PBC := $(patsubst %.proto,$(B)/gen/%.pb-c,$(wildcard proto/*.proto))
$(B)/gen/proto/%.pb-c.c $(B)/gen/proto/%.pb-c.h: proto/%.proto
	@mkdir -p $(B)/gen
	$(Q)protoc-c --c_out=$(B)/gen $<
$(PBC:=.o): %.o: %.c | $(PBC:=.h)
	$(Q)$(CC) $(CFLAGS_ALL) -w -c $< -o $@
# SQL and static files become byte arrays.
$(B)/gen/embed/%.c: % tests/embed.sh
	$(FOLDER)
	$(Q)sh tests/embed.sh $< > $@
EMBED_store := $(filter-out schema/tier.sql,$(wildcard schema/*.sql))
EMBED_tier := schema/tier.sql
EMBED_query := schema/openapi.json
EMBED_profctl := $(addprefix client/profctl/,help_examples.txt completion.bash completion.zsh)
# Debian's node-dagre-layout, which lays out the call graph in the browser.
DAGRE ?= /usr/share/nodejs/dagre/dist/dagre.min.js
$(DAGRE):
	$(error $@ is missing. "make deps" installs what profd needs; DAGRE=FILE names another place)
$(B)/gen/embed/daemon/web/dagre.js.c: $(DAGRE) tests/embed.sh
	$(FOLDER)
	$(Q)sh tests/embed.sh $< daemon/web/dagre.js > $@
# The modules of the dashboard become one file: a browser asks once.
WEB_MODULES := $(filter-out daemon/web/theme.js,$(wildcard daemon/web/*.js))
ESBUILD ?= esbuild
$(B)/gen/app.js: $(WEB_MODULES)
	$(FOLDER)
	$(Q)$(ESBUILD) daemon/web/app.js --bundle --minify --format=esm --target=es2022 --charset=utf8 \
	  --external:./dagre.js --log-level=warning --outfile=$@ \
	  || { echo "$(ESBUILD) failed. \"make deps\" installs what profd needs; ESBUILD=FILE names another place" >&2; exit 1; }
$(B)/gen/embed/daemon/web/app.js.c: $(B)/gen/app.js tests/embed.sh
	$(FOLDER)
	$(Q)sh tests/embed.sh $< daemon/web/app.js > $@
EMBED_web := $(addprefix daemon/web/,index.html style.css icon.svg theme.js app.js dagre.js)
.SECONDARY: $(patsubst %,$(B)/gen/embed/%.c,$(EMBED_store) $(EMBED_tier) $(EMBED_query) $(EMBED_web) $(EMBED_profctl)) # they stay; missing objects are made

# PROGRESS=line: one line that changes; PROGRESS=none: nothing.
SAY_CC = $(if $(V),,$(if $(PROGRESS),$(if $(filter line,$(PROGRESS)),@printf '\r\033[K  CC %s' '$<'),$(info $()  CC $<)))
# Generated headers come first. Dependency files name those that a source includes after the first build.
$(B)/%.o: %.c | $(PBC:=.h)
	$(FOLDER)
	$(SAY_CC)
	$(Q)$(CC) $(CFLAGS_ALL) $(WARN) $(CFLAGS) -c $< -o $@
# Files with the version are compiled again after another one is set above.
$(patsubst %.c,$(B)/%.o,$(shell grep -rl --include=*.c PROFD_VERSION daemon client)): Makefile
$(B)/gen/embed/%.o: $(B)/gen/embed/%.c
	$(Q)$(CC) $(CFLAGS_ALL) -w -c $< -o $@

define component
OBJ_$(1) := $$(SRC_$(1):%.c=$$(B)/%.o) $$(EMBED_$(1):%=$$(B)/gen/embed/%.o)
$$(B)/lib$(1).a: $$(OBJ_$(1)) $(if $(filter proto,$(1)),$(PBC:=.o))
	$$(FOLDER)
	$$(Q)rm -f $$@ && $$(AR) rcs $$@ $$^
endef
$(foreach r,$(COMPONENTS) server,$(eval $(call component,$(r))))

# Programs under the address sanitizer are linked with tests/asan_leaks.c.
LEAKS := $(if $(findstring address,$(SANITIZE)),$(if $(findstring clang,$(CC)),,$(B)/tests/asan_leaks.o))
$(B)/profd: $(SRC_main:%.c=$(B)/%.o) $(LEAKS) $(call archives_of,server)
	$(Q)$(CC) $(LDFLAGS_ALL) -pie -o $@ $< $(LEAKS) -Wl,--start-group $(call archives_of,server) -Wl,--end-group $(call libs_of,server)
$(B)/profd-relay: $(B)/daemon/relay/profd_relay.o $(LEAKS) $(call archives_of,relay)
	$(Q)$(CC) $(LDFLAGS_ALL) -pie -o $@ $< $(LEAKS) -Wl,--start-group $(call archives_of,relay) -Wl,--end-group -Wl,--as-needed $(call libs_of,relay)
$(B)/profctl: $(B)/client/profctl/profctl_main.o $(LEAKS) $(call archives_of,profctl)
	$(Q)$(CC) $(LDFLAGS_ALL) -pie -o $@ $< $(LEAKS) -Wl,--start-group $(call archives_of,profctl) -Wl,--end-group $(call libs_of,profctl)
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

include tests/build.mk

# --- what the README tells people to type; SUB runs make once more, after packages were installed ---------------
JOBS := -j$(shell nproc 2>/dev/null || echo 2)
SUB = +$(Q)$(MAKE) --no-print-directory $(JOBS)
# The same with one line of progress.
SUB_LINE = +$(Q)echo "Compiling profd and profctl, a minute or two (V=1 shows the commands)"; \
  if [ -t 1 ]; then progress=line; end='\r\033[K'; else progress=none; end=; fi; \
  $(MAKE) --no-print-directory $(JOBS) PROGRESS=$$progress $(1) && printf "$$end"

.PHONY: deps demo demo-fleet check check-rest lint tsan bench bench-fleet fuzz crash fleet soak
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
# Most tests run under the address, undefined-behaviour and thread sanitizers. run.sh compiles for these while the others run.
# What the tests need is installed while the programs are compiled.
check:
	$(Q)sh tests/deps.sh check-first
	$(SUB) -j$$(($$(nproc) + 1)) all check-rest
	$(SUB) $(filter-out $(SANITIZED_ONLY),$(TESTS))
	$(Q)bash tests/run.sh $(B)
check-rest:
	$(Q)sh tests/deps.sh check
tsan: $(TSAN_TESTS)
lint:
	$(Q)sh tests/deps.sh lint
	$(SUB) all tests
	$(Q)/usr/bin/python3 tests/lint/structure.py --build $(B)
	$(Q)bash tests/lint/analyse.sh

include tests/campaigns.mk
include systemd/install.mk

# make dist: build/profd-VERSION.tar.gz, the same bytes from the same sources, in git or in an unpacked release.
DIST := build/profd-$(VERSION).tar.gz
.PHONY: dist
dist:
	@mkdir -p build
	$(Q)$(if $(wildcard .git),git ls-files -c,find . -path ./build -prune -o -name __pycache__ -prune -o -type f -printf '%P\n') > build/dist.list
	$(Q)LC_ALL=C sort -o build/dist.list build/dist.list
	$(Q)tar -cf $(DIST:.gz=) --format=ustar --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
	  --transform='s|^|profd-$(VERSION)/|' --mtime="$$(sed -n '/^ -- /{s/.*>  //p;q}' systemd/debian/changelog)" -T build/dist.list
	$(Q)gzip -9nf $(DIST:.gz=)
	@ls -l $(DIST)

.PHONY: clean
clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
