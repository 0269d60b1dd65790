/* Which change would have been found, and with how much data another one would be. */
#ifndef PROFD_CORE_DIFF_PLAN_H
#define PROFD_CORE_DIFF_PLAN_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/diff_table.h"

struct diff_plan_request {
    double fdr, confidence; /* as those of core/diff.h */
    double log;             /* the increase that is planned for, as a logarithm; 0: none */
    double most;            /* as most_data */
    bool few_groups;        /* a side has fewer than a test needs */
};

/* Sets what is visible, in the table and its tested items, and what all items need. One changed function of n tested
 * ones is found if its p ≤ fdr / n. With more data more functions have ticks enough for a test, so n grows with the
 * plan: as many are counted as the table's ticks promise, and up to a fifth more. O(n
 * log n). */
void diff_plan_make(struct arena *a, const struct diff_plan_request *r, struct diff_table *t);

#endif
