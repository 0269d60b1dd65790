/* What a centre is, and how it takes segments. */
#ifndef PROFD_CLICKHOUSE_CENTRE_H
#define PROFD_CLICKHOUSE_CENTRE_H

#include "clickhouse/fleet.h"

/* Does the host stand in the series of what was received then (struct store_detail)? n more segments are about to be
 * stored. */
enum profd_status engine_choose_detail(struct clickhouse_store *s, int64_t received, size_t n, bool *detail,
                                       struct profd_error *e);
/* Removes the bytes of the oldest segments that could not be read, above STORE_QUARANTINE_BYTES. */
enum profd_status engine_limit_quarantine(struct clickhouse_store *s, struct profd_error *e);
/* Does the epoch of the first host go on as this one's? Its key was revoked, or it is the same machine, which was
 * enrolled again. */
enum profd_status engine_inherits(struct clickhouse_store *s, const uint8_t from[STORE_HOST_SIZE],
                                  const struct engine_host *to, bool *inherits, struct profd_error *e);

#endif
