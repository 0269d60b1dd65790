/* What the file of an executable says about the gmon.out that the program writes. */
#ifndef PROFD_ELF_ELF_GMON_H
#define PROFD_ELF_ELF_GMON_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

struct elf_gmon {
    bool knows;    /* the names that it is linked with are known: it has .symtab, or is linked dynamically */
    bool linked;   /* one of them is the start of glibc's gmon, or counts calls: it was linked with -pg. Without knows,
                      false */
    bool stripped; /* no .symtab, neither its own nor of the debug file */
    /* Of a stripped one: where glibc's gmon begins, the start of the first PT_LOAD, and each address where it can end,
     * because linkers put etext there: the ends of the code behind .text and of the executable segments. No ends:
     * unknown. Ends are ascending only by section, then by segment. */
    uint64_t low;
    uint64_t *ends;
    uint32_t end_count;
};

/* debug: −1 or the separate debug file. Arrays live in the arena. Fails as elf_read does. O(symbols + sections). */
enum profd_status elf_read_gmon(int executable, int debug, struct arena *a, struct elf_gmon *out,
                                struct profd_error *e);

/* True for a function that -pg calls in order to count, in every spelling, and for the code that linkers put on the way
 * to it: mcount, __fentry__, __mcount_veneer. */
bool elf_gmon_counts(const char *name);

#endif
