/* Collects the uploads of hosts at a centre for a short time and stores many of them in one transaction. Requests are
 * answered after the commit. Also counts what each host sends, and computes when a host connects again. On the loop's
 * thread. */
#ifndef PROFD_REQUESTS_INTAKE_H
#define PROFD_REQUESTS_INTAKE_H

#include "requests/numbers.h"

#define INTAKE_WANTED 32u

struct intake;
struct shared;

/* All parts outlive the intake. */
struct intake_config {
    int64_t interval; /* ns: a host connects at most once in it */
    struct store_detail detail;
    const struct shared *shared;
};

/* An upload of a host until it is answered. */
struct intake_item {
    struct store_delivery delivery; /* the owner sets bytes and size, and keeps the bytes */
    struct segment segment;
    bool decoded;
    enum profd_status status; /* why it is refused; OK: receipt has the outcome */
    struct profd_error error;
    struct store_receipt receipt;
};

/* The uploads of one request, which are stored in one transaction or in several. After an error some may be stored. */
struct intake_parcel {
    /* The owner sets these. */
    uint8_t host[STORE_HOST_SIZE];
    uint32_t tenant;  /* its number for rights */
    const char *name; /* of the host, for the log */
    struct intake_item *items;
    size_t count;
    void (*done)(struct intake_parcel *p); /* called once, when all items have an outcome; may free p */

    STAILQ_ENTRY(intake_parcel) next;
    size_t weight;            /* bytes of memory */
    bool prepared;            /* the items are decoded */
    enum profd_status status; /* why none of its uploads is stored */
    struct profd_error error;
    struct store_centre centre;           /* after the commit: as of store_get_greeting */
    struct buildid wanted[INTAKE_WANTED]; /* after the commit: the host shall offer symbols of these */
    size_t wanted_count;
};

enum profd_status intake_new(const struct intake_config *config, struct intake **out, struct profd_error *e);
/* Ends the waiting parcels with STOPPING. Call it after the writer's thread has ended. Accepts NULL. */
void intake_free(struct intake *n);
/* Sets the interval and the detail from now on. */
void intake_set(struct intake *n, int64_t interval, const struct store_detail *detail);
/* Stores the waiting uploads now. */
void intake_flush(struct intake *n);

/* Reserves memory for a parcel. BUSY if other parcels leave too little. TOO_LARGE if no parcel may have as much. On OK
 * the caller must call intake_put or intake_leave. O(items). */
enum profd_status intake_reserve(struct intake *n, struct intake_parcel *p, struct profd_error *e);
/* Releases this memory. */
void intake_leave(struct intake *n, struct intake_parcel *p);
/* Queues the parcel of an admitted host. done is called after its uploads were stored or refused. */
void intake_put(struct intake *n, struct intake_parcel *p);
/* Counts uploads that were refused before intake_put. */
void intake_refuse(struct intake *n, const uint8_t host[STORE_HOST_SIZE], size_t count);

/* A host has connected. status: why it was not admitted. */
struct intake_arrival {
    const uint8_t *host;
    const char *name;
    uint32_t tenant;
    enum profd_status status;
    bool restored;
    uint64_t clock, oldest; /* ns, by its clock: now, and of its oldest unacknowledged upload; 0: it has none */
};
/* Counts it. Only hosts that were admitted take memory. */
void intake_arrived(struct intake *n, const struct intake_arrival *a);
/* Returns the time until a host that connected now (ns) connects again. The interval is long enough for the centre to
 * get at most 1,000 series a second; series is their number. A hash of the identity places the host in the interval. */
uint32_t intake_get_wait(struct intake *n, const uint8_t host[STORE_HOST_SIZE], int64_t now, uint64_t series);

/* The caller counts everything except uploads. */
struct centre_counts *intake_get_counts(struct intake *n);
/* Identity → struct host_counts, for hosts that connected since the start. */
const struct hashmap *intake_get_hosts(const struct intake *n);

#endif
