/* Corridor 2: parameters → load → symbolize → graph → cycles → propagate → report → render.
 * Synchronous; runs on a reader thread with that thread's store handle. */
#ifndef PROFD_QUERY_QUERY_H
#define PROFD_QUERY_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "proto/status.h"
#include "store/store.h"

/* Sums that were added up before, for all readers. It changes no answer: an entry is found by the exact versions of what it
 * is the sum of. Holds at most limit bytes (LIMIT_ROLLUP_CACHE); the least recently used goes first. The lock is held for as long as
 * one entry is copied or added up. NULL when out of memory. */
struct query_lock {
    void (*take)(void *context);
    void (*give)(void *context);
    void *context;
};
struct query_cache;
struct query_cache *query_cache_new(size_t limit, const struct query_lock *lock);
/* Accepts NULL. */
void query_cache_free(struct query_cache *cache);
struct query_cache_use {
    uint64_t found, missed; /* of the sums that questions wanted, since the start */
    uint64_t bytes, entries;
};
struct query_cache_use query_cache_measure(struct query_cache *cache);

struct query_request {
    const char *target;         /* origin-form: "/api/v1/builds?limit=5", percent-encoded */
    const char *if_none_match;  /* "" if absent */
    struct store_scope scope;   /* what the asker may see */
    bool http;                  /* limits of HTTP apply (limit=1000 unless asked) */
    int64_t now;                /* ns since the epoch; for "now-1h" */
    struct query_cache *cache;  /* NULL: none */
};

struct query_answer {
    enum profd_status status;   /* OK also for 304 */
    int http_status;
    const char *content_type;   /* static */
    const char *cache_control;  /* static: "private, no-cache" for reports, else "no-store" */
    char etag[80];              /* quoted, "" if none */
    struct buffer body;         /* empty for 304 */
};

/* True for paths this corridor answers (/api/…, /openapi.json). */
bool query_owns(const char *target);
/* Always fills in an answer: errors become problem documents. The caller ends it with query_answer_done. */
void query_run(struct store *s, const struct query_request *request, struct query_answer *answer);
void query_answer_done(struct query_answer *answer);

#endif
