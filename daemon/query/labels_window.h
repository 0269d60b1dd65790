/* Labels of some uploads of a build: those in a window, or with other labels. The store keeps only those of all. */
#ifndef PROFD_QUERY_LABELS_WINDOW_H
#define PROFD_QUERY_LABELS_WINDOW_H

#include <stddef.h>

#include "core/arena.h"
#include "core/rows.h"
#include "proto/status.h"
#include "store/store.h"

/* Label pairs of what the filter selects, ascending by name and value, in the arena. O(rows · labels). */
enum profd_status labels_count(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                               struct arena *a, struct label_row **rows, size_t *count, struct profd_error *e);

#endif
