#include "core/rollup_plan.h"

#include <string.h>

#include "core/rollup.h"
#include "core/sum.h"

void rollup_plan_reserve(struct rollup_plan *p, uint64_t rows)
{
    if (rows >= ROLLUP_NONE) {
        arena_fail(p->arena);
    }
    if (rows > p->capacity) {
        p->capacity = (size_t)rows + (size_t)rows / 4 + 64;
        p->left = ARENA_ARRAY(p->arena, p->capacity, uint32_t);
        p->right = ARENA_ARRAY(p->arena, p->capacity, uint32_t);
    }
}

void rollup_plan_words(const struct rollup_plan *p, const uint32_t *a, const uint32_t *b, uint32_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        out[k] = p->left[k] != ROLLUP_NONE ? a[p->left[k]] : b[p->right[k]];
    }
}

void rollup_plan_addresses(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        out[k] = p->left[k] != ROLLUP_NONE ? a[p->left[k]] : b[p->right[k]];
    }
}

void rollup_plan_sums(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t first,
                      uint32_t end, bool *saturated)
{
    for (uint32_t k = first; k < end; k++) {
        uint32_t i = p->left[k], j = p->right[k];
        uint64_t sum = i != ROLLUP_NONE ? a[i] : 0;
        sum_add(&sum, j != ROLLUP_NONE ? b[j] : 0, saturated);
        out[k] = sum;
    }
}

/* Shares are at most 2^63−1, so that no sum of two wraps. */
void rollup_shares_add(const uint64_t *restrict from, uint64_t *restrict to)
{
    uint64_t all = 0;
    for (uint32_t g = 0; g < COUNTS_GROUPS; g++) {
        to[g] += from[g];
        all |= to[g];
    }
    for (uint32_t g = 0; all > SUM_MAX && g < COUNTS_GROUPS; g++) {
        to[g] = to[g] < SUM_MAX ? to[g] : SUM_MAX;
    }
}

void rollup_plan_groups(const struct rollup_plan *p, const uint64_t *a, const uint64_t *b, uint64_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++, out += COUNTS_GROUPS) {
        uint32_t i = p->left[k], j = p->right[k];
        memmove(out, i != ROLLUP_NONE ? a + (size_t)i * COUNTS_GROUPS : b + (size_t)j * COUNTS_GROUPS,
                COUNTS_GROUPS * sizeof *out);
        if (i != ROLLUP_NONE && j != ROLLUP_NONE) {
            rollup_shares_add(b + (size_t)j * COUNTS_GROUPS, out);
        }
    }
}

void rollup_groups_add(const uint32_t *plan, uint32_t n, const uint64_t *from, uint64_t *to)
{
    for (uint32_t j = 0; j < n; j++) {
        rollup_shares_add(from + (size_t)j * COUNTS_GROUPS, to + (size_t)plan[j] * COUNTS_GROUPS);
    }
}
