/* The plan of a merge: which rows of two runs make each row of their sum, and the columns that follow from it. Private
 * to core/rollup*. */
#ifndef PROFD_CORE_ROLLUP_PLAN_H
#define PROFD_CORE_ROLLUP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

#define ROLLUP_NONE UINT32_MAX /* the run has no such row */

struct rollup_plan {
    struct arena *arena;
    uint32_t *left, *right; /* row k of the sum has row left[k] of the one run and right[k] of the other */
    size_t capacity;
};

/* Ensures capacity for that many rows, without keeping any; there are at most 2^32−2. */
void rollup_plan_reserve(struct rollup_plan *p, uint64_t rows);

static inline void rollup_plan_put(struct rollup_plan *p, uint32_t k, uint32_t i, uint32_t j)
{
    p->left[k] = i;
    p->right[k] = j;
}

/* Columns of the sum, rows 0 to n−1: of equal rows the left one. */
void rollup_plan_words(const struct rollup_plan *p, const uint32_t *a, const uint32_t *b, uint32_t *out, uint32_t n);
void rollup_plan_addresses(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out,
                           uint32_t n);
/* Counts of the rows first to end−1, added up. *saturated becomes true when one stops at 2^63−1. */
void rollup_plan_sums(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t first,
                      uint32_t end, bool *saturated);
/* Shares of the groups, added up. The row's number says whether one was limited. */
void rollup_plan_groups(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t n);

/* Adds the shares of one row to those of another. */
void rollup_shares_add(const uint64_t *restrict from, uint64_t *restrict to);
/* Adds the shares of row j to row plan[j], for n rows. */
void rollup_groups_add(const uint32_t *plan, uint32_t n, const uint64_t *from, uint64_t *to);

#endif
