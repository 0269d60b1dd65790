/* Lists the builds with missing executables, to request them from the client. Private to ingest. */
#ifndef PROFD_INGEST_INGEST_MISSING_H
#define PROFD_INGEST_INGEST_MISSING_H

#include <stdbool.h>
#include <stddef.h>

#include "ingest/ingest.h"
#include "ingest/build_cache.h"
#include "store/store.h"

#define MISSING_MAX 64 /* builds one upload may ask executables for */

/* Lists the builds of an upload for which the store has no executable, at most MISSING_MAX. *out is a new block, NULL
 * if there is none. The upload is durable, so nothing here may fail it: what cannot be determined is requested with the
 * next upload. */
void missing_list(struct store *s, const struct store_upload *u, struct missing_build **out, size_t *count);
/* The same from the cache, for frequent calls. Fails like build_cache_has_object. */
enum profd_status missing_list_cached(struct build_cache *cache, const struct store_upload *u,
                                      struct missing_build **out, size_t *count, struct profd_error *e);

#endif
