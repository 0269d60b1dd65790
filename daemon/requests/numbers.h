/* What status and metrics show: counts of the daemon's components at one moment, the configuration, and the store's
 * totals. */
#ifndef PROFD_REQUESTS_NUMBERS_H
#define PROFD_REQUESTS_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "writer/aside.h"
#include "writer/health.h"
#include "core/figures.h"
#include "core/hashmap.h"
#include "live/live_counts.h"
#include "net/conn.h"
#include "net/http.h"
#include "query/answer.h"
#include "store/store.h"
#include "tier/mirror.h"
#include "writer/upkeep_job.h"
#include "writer/verifier.h"

/* Since the start. */
struct upload_counts {
    uint64_t stored, duplicate, relabelled, bytes; /* relabelled: some of stored; bytes: received */
    uint64_t samples, calls;                       /* of what was stored */
    struct refusals refused;
    struct durations seconds; /* from the whole frame to its answer */
};

struct object_counts {
    uint64_t stored, failed, requested;
    size_t readers_gone; /* processes that read executables, have ended, and are not started again yet */
};

/* The work and the errors of the relay. */
struct relay_counts {
    uint64_t fetched;
    int64_t heard;   /* ns: the latest FETCH; 0: none since the start */
    char error[256]; /* of this FETCH: why the centre could not be reached; "": none */
};

struct delivery_counts {
    uint64_t counted, again, put_aside, conflicts; /* that were acknowledged */
    uint64_t limited;                              /* their uploads with STORE_RELABELLED */
    uint64_t refused;                              /* that were not */
};

/* What hosts have sent since the start. */
struct centre_counts {
    uint64_t arrived; /* batches of hosts */
    struct delivery_counts segments;
    uint64_t objects_stored, objects_refused; /* parsed objects that were sent */
    uint64_t interval_ms;                     /* in which each host comes once; 0: none has come */
};

/* What one host has sent since the start. */
struct host_counts {
    struct delivery_counts segments;
    uint32_t tenant;  /* of its latest arrival */
    uint64_t refused; /* arrivals */
    int64_t backlog;  /* ns: age of its oldest unacknowledged upload when it last connected; -1: unknown */
    bool relabelled;  /* the log has said that it sends another label `host` */
};

/* From the configuration. */
struct pages_setup {
    const char *http;    /* ADDR:PORT; NULL: none */
    bool http_open;      /* no token is asked for */
    unsigned user_share; /* percent */
    const char *relay;   /* URL of the centre; NULL: nothing is forwarded */
    const char *tier;    /* URL of ClickHouse; NULL: past days stay */
};

/* From the store. */
struct pages_store {
    struct store_totals totals;
    struct store_relay relay;
    struct store_centre centre;
};

struct pages_numbers {
    bool stopping;
    const char *failure,
        *full;        /* why nothing is written any more, why uploads are refused for want of space; or NULL */
    bool read_failed; /* a reader met damage or an input/output error */
    size_t damaged;   /* databases that were put aside */
    const char *damaged_latest; /* the name of the latest of them */
    enum reserve_state reserve;
    uint64_t reserve_bytes;
    uint16_t http_port; /* of TCP; 0: none is listened on */

    struct upload_counts uploads;
    struct object_counts objects;
    struct live_counts live;
    struct durations queries[QUERY_KINDS]; /* from the request to its answer */
    struct query_answers_use answers;
    uint64_t answer_bytes; /* of answers that readers have not taken yet */
    struct conn_counts conns;
    struct http_server_counts http;
    struct relay_counts relay;
    struct centre_counts centre;
    const struct hashmap *hosts; /* identity → struct host_counts; NULL: no centre */
    struct upkeep_counts upkeep;
    struct verifier_counts verified;
    struct sealer_counts tier;
    struct mirror_counts mirror;
    size_t writer_pending, reader_pending, object_pending;
    uint64_t batches; /* of the writer */
};

#endif
