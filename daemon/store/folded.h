/* Sums of uploads as they are stored, beside what a rollup has: how many uploads and processes, when, of which
 * hosts. Pure. */
#ifndef PROFD_STORE_FOLDED_H
#define PROFD_STORE_FOLDED_H

#include "core/spread.h"
#include "core/rollup.h"

/* A row, or what is to be added to one. Arrays live in an arena. */
struct folded {
    bool folded;
    int64_t number; /* of its first upload */
    uint64_t uploads, processes;
    struct random_groups groups; /* of the processes */
    int64_t first, last;
    uint32_t inexact;
    uint64_t ticks, calls; /* as its columns say; not looked at when it is stored */
    size_t host_count;
    const int64_t *hosts; /* row ids, ascending */
    struct counts counts;
    struct counts_shares spread;
};

/* True if rollup_sum_limit may have cut the counts. They never get fewer again. */
bool folded_is_cut(const struct counts *c);

/* Row ids of hosts from their blob, in the arena. DAMAGED if they do not ascend. */
enum profd_status folded_decode_hosts(struct arena *a, const uint8_t *in, size_t n, const int64_t **hosts,
                                      size_t *count, struct profd_error *e);
/* Merges two ascending sets; false when out of memory. */
bool folded_merge_hosts(struct arena *a, const int64_t *x, size_t nx, const int64_t *y, size_t ny, const int64_t **out,
                        size_t *count);

/* The blob of a set of hosts, in the arena, of *n bytes; NULL when out of memory. */
uint8_t *folded_encode_hosts(struct arena *a, const int64_t *hosts, size_t count, size_t *n);

/* A sum of rows or uploads in the making. */
struct folding {
    struct arena *arena;
    struct rollup_sum *sum;
    struct folded out;
};
enum profd_status folding_begin(struct folding *f, struct arena *a, struct profd_error *e);
enum profd_status folding_add(struct folding *f, const struct folded *row, struct profd_error *e);
/* out becomes whole. */
enum profd_status folding_finish(struct folding *f, struct profd_error *e);

#endif
