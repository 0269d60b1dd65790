/* GET /metrics: the text format of Prometheus. */
#ifndef PROFD_REQUESTS_METRICS_H
#define PROFD_REQUESTS_METRICS_H

#include "core/buffer.h"
#include "requests/numbers.h"
#include "requests/status.h"
#include "query/query.h"
#include "store/store.h"

/* start: seconds since the epoch. Content type: text/plain; version=0.0.4; charset=utf-8. */
void metrics_format(const struct pages_numbers *n, const struct store_totals *totals,
                    const struct query_cache_use *cache, double start, struct buffer *out);
/* What is forwarded to a centre, or what a centre has received, if one of them is configured. */
void metrics_format_fleet(const struct status_setup *setup, const struct pages_numbers *n,
                          const struct status_store *store, struct buffer *out);

#endif
