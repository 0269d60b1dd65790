/* A cache of builds for validation: where their executables have code, and which users have named them. */
#ifndef PROFD_INGEST_KNOWN_H
#define PROFD_INGEST_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bounds.h"
#include "proto/status.h"
#include "store/store.h"

struct known;

/* The store may be a reading handle. NULL when out of memory. */
struct known *known_new(struct store *s);
/* Accepts NULL. */
void known_free(struct known *k);

/* Begins with another upload: forgets what is too much, and every bound if the generation is another one. What was lent
 * before is gone. */
void known_begin(struct known *k, uint64_t generation);

/* The address ranges of code in the executable that is trusted for the uid (store_get_bounds); *bounds NULL: unknown.
 * Valid until known_begin. O(log cached builds), or a query of the store. */
enum profd_status known_find_bounds(struct known *k, uint32_t uid, const char *build_id, const struct bounds **bounds,
                                    struct profd_error *e);

/* store_has_object, remembered until the generation is another one. */
enum profd_status known_has_object(struct known *k, uint32_t uid, const char *build_id, bool *has,
                                   struct profd_error *e);

/* Charges the builds that this uid names for the first time to its allowance: LIMIT_BUILDS_PER_HOUR_PER_UID at once,
 * coming back evenly within an hour of `received` (ns). BUSY when it does not suffice: then none is charged, and
 * *retry_after_ms says when it would. The allowance is forgotten with the process. */
enum profd_status known_charge(struct known *k, uint32_t uid, int64_t received, const struct store_build *builds,
                               size_t n, uint32_t *retry_after_ms, struct profd_error *e);

#endif
