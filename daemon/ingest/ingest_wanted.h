/* Lists the builds with missing executables, to request them from the client. Private to ingest. */
#ifndef PROFD_INGEST_INGEST_WANTED_H
#define PROFD_INGEST_INGEST_WANTED_H

#include <stdbool.h>
#include <stddef.h>

#include "ingest/ingest.h"
#include "ingest/known.h"
#include "store/store.h"

#define WANTED_MAX 64 /* builds one upload may ask executables for */

/* Lists the builds of an upload for which the store has no executable, at most WANTED_MAX. *out is a new block, NULL if
 * there is none. The upload is durable, so nothing here may fail it: what cannot be determined is requested with the
 * next upload. */
void wanted_list(struct store *s, const struct store_upload *u, struct wanted_build **out, size_t *count);
/* The same from the cache, for frequent calls. Fails like known_has_object. */
enum profd_status wanted_list_known(struct known *k, const struct store_upload *u, struct wanted_build **out,
                                    size_t *count, struct profd_error *e);

#endif
