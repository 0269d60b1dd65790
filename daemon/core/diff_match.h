/* Which functions of two sides are the same (insight: name and file, then the name without what the compiler appends).
 *
 * Two functions have the same name if their objects do, and their raw names without clone suffixes (.isra, .part,
 * .constprop, .cold, .lto_priv, .llvm and what follows). Of one name, those of the same file are one row: its clones.
 * Files of the two sides are the same if they are equal; else those are paired that have most names of directories
 * before the base name in common, the base name itself at least. Then one that remains on each side is the same
 * function if a file is not known, or if no other functions have the name. Functions without names are the same only if
 * build and address are. At last, a function that only one side has is one that only the other has, renamed, if both
 * have the same code (elf/elf_code.h) and no other function of the object has it on either side. A side has the
 * functions of its symbol tables, those without ticks and calls among them. */
#ifndef PROFD_CORE_DIFF_MATCH_H
#define PROFD_CORE_DIFF_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/diff_side.h"
#include "proto/status.h"

#define DIFF_NONE UINT32_MAX

/* A function of the comparison. Its members on side s are member[s][first[s] … first[s] + count[s]). */
struct diff_row {
    uint32_t first[2], count[2]; /* 0: the side has no tick and no call of it */
    bool renamed;                /* it has two names, and the same code */
    bool idle;                   /* seen on one side only, and the other has it, too, by its symbol table */
    bool inlined; /* seen on one side only; the debug information of the other's other build has inlined copies */
};

struct diff_match {
    uint32_t row_count;
    struct diff_row *rows;
    uint32_t *member[2]; /* functions of the side, in the order of rows */
    uint32_t *row_of[2]; /* of each function of the side */
};

/* programs[s]: build-id of the side's own build, which has the same name on both sides whatever its file is called.
 * Everything lives in the arena. O((n + symbols) log n)
 * comparisons of numbers. */
void diff_match_make(struct arena *a, const struct diff_side *const sides[2], const char *const programs[2],
                     struct diff_match *out);

/* Has a side's build inlined copies of a row's function, as far as its debug information is known? No call of a copy is
 * counted. O(builds · log names). */
bool diff_match_has_inlined(const struct diff_match *m, const struct diff_side *const sides[2],
                            const char *const programs[2], uint32_t row, uint32_t side);

#endif
