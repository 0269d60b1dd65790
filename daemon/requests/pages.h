/* Answers that need no profile: health, status, metrics, and the dashboard's files. On the loop's thread. */
#ifndef PROFD_REQUESTS_PAGES_H
#define PROFD_REQUESTS_PAGES_H

#include "requests/metrics.h"
#include "requests/numbers.h"
#include "requests/requests.h"

struct pages;

struct pages_config {
    void (*get_numbers)(void *context, struct pages_numbers *out);
    void *context;
    double start; /* seconds since the epoch */
    struct pages_setup setup;
};

/* Compresses the dashboard's files. NO_MEMORY. */
enum profd_status pages_new(const struct pages_config *config, struct pages **out, struct profd_error *e);
/* Replaces the setup. */
void pages_set_setup(struct pages *p, const struct pages_setup *setup);
/* Accepts NULL. */
void pages_free(struct pages *p);

/* True if the request is for a file of the dashboard, /healthz or /readyz. The page's strings live as long as the pages
 * and the request. */
bool pages_find(struct pages *p, enum query_source source, const struct query_request *request, struct page *page);
/* Makes /api/v1/status. */
void pages_make_status(struct pages *p, const struct pages_store *store, struct page *page);
/* Makes /metrics. store NULL: the client may read only the metrics of its hosts. Calls metrics_hosts_done. */
void pages_make_metrics(struct pages *p, const struct pages_store *store, const struct query_cache_use *cache,
                        struct metrics_hosts *hosts, struct page *page);
/* Returns whether the daemon is a centre, so that /metrics has metrics of hosts. */
bool pages_tells_hosts(const struct pages *p);
/* metrics_hosts_begin with the current counts. */
enum profd_status pages_begin_hosts(const struct pages *p, int64_t now, struct metrics_hosts *hosts,
                                    struct profd_error *e);

#endif
