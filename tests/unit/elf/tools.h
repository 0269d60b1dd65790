/* Building and reading small programs in a private folder, for the tests of elf/. */
#ifndef TESTS_UNIT_ELF_TOOLS_H
#define TESTS_UNIT_ELF_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/object.h"

/* The test's own folder; removed when the test process ends. */
const char *tools_dir(void);
/* Writes a file there. */
void tools_write(const char *name, const char *text);
/* Runs a shell command there; the test fails unless it succeeds. */
void tools_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Runs one and returns its output (malloc'd). */
char *tools_output(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Opens a file of that folder (or an absolute path) for reading. */
int tools_open(const char *name);

/* elf_read with everything on; the test fails unless it is OK. The arena lives as long as the test. */
struct object *tools_read(const char *name, const char *debug);

/* The one symbol of that name; the test fails if there is none. */
const struct object_symbol *tools_symbol(const struct object *o, const char *name);
/* Number of arcs of the kind between two functions, by their symbols' extents. */
unsigned tools_arcs(const struct object *o, const char *from, const char *to, enum object_arc_kind kind);
/* Number of arcs of the kind from a function to an import. */
unsigned tools_imports(const struct object *o, const char *from, const char *import, enum object_arc_kind kind);
/* Calls (or jumps) in `objdump -d` whose target is exactly <symbol>, in the whole file. */
unsigned tools_objdump_count(const char *objdump, const char *file, const char *mnemonics, const char *symbol);

#endif
