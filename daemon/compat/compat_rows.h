/* The rows of a symbol's callers or callees in the order of the call graph. */
#ifndef PROFD_COMPAT_COMPAT_ROWS_H
#define PROFD_COMPAT_COMPAT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_run.h"
#include "core/arena.h"
#include "proto/status.h"

/* Arcs inside a cycle and self arcs carry no time and are listed separately. */
enum compat_rank { COMPAT_RANK_SELF, COMPAT_RANK_INSIDE, COMPAT_RANK_OTHER };

struct compat_row {
    uint32_t other; /* symbol at the other end */
    enum compat_rank rank;
    uint64_t calls;
    struct compat_flow flow;
};

struct compat_row_key {
    uint64_t first, second;
    uint32_t row, spare;
};

/* Allocates capacity for the longest list. */
struct compat_rows {
    struct compat_row *rows; /* as the arcs stand */
    struct compat_row_key *keys, *scratch;
    uint32_t *list, *list_scratch;
};

enum profd_status compat_rows_init(struct compat_rows *r, const struct compat_run *run, struct arena *a);

/* Lists the rows of v's callers: the self arc, then arcs inside the cycle by calls, then the others by time and calls,
 * least first. Its callees are listed in the reverse order. Equal rows are oldest first in both. Row i of the n is
 * rows[list[i]]. O(n log n). */
uint32_t compat_rows_parents(struct compat_rows *r, const struct compat_run *run, uint32_t v);
uint32_t compat_rows_children(struct compat_rows *r, const struct compat_run *run, uint32_t v);

#endif
