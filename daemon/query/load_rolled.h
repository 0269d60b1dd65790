/* The rolled part of a load: rows that are sums already. They are added up by key, several at a time, and what was
 * added up is kept in the cache for the next question. */
#ifndef PROFD_QUERY_LOAD_ROLLED_H
#define PROFD_QUERY_LOAD_ROLLED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/profile.h"
#include "proto/status.h"
#include "query/query.h"
#include "store/store.h"

struct rolled;

struct rolled_config {
    struct query_cache *cache; /* NULL: none */
    bool alone, arcs_only;     /* as in struct load_request */
    bool stacks, shares;       /* shares: of stacks, by group; rows are then given with their spread */
    struct profile_sum *sum;   /* which stacks are added to */
};

/* Lives in the arena, but must be ended by rolled_done. */
struct rolled *rolled_new(struct arena *a, const struct rolled_config *config);
void rolled_done(struct rolled *r);

/* Adds a sum's row. map as for profile_sum_add; in alone mode, COUNTS_NOWHERE stands for builds that are left out. map
 * must live as long as the load. DAMAGED names the row. */
enum profd_status rolled_add(struct rolled *r, const struct store_row *row, const uint32_t *map, struct profd_error *e);

/* All rows were added: adds up the rest, and sets the first occurrence of each build in the sum. */
enum profd_status rolled_close(struct rolled *r, struct profile_sum *sum, struct profd_error *e);

/* Adds everything but stacks to a finished profile of the same builds. */
enum profd_status rolled_join(struct rolled *r, struct profile *p, struct profd_error *e);

#endif
