/* What was sampled in an interval: a tally for each program, user, name, cgroup and random group of processes
 * (schema/spread.md). They become uploads. */
#ifndef PROFD_CLIENT_RECORD_SUMS_H
#define PROFD_CLIENT_RECORD_SUMS_H

#include <sys/queue.h>

#include "profd.h"
#include "proto/limits.h"
#include "record/image.h"
#include "record/origin.h"
#include "record/tally.h"

struct sum {
    STAILQ_ENTRY(sum) link;
    uint32_t program; /* a build */
    struct origin origin;
    uint32_t group;             /* of its processes */
    uint8_t key[LIMIT_PROCESS]; /* of the first of them */
    struct tally tally;
    uint32_t started; /* processes of which the first sample is in it */
    bool lost;        /* samples of it were lost for want of memory */
};

struct sums {
    STAILQ_HEAD(sum_list, sum) list;
    struct arena *arena;
    uint32_t count, rate;
};

enum profd_status sums_init(struct sums *s, uint32_t rate, struct profd_error *e);
void sums_done(struct sums *s);
/* The sum of that program, origin and group, created on first use: then key, of LIMIT_PROCESS bytes, is copied. NULL:
 * no memory. O(sums). */
struct sum *sums_take(struct sums *s, uint32_t program, const struct origin *origin, uint32_t group,
                      const uint8_t *key);
/* True if there is a sum of that program and origin, of whatever group. O(sums). */
bool sums_has(const struct sums *s, uint32_t program, const struct origin *origin);
/* Adds samples that the kernel lost, of whatever program, once to each program of a user. O(sums²). */
void sums_add_lost(struct sums *s, uint64_t samples);
/* Discards all. */
void sums_clear(struct sums *s);

/* ns since 1970 */
struct sums_window {
    uint64_t start, end;
};
/* Fills the upload of a sum: builds, counts and the labels host, comm, unit, container and cgroup, of which it keeps
 * those that it has. */
enum profd_status sum_fill_upload(const struct sum *s, const struct images *images, const struct sums_window *w,
                                  struct profd_upload *u, struct profd_error *e);

#endif
