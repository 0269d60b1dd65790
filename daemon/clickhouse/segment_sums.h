/* Sums of segments: rows of table segment_group become the rows that a plan names. */
#ifndef PROFD_CLICKHOUSE_SEGMENT_SUMS_H
#define PROFD_CLICKHOUSE_SEGMENT_SUMS_H

#include "clickhouse/plan.h"
#include "core/share.h"
#include "store/folded.h"

/* A sum. Everything lives in the arena. */
struct summed {
    struct folded row; /* number: commit of its first segment (store/incoming.h); no hosts. ticks, calls: Σ of the
                          segments' */
    uint64_t stack_ticks;
    const struct share *shares; /* of each build; calls: into it */
    uint64_t segments;          /* that are in it */
    uint64_t content;           /* of equal content equal, of another most likely another */
    uint32_t *hosts;            /* slots, ascending */
    size_t host_count;
};

/* Reads the segments of these rows of a plan, none of which is rolled up, and adds them up. The server is asked in
 * parts of bounded size, and each segment counts once, however often its rows are there. spread: sums have one. BUSY:
 * rows of a segment are missing, or segments that the plan saw. O(rows of the segments). */
enum profd_status sums_read(const struct plan *p, const struct plan_ref *refs, size_t n, bool spread, struct arena *a,
                            struct summed *out, struct profd_error *e);

/* The same part by part: plan, rows and arena are borrowed until sums_close, which accepts NULL. *more: call sums_step
 * again, else sums_finish. */
struct sums;
enum profd_status sums_open(const struct plan *p, const struct plan_ref *refs, size_t n, bool spread, struct arena *a,
                            struct sums **out, struct profd_error *e);
enum profd_status sums_step(struct sums *r, bool *more, struct profd_error *e);
enum profd_status sums_finish(struct sums *r, struct summed *out, struct profd_error *e);
void sums_close(struct sums *r);

#endif
