/* The cache's inside: sums by what they are the sum of. */
#ifndef PROFD_QUERY_CACHE_H
#define PROFD_QUERY_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rollup.h"
#include "proto/status.h"
#include "query/query.h"

/* Adds the entry of this key to the sum, if there is one. *found says whether. NO_MEMORY as rollup_sum_add. */
enum profd_status cache_add(struct query_cache *c, const void *key, size_t size, struct rollup_sum *sum, bool *found,
                            struct profd_error *e);
/* Keeps a copy under the key, unless there is one or it would take more than a quarter of the limit. A failure is
 * silent: nothing is kept. */
void cache_put(struct query_cache *c, const void *key, size_t size, const struct rollup *r);

#endif
