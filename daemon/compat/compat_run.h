/* All that a listing reads, and the steps that make it: symbols, then counts, then print. */
#ifndef PROFD_COMPAT_COMPAT_RUN_H
#define PROFD_COMPAT_COMPAT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "compat/compat_arcs.h"
#include "compat/compat_cycles.h"
#include "compat/compat_filter.h"
#include "compat/compat_graph.h"
#include "compat/compat_hist.h"
#include "compat/compat_options.h"
#include "compat/compat_symbols.h"
#include "core/buffer.h"
#include "core/object.h"
#include "proto/counts.h"

struct compat_run {
    struct compat_options options;
    const struct object *object;
    struct compat_symbols symbols;
    struct compat_filter filter;
    bool has_histogram, has_arcs; /* a record was read, perhaps to no avail */
    struct compat_hist hist;
    struct compat_arcs arcs;
    struct compat_cycles cycles;
    struct compat_graph graph;
};

/* Ticks become seconds when printed: x / rate. Without a histogram the rate is 0, and 0/0 is what gprof prints. */
static inline double compat_run_rate(const struct compat_run *r)
{
    return (double)r->hist.rate;
}

/* Bytes in a bin as gprof prints them: whole units of two bytes, 0 for what is no number, and negative where it
 * overflows. */
static inline int64_t compat_run_granularity(const struct compat_run *r)
{
    return r->hist.scale >= 0.0 && r->hist.scale < 0x1p63 ? (int64_t)((uint64_t)r->hist.scale * 2) : 0;
}

/* Step 1: reads the symbols and selects those that take part. Borrows options' specs and the object. REFUSED: no .text,
 * or no symbols. O(symbols × (log symbols + specs)). */
enum profd_status compat_run_open(struct compat_run *r, const struct compat_options *options,
                                  const struct object *object, struct arena *a, struct profd_error *e);

/* Step 2: counts to symbols, -c's arcs, times. has_histogram and has_arcs are taken from the counts, or set by the
 * caller before. CONFLICT in gprof's words: compat_hist_assign's. */
enum profd_status compat_run_count(struct compat_run *r, const struct counts *counts, struct arena *a,
                                   struct profd_error *e);

/* Step 3. REFUSED in gprof's words, and nothing printed, if a style wants what was not counted. TOO_LARGE at a buffer's
 * limit; whether a drain took everything is what buffer_flush tells, and what it took stays printed. */
enum profd_status compat_run_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                   struct profd_error *e);

#endif
