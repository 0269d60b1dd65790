/* What /metrics tells: counters that the loop's thread keeps, and the text format of Prometheus. */
#ifndef PROFD_DAEMON_METRICS_H
#define PROFD_DAEMON_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "net/conn.h"
#include "net/http.h"
#include "proto/status.h"
#include "query/query.h"
#include "store/store.h"

#define METRICS_STATUSES 64
#define METRICS_BOUNDS 12 /* finite upper bounds of a histogram of seconds */

enum metrics_endpoint {
    METRICS_BUILDS,
    METRICS_BUILD,
    METRICS_REPORT,
    METRICS_FUNCTIONS,
    METRICS_LABELS,
    METRICS_OTHER,
    METRICS_ENDPOINTS
};

struct metrics_histogram {
    uint64_t buckets[METRICS_BOUNDS + 1]; /* not cumulative; the last is above every bound */
    uint64_t count;
    double sum;
};

struct metrics {
    uint64_t uploads_ok, uploads_duplicate, uploads_rejected[METRICS_STATUSES];
    uint64_t upload_bytes, samples, calls;
    uint64_t objects_ok, objects_failed, objects_wanted;
    uint64_t ledger_mismatches;
    uint64_t attached, attach_refused[METRICS_STATUSES]; /* ATTACH frames answered */
    uint64_t harvests, harvests_refused[METRICS_STATUSES], processes_ended, processes_unseen;
    struct metrics_histogram harvest_seconds;
    struct metrics_histogram upload_seconds, query_seconds[METRICS_ENDPOINTS];
};

/* What others count, at the moment of asking. */
struct metrics_view {
    struct conn_counts conns;
    struct http_door_counts http;
    struct store_totals totals;
    struct query_cache_use cache;
    struct query_answers_use answers;
    size_t writer_pending, reader_pending, object_pending, harvest_pending;
    size_t attached, silent, paused,
        kept;         /* live processes: all, without a connection, told to pause, held by the service manager */
    uint64_t batches; /* of the writing thread */
    uint64_t lines_suppressed, answer_bytes;
    bool writable, full;
    uint64_t backlog_bytes, rolled_up, rounds, round_mismatches;
    double upkeep_seconds[4]; /* rolling up, removing, giving back, forgetting */
    double round_ended;       /* seconds since the epoch; 0: none has ended yet */
    double start;             /* seconds since the epoch */
};

void metrics_add_seconds(struct metrics_histogram *h, double seconds);
/* Which kind of question a target is. */
enum metrics_endpoint metrics_find_endpoint(const char *target);
/* Content type: text/plain; version=0.0.4; charset=utf-8. */
void metrics_format(const struct metrics *m, const struct metrics_view *v, struct buffer *out);

#endif
