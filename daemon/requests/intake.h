/* What hosts send to a centre waits a little, so that many segments become one transaction; each is answered after that
 * has been committed. Also what is counted of hosts, and when they come again. On the loop's thread. */
#ifndef PROFD_REQUESTS_INTAKE_H
#define PROFD_REQUESTS_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/hashmap.h"
#include "pages/numbers.h"
#include "proto/segment.h"
#include "proto/status.h"
#include "store/store.h"

#define INTAKE_WANTED 32u

struct intake;
struct loop;
struct writer;

/* All parts outlive the intake. */
struct intake_config {
    int64_t interval; /* ns: hosts come at most once in it */
    struct store_detail detail;
    struct loop *loop;
    struct writer *writer;
    void (*no_space)(void *context); /* segments were refused for want of space */
    void *context;
};

/* A segment until it is answered. */
struct intake_item {
    struct store_delivery delivery; /* the owner sets bytes and size, which stay its own */
    struct segment segment;
    bool decoded;
    enum profd_status status; /* why it is refused; OK: receipt says what became of it */
    struct profd_error error;
    struct store_receipt receipt;
};

/* The segments of one request: all are stored in one transaction, or none. */
struct intake_parcel {
    /* The owner sets these. */
    uint8_t host[STORE_HOST_SIZE];
    uint32_t tenant;  /* its number for rights */
    const char *name; /* of the host, for the log */
    struct intake_item *items;
    size_t count;
    void (*done)(struct intake_parcel *p); /* once, when the items say what became of them; may free the parcel */

    STAILQ_ENTRY(intake_parcel) next;
    size_t weight;            /* bytes of memory */
    enum profd_status status; /* why nothing of it is stored */
    struct profd_error error;
    struct store_centre centre;           /* after the commit: as of store_get_greeting */
    struct buildid wanted[INTAKE_WANTED]; /* then: of these the host shall say which symbols it has */
    size_t wanted_count;
};

enum profd_status intake_new(const struct intake_config *config, struct intake **out, struct profd_error *e);
/* After the writer's thread. What still waits is done, with STOPPING. Accepts NULL. */
void intake_free(struct intake *n);
/* Changes what is told to hosts, and what is stored of segments, from now on. */
void intake_set(struct intake *n, int64_t interval, const struct store_detail *detail);
/* What waits is stored now. */
void intake_stop(struct intake *n);

/* Reserves the memory of a parcel: BUSY if that of others leaves too little, TOO_LARGE if no parcel may have so much.
 * Then intake_put or intake_leave follows. O(items). */
enum profd_status intake_reserve(struct intake *n, struct intake_parcel *p, struct profd_error *e);
/* Gives up the memory. */
void intake_leave(struct intake *n, struct intake_parcel *p);
/* Its segments are stored with those of others, soon; done says so. Only of a host that was admitted. */
void intake_put(struct intake *n, struct intake_parcel *p);
/* Counts segments that were refused before they were put. */
void intake_refuse(struct intake *n, const uint8_t host[STORE_HOST_SIZE], size_t count);

/* A host has come. status: why it was not admitted. */
struct intake_arrival {
    const uint8_t *host;
    const char *name;
    uint32_t tenant;
    enum profd_status status;
    bool restored;
    uint64_t clock, oldest; /* ns, by its clock: now, and of the oldest segment that it still has; 0: it has none */
};
/* Counts it. Only hosts that were admitted take memory. */
void intake_arrived(struct intake *n, const struct intake_arrival *a);
/* How long a host that came now (ns) waits until it comes again. In an interval, the centre gets at most 1,000 series
 * for each second; series is their number. A host's place in the interval comes from its identity, which is random. */
uint32_t intake_get_wait(struct intake *n, const uint8_t host[STORE_HOST_SIZE], int64_t now, uint64_t series);

/* Its owner counts what segments are not. */
struct centre_counts *intake_get_counts(struct intake *n);
/* Identity → struct host_counts, of the hosts that came since the start. */
const struct hashmap *intake_get_hosts(const struct intake *n);

#endif
