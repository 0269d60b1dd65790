/* /metrics: counters of watched functions. Made on a reading thread. */
#ifndef PROFD_REQUESTS_METRICS_WATCH_H
#define PROFD_REQUESTS_METRICS_WATCH_H

#include "core/buffer.h"
#include "proto/status.h"
#include "store/store.h"

#define METRICS_WATCH_BYTES (16u << 20)

/* Appends the text, for a reader of all profiles. */
enum profd_status metrics_watch_format(struct store *store, struct buffer *out, struct profd_error *e);

#endif
