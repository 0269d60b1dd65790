/* What all functions of a table have in common. */
#ifndef PROFD_CORE_DIFF_COMMON_H
#define PROFD_CORE_DIFF_COMMON_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/diff_table.h"

#define DIFF_COMMON_LEAST 5u /* functions; of fewer none stands for the others */

struct diff_common_request {
    const uint16_t *groups; /* as diff_stat_compare */
    bool paired;
    bool by_ticks; /* functions count by their samples, for times; else all alike */
};

/* The common factor of the estimated items, and each of them compared once more, without it. logs: [item·2], of both
 * sides. A function deviates if it differs from the median by more than three standard errors; such functions
 * are no part of the mean, and none is a part of the mean that it is compared with. Items that are the same number in
 * every group of both sides, such as one call in each process, stay as they are. */
void diff_common_remove(struct arena *a, const struct diff_common_request *r, struct diff_table *t,
                        const struct diff_logs *logs);

#endif
