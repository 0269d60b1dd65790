/* Counts of what hosts have sent, in a database server beside the store's own file. The store's file says which
 * segments count, and the server has their bytes: what is read there is compared with what the file says, so that a
 * server that lacks a segment, or has one more, is noticed and never shown as a sum.
 *
 * A handle belongs to one thread. Calls are bounded in time and memory. */
#ifndef PROFD_STORE_REMOTE_H
#define PROFD_STORE_REMOTE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/buildid.h"
#include "proto/segment.h"
#include "proto/status.h"
#include "store/arrivals.h"

#define REMOTE_SERIES_SIZE 16

struct remote;

/* A segment on the server. Its key is (program, sent, epoch, sequence), all of which follow from its bytes. Of rows
 * with the same key the one with the greatest number remains. Pointers are borrowed for the call. */
struct remote_row {
    const char *program; /* build-id */
    uint32_t sent;       /* hour, as remote_sent_hour gives it */
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    uint64_t number;                    /* of its arrival */
    uint8_t series[REMOTE_SERIES_SIZE]; /* hash of the user, the program, the builds and the labels */
    uint32_t hour;                      /* in which it counts */
    uint32_t uid;                       /* of its tenant */
    uint8_t host[STORE_HOST_SIZE];
    int64_t first, last; /* ns: as they count */
    uint32_t inexact;
    uint64_t uploads, ticks, calls;
    const uint8_t *bytes; /* profd-segment(5) */
    size_t size;
};

/* Hours since the epoch of a segment by its own clock, at most 2^32 − 1 seconds. */
uint32_t remote_sent_hour(const struct segment *s);

/* What is to be read: the segments of a series that count in an hour. */
struct remote_hour {
    const char *program;
    uint8_t series[REMOTE_SERIES_SIZE];
    uint32_t hour;
    uint32_t sent_from, sent_to; /* the hours of their keys, both included */
};

struct remote_ops {
    /* Stores rows for good. A row with a key that is there replaces it, so that a call may be repeated. */
    enum profd_status (*put)(struct remote *r, const struct remote_row *rows, size_t n, struct profd_error *e);
    /* Reads the rows of these hours, with a key of which the hash modulo parts is part (< parts): 0, 1 for all. Sorted
     * by (hour, series, epoch, sequence), the rows of one key by descending number. *rows is borrowed until the next
     * call. Of each row the members from epoch to series, hour, host, first, last, inexact and bytes are set. */
    enum profd_status (*read)(struct remote *r, const struct remote_hour *hours, size_t n, unsigned part,
                              unsigned parts, const struct remote_row **rows, size_t *count, struct profd_error *e);
    void (*close)(struct remote *r);
};

/* First member of every server's handle. */
struct remote {
    const struct remote_ops *ops;
};

/* Makes handles. */
struct remote_maker {
    enum profd_status (*make)(const struct remote_maker *m, struct remote **out, struct profd_error *e);
};

struct store;
/* From now on the bytes of what hosts send are stored on this server by the writing handle, before the file says that
 * they count, and are read from there. Sums of before stay in the file. Storing and reading are BUSY while the server
 * cannot store or read, or does not have exactly what the file says; without a server, so is reading such hours. For a
 * handle of sqlite on which no verb is running. m outlives the store; NULL: there is no server, and nothing is done. */
enum profd_status store_sqlite_attach(struct store *s, const struct remote_maker *m, struct profd_error *e);

#endif
