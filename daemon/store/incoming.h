/* Segments that arrive. Pure. */
#ifndef PROFD_STORE_INCOMING_H
#define PROFD_STORE_INCOMING_H

#include "core/arena.h"
#include "core/rollup.h"
#include "store/store.h"

/* A segment as it is stored. Arrays live in the arena or are those of the segment, which has been decoded. */
struct incoming {
    struct store_upload upload; /* of a tenant: builds with their shares, labels with the host's name, window, sums;
                                   no counts */
    struct random_groups groups;
    uint64_t uploads, processes;
    struct counts counts; /* those of the segment */
    int64_t hour;
    int64_t width; /* ns: 1, 5, 15 or 60 minutes of the clock that contain the ends of everything in it; an hour, unless
                      the hour is the one in which it was received, or the one before */
    int64_t ended; /* ns: earliest end; 0: width is an hour */
    struct counts_order order; /* when the first of its rows arrived */
    bool relabelled;           /* it had another label `host` */
};

/* name, clock and the tenant's uid are those of the host's latest arrival. detail: the name becomes the label `host`;
 * else there is none. NO_MEMORY or OK. O(rows). */
enum profd_status incoming_read(struct arena *a, const struct store_delivery *d, const char *name, bool detail,
                                int64_t clock, uint32_t uid, struct incoming *out, struct profd_error *e);

/* Order of first arrival in the fleet of a segment's first row: the same whatever arrives first (DECISIONS 49). */
struct counts_order incoming_order(int64_t hour, const uint8_t epoch[SEGMENT_EPOCH_SIZE], uint64_t sequence);

/* The rows of a segment as a sum with its shares, as if they had arrived in their order, the first of them at this
 * time. Arrays live in the arena or are those of the segment. NO_MEMORY or OK. O(rows) of a sum; of an upload, as
 * rollup_sum_add_upload. */
enum profd_status incoming_sum(const struct segment *s, const struct counts_order *at, struct arena *a,
                               struct counts *r, struct counts_shares *spread, struct profd_error *e);

/* Adds to calls[i] the calls of arcs that begin or end in build i, as questions about one build count them. True if a
 * sum stopped at 2^63−1. O(arcs). */
bool incoming_add_touching(const struct counts *r, uint64_t *calls, size_t builds);

/* The hour of a segment of which only the key is left. */
int64_t incoming_hour(const struct segment *s, int64_t clock);

#endif
