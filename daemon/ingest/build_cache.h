/* A cache of builds for validation: where their executables have code, and which users have named them. */
#ifndef PROFD_INGEST_BUILD_CACHE_H
#define PROFD_INGEST_BUILD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bounds.h"
#include "proto/buildid.h"
#include "proto/status.h"
#include "store/store.h"

struct build_cache;

/* The store may be a reading handle. */
enum profd_status build_cache_new(struct store *s, struct build_cache **out, struct profd_error *e);
/* Accepts NULL. */
void build_cache_free(struct build_cache *cache);

/* Begins with another upload: empties the cache if it is too large, and drops every bound if the generation has
 * changed. Invalidates everything that was returned before. */
void build_cache_begin(struct build_cache *cache, uint64_t generation);

/* The address ranges of code in the executable that is trusted for the uid (store_get_bounds); *bounds NULL: unknown.
 * Valid until build_cache_begin. O(log cached builds), or a query of the store. */
enum profd_status build_cache_find_bounds(struct build_cache *cache, uint32_t uid, const char *build_id,
                                          const struct bounds **bounds, struct profd_error *e);

/* A build without an executable, and the name that the upload gives it. */
struct missing_build {
    struct buildid id;
    char name[256];
};
/* Lists the builds of an upload for which the store has no executable, at most 64. *out is a new block, NULL if there
 * is none. What the store said is remembered until the generation changes. */
enum profd_status build_cache_list_missing(struct build_cache *cache, const struct store_upload *u,
                                           struct missing_build **out, size_t *count, struct profd_error *e);

/* Charges the builds that this uid names for the first time to its allowance: LIMIT_BUILDS_PER_HOUR_PER_UID at once,
 * refilled evenly over an hour (received: ns). BUSY if the allowance does not suffice: then none is charged, and
 * *retry_after_ms says when it will. The allowance is kept in memory only. */
enum profd_status build_cache_charge(struct build_cache *cache, uint32_t uid, int64_t received,
                                     const struct store_build *builds, size_t n, uint32_t *retry_after_ms,
                                     struct profd_error *e);

#endif
