/* Places in code as stored sums have them: pairs of build and address, ascending, as runs of equal builds and gaps of
 * addresses. Private to core/rollup*. */
#ifndef PROFD_CORE_ROLLUP_ENDS_H
#define PROFD_CORE_ROLLUP_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "proto/status.h"

/* The distinct places of n rows, and which of them each row has. */
struct rollup_ends {
    uint32_t count;
    uint32_t *build;
    uint64_t *address, *of;
};
/* Arrays live in the arena. False if memory is exhausted. O(n) for each byte in which the places differ. */
bool rollup_ends_find(const uint32_t *builds, const uint64_t *addresses, uint32_t n, struct arena *a,
                      struct rollup_ends *out);

/* Writes the runs of equal builds (length, build + 1 or 0 for nowhere, first address), at most ROLLUP_RUN_MAX bytes
 * each, and returns the end. With p NULL only their number is set. */
uint8_t *rollup_ends_put_runs(const uint32_t *builds, const uint64_t *addresses, uint32_t n, uint8_t *p,
                              uint32_t *runs);
/* Writes the column of the gaps; addresses ascend within a run. scratch has n numbers. */
uint8_t *rollup_ends_put_gaps(const uint32_t *builds, const uint64_t *addresses, uint32_t n, uint64_t *scratch,
                              uint8_t *p);

struct rollup_reader {
    const uint8_t *at, *end;
};
/* DAMAGED: the section ends inside what it says. */
enum profd_status rollup_decode_short(const char *what, struct profd_error *e);
/* Memory is taken for rows only when the section can hold them: every row needs a byte of it at least. DAMAGED or OK.
 */
enum profd_status rollup_decode_judge_rows(const char *what, uint64_t rows, const struct rollup_reader *r,
                                           struct profd_error *e);
/* Reads runs of equal builds, ascending, which are those of n rows; the first address of each is left in addresses.
 * what is what has a build, for the sentence. DAMAGED or OK. */
enum profd_status rollup_ends_get_runs(struct rollup_reader *r, uint64_t runs, uint32_t builds, const char *what,
                                       uint32_t *build, uint64_t *addresses, uint32_t n, struct profd_error *e);
/* gaps become addresses in place; firsts has the first address of each run. False: they do not ascend. strict: nor may
 * they be the same within a run. */
bool rollup_ends_add_gaps(const uint32_t *build, const uint64_t *firsts, uint64_t *gaps, uint32_t n, bool strict);

#endif
