/* What the file of an executable says about the gmon.out that the program writes. */
#ifndef PROFD_ELF_ELF_GMON_H
#define PROFD_ELF_ELF_GMON_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

struct elf_gmon {
    bool knows;    /* the names of its functions are known: it has .symtab, or is linked dynamically */
    bool linked;   /* one of these names starts glibc's gmon or counts calls, so it was linked with -pg; false if the
                      names are not known */
    bool stripped; /* neither it nor the debug file has .symtab */
    /* The range of glibc's gmon, for a stripped executable. It begins at low, the start of the first PT_LOAD. It ends
     * at etext, which is one of ends: linkers put it at the end of a section of code at or behind .text, or of an
     * executable segment. Ends are in the order of the sections, then of the segments. No ends: unknown. */
    uint64_t low;
    uint64_t *ends;
    uint32_t end_count;
};

/* Reads the facts above. debug: −1 or the separate debug file. The array of ends is in the arena. Fails as elf_read
 * does. O(symbols + sections). */
enum profd_status elf_read_gmon(int executable, int debug, struct arena *a, struct elf_gmon *out,
                                struct profd_error *e);

/* Returns whether the name is a function that -pg calls in order to count (mcount, __fentry__, in every spelling), or
 * the code that a linker puts on the way to it (__mcount_veneer). */
bool elf_gmon_counts(const char *name);

#endif
