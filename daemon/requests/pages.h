/* Answers that need no profile: health, status, metrics, and the dashboard's files. On the loop. */
#ifndef PROFD_REQUESTS_PAGES_H
#define PROFD_REQUESTS_PAGES_H

#include <stdbool.h>

#include "requests/metrics_hosts.h"
#include "requests/numbers.h"
#include "requests/page.h"
#include "requests/status.h"
#include "query/query.h"
#include "store/store.h"

struct pages;

struct pages_config {
    void (*get_numbers)(void *context, struct pages_numbers *out);
    void *context;
    double start; /* seconds since the epoch */
    struct status_setup setup;
};

/* Codes the dashboard's files. */
enum profd_status pages_new(const struct pages_config *config, struct pages **out, struct profd_error *e);
/* The setup from now on. */
void pages_set_setup(struct pages *p, const struct status_setup *setup);
/* Accepts NULL. */
void pages_free(struct pages *p);

/* True if the request is for a file of the dashboard, /healthz or /readyz. The page's strings live as long as the pages
 * and the request. */
bool pages_find(struct pages *p, enum query_source source, const struct query_request *request, struct page *page);
/* /api/v1/status and /metrics, which tell what the store holds, too. */
void pages_make_status(struct pages *p, const struct status_store *store, struct page *page);
/* store NULL: the asker may read only about its hosts. Ends hosts. */
void pages_make_metrics(struct pages *p, const struct status_store *store, const struct query_cache_use *cache,
                        struct metrics_hosts *hosts, struct page *page);
/* Is this a centre, so that /metrics tells of hosts? */
bool pages_tells_hosts(const struct pages *p);
/* Notes what is known of hosts now; on the loop. */
enum profd_status pages_begin_hosts(const struct pages *p, int64_t now, struct metrics_hosts *hosts,
                                    struct profd_error *e);

#endif
