/* Queries: parameters → load → symbolize → graph → cycles → propagate → report → render. Synchronous; runs on a reader
 * thread with that thread's store handle. */
#ifndef PROFD_QUERY_ANSWER_H
#define PROFD_QUERY_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/coding.h"
#include "core/rows.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "store/store.h"

/* Sums that were added up before, for all readers. It changes no answer: an entry is found by the exact versions of
 * what it is the sum of. Holds at most limit bytes (LIMIT_ROLLUP_CACHE); the least recently used goes first. The lock
 * is held for as long as one entry is copied or added up. NULL when out of memory. */
struct query_lock {
    void (*take)(void *context);
    void (*give)(void *context);
    void *context;
};
struct downtime;
struct query_cache;
struct query_cache *query_cache_new(size_t limit, const struct query_lock *lock);
/* Accepts NULL. */
void query_cache_free(struct query_cache *cache);
struct query_cache_use {
    uint64_t found, missed; /* of the sums that questions wanted, since the start */
    uint64_t bytes, entries;
};
struct query_cache_use query_cache_measure(struct query_cache *cache);

/* A cache of finished answers, by scope of the reader, listener, coding and target. An answer is reused only if the
 * store still has the same ETag for the query, or if the caller's generation proves that nothing was written since the
 * answer was begun. Holds at most limit bytes (LIMIT_ANSWER_CACHE); the least recently used is removed first. The lock
 * is held while one answer is copied. NULL if out of memory. */
struct query_answers;
struct query_answers *query_answers_new(size_t limit, const struct query_lock *lock);
/* Accepts NULL. */
void query_answers_free(struct query_answers *answers);
struct query_answers_use {
    uint64_t at_once, after_look,
        made; /* answers given: without asking the store, after asking it for the ETag, computed */
    uint64_t bytes, entries;
};
struct query_answers_use query_answers_measure(struct query_answers *answers);

/* What answers a path: a query of the store, a query of the live processes, or the daemon about itself. */
enum query_source { QUERY_STORE, QUERY_PROCESSES, QUERY_STATUS, QUERY_METRICS, QUERY_HEALTH, QUERY_READY, QUERY_NONE };
/* What metrics call it. */
enum query_kind {
    QUERY_BUILDS,
    QUERY_BUILD,
    QUERY_REPORT,
    QUERY_COUNTS,
    QUERY_GROUPS,
    QUERY_FUNCTIONS,
    QUERY_LABELS,
    QUERY_LIVE,
    QUERY_OTHER,
    QUERY_KINDS
};
/* Static. */
const char *query_kind_name(enum query_kind kind);
/* Finds the path of a target in the one table of routes, whatever its parameters. NONE and OTHER: it is not there; if
 * it lies below /api/, query_run says so. O(routes). */
enum query_source query_find_source(const char *target, enum query_kind *kind);
/* The methods of a path of n bytes, as the field Allow has them. Static. O(routes). */
const char *query_find_methods(const char *path, size_t n);

/* The path of outgoing uploads. The relay may ask it whatever else its user may read. */
#define QUERY_OUTGOING "/outgoing"

/* Returns whether queries of a path of n bytes are POST requests with the question in the body. O(routes). */
bool query_reads_body(const char *path, size_t n);
/* Makes the key under which the answer of such a request is cached: the path and a digest of the type and body. */
void query_name_body(const char *target, const char *type, const uint8_t *body, size_t size,
                     char out[LIMIT_QUERY_BYTES]);

struct query_request {
    const char *target;        /* origin-form: "/api/v1/builds?limit=5", percent-encoded */
    const char *if_none_match; /* "" if absent */
    const uint8_t *body;       /* of a POST, not NULL if it is empty; NULL: another method */
    size_t body_size;
    const char *content_type;            /* of the body */
    struct store_scope scope;            /* what the asker may see */
    bool http;                           /* limits of HTTP apply (limit=1000 unless asked) */
    int64_t now;                         /* ns since the epoch; for "now-1h" */
    struct query_cache *cache;           /* NULL: none */
    const struct downtime *downtime;     /* when the daemon did not run; NULL: unknown. The same in all requests */
    enum coding coding;                  /* of a body of LIMIT_CODING_LEAST bytes or more, where its type suits */
    bool coded_only;                     /* of every body */
    struct query_answers *answers;       /* NULL: none */
    const struct process_row *processes; /* for QUERY_PROCESSES: the asker's, as found on the loop; else NULL */
    size_t process_count;
    const struct buffer *baseline; /* of /debug/pprof/profile: the answer of its first run; NULL: this is the first */
    uint64_t generation; /* of what is stored, read before query_run: differs after every write; odd during one */
};

struct query_answer {
    enum profd_status status; /* OK also for 304 */
    struct profd_error why;   /* it is not OK */
    int http_status;
    const char *content_type;  /* static */
    const char *cache_control; /* static: "private, no-cache" for reports, else "no-store" */
    char etag[80];             /* quoted, "" if none; of the body as it is coded */
    enum coding coding;        /* of the body */
    uint32_t wait_ms;          /* not 0: the body is a baseline; run the query with it again after this time */
    bool negotiated;           /* the asker's wish for a coding mattered */
    char exact[256];    /* header Profd-Exact, for formats without a field for it: "yes", or "no" and why; else "" */
    struct buffer body; /* empty for 304 */
};

/* Limit of the seconds that /debug/pprof/profile waits. It must be less than a request may take. */
#define QUERY_SCRAPE_MOST 55u

/* Always fills in an answer: errors become problem documents. The caller ends it with query_answer_done. */
void query_run(struct store *s, const struct query_request *request, struct query_answer *answer);
void query_answer_done(struct query_answer *answer);
/* Answers at once what is known to be still true: generation is that of now, and even. For the loop: takes no longer
 * than to copy LIMIT_ANSWER_AT_ONCE bytes. False, and answer untouched: ask query_run. */
bool query_answers_find(struct query_answers *answers, const struct query_request *request,
                        struct query_answer *answer);

/* Codes an answer that was not made here, as query_run would: body and coding change, or nothing does. Takes time. */
void query_code_body(enum coding wanted, bool must, struct buffer *body, enum coding *coding);
/* Puts the coded body (at the quickest level; hard: at gzip's best, for what is coded once and kept) in the place of
 * body. False, and body as it was: it would not become smaller, and need not be coded; or no memory. Same input, same
 * bytes. O(n). */
bool query_pack(enum coding coding, bool hard, bool must, struct buffer *body);

#define ETAG_SIZE 80

/* The tag of the same answer in a coding: each has one of its own (RFC 9110, 8.8.3), "…-gzip". out may be etag. An etag
 * that is too long for that becomes "". */
void query_code_etag(const char *etag, enum coding coding, char out[ETAG_SIZE]);
/* For an answer that may be held in any coding: whether If-None-Match names it, and out is the tag that was named, the
 * wanted coding's if that was. "*" is whatever would be sent: out is etag. */
bool query_match_etag(const char *if_none_match, const char *etag, enum coding wanted, char out[ETAG_SIZE]);

#endif
