/* Calls along arcs per call of the caller. */
#ifndef PROFD_CORE_DIFF_ARCS_H
#define PROFD_CORE_DIFF_ARCS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/diff_match.h"
#include "core/diff_side.h"
#include "core/diff_table.h"

struct diff_arcs_request {
    const struct diff_side *sides[2];
    const struct diff_match *match;
    const double *calls[2]; /* of each row: [row·DIFF_VALUES] */
    const uint16_t *groups; /* as diff_stat_compare */
    bool paired;
    const bool *is_watched; /* of each row: only arcs into such; NULL: all */
};

/* Fills in the table's items for arcs between functions of both sides if the caller was called on both; they are
 * compared where there is enough. O(arcs). */
void diff_arcs_make(struct arena *a, const struct diff_arcs_request *r, struct diff_table *t);

#endif
