/* GET /metrics: the text format of Prometheus 0.0.4. */
#ifndef PROFD_REQUESTS_METRICS_H
#define PROFD_REQUESTS_METRICS_H

#include "requests/numbers.h"

/* Appends the metrics of the daemon, of its relay or tier if they are configured, and of a centre. start: when the
 * daemon started, in seconds since the epoch. On the loop's thread. */
void metrics_format(const struct pages_setup *setup, const struct pages_numbers *n, const struct pages_store *store,
                    const struct query_cache_use *cache, double start, struct buffer *out);

#define METRICS_HOSTS_MOST 1000u  /* listed hosts with something wrong, and as many others: the first by name */
#define METRICS_HOSTS_AGE_DAYS 30 /* hosts that have not connected for longer are not listed */
#define METRICS_HOSTS_BYTES (64u << 20)

struct metrics_counted {
    uint8_t host[STORE_HOST_SIZE];
    struct host_counts counts;
};
/* The metrics of hosts in one answer. Zeroed: the answer has none. */
struct metrics_hosts {
    bool active;
    struct metrics_counted *counted; /* ascending by host, from metrics_hosts_format on */
    size_t count;
    int64_t now, interval; /* ns */
    struct buffer text;
};

/* Copies the counts (identity → struct host_counts), on the loop's thread. The caller must call metrics_hosts_done,
 * after an error, too. NO_MEMORY. O(n). */
enum profd_status metrics_hosts_begin(struct metrics_hosts *m, const struct hashmap *counts, int64_t now,
                                      int64_t interval, struct profd_error *e);
/* Makes m->text about the hosts of the tenants in the scope, on a reader thread. O(n log n). */
enum profd_status metrics_hosts_format(struct metrics_hosts *m, struct store *store, const struct store_scope *scope,
                                       struct profd_error *e);
void metrics_hosts_done(struct metrics_hosts *m);

#define METRICS_WATCH_BYTES (16u << 20)

/* Appends the counters of all watched functions, for a reader of all profiles. On a reader thread. */
enum profd_status metrics_watch_format(struct store *store, struct buffer *out, struct profd_error *e);

#endif
