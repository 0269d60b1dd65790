/* /metrics of a centre: what is known of each host. The counts are copied on the loop; the text is made on a reading
 * thread, because 2,000 hosts have 20,000 lines. */
#ifndef PROFD_REQUESTS_METRICS_HOSTS_H
#define PROFD_REQUESTS_METRICS_HOSTS_H

#include "core/buffer.h"
#include "core/hashmap.h"
#include "requests/numbers.h"
#include "proto/status.h"
#include "store/store.h"

#define METRICS_HOSTS_MOST 1000u  /* hosts with something wrong, and others, that are listed: the first by name */
#define METRICS_HOSTS_AGE_DAYS 30 /* hosts that have not arrived for longer are not listed */
#define METRICS_HOSTS_BYTES (64u << 20)

struct metrics_counted {
    uint8_t host[STORE_HOST_SIZE];
    struct host_counts counts;
};
/* Of one answer. Zeroed: nothing is said of hosts. */
struct metrics_hosts {
    bool active;
    struct metrics_counted *counted; /* ascending by host, from metrics_hosts_format on */
    size_t count;
    int64_t now, interval; /* ns */
    struct buffer text;
};

/* Copies the counts (identity -> struct host_counts). NO_MEMORY. O(n). metrics_hosts_done ends it in any case. */
enum profd_status metrics_hosts_begin(struct metrics_hosts *m, const struct hashmap *counts, int64_t now,
                                      int64_t interval, struct profd_error *e);
/* Makes the text about the hosts of the tenants in the scope. O(n log n). */
enum profd_status metrics_hosts_format(struct metrics_hosts *m, struct store *store, const struct store_scope *scope,
                                       struct profd_error *e);
void metrics_hosts_done(struct metrics_hosts *m);

#endif
