/* State of a listing, and the steps that make it: symbols, then counts, then print. */
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
    bool has_histogram, has_arcs; /* a record was read, even if it has no effect */
    struct compat_hist hist;
    struct compat_arcs arcs;
    struct compat_cycles cycles;
    struct compat_graph graph;
};

/* Ticks are converted to seconds when printed: x / rate. Without a histogram the rate is 0, and gprof prints 0/0. */
static inline double compat_run_rate(const struct compat_run *r)
{
    return (double)r->hist.rate;
}

/* Bytes of a bin as gprof prints them: complete units of two bytes, 0 for NaN, and negative on overflow. */
static inline int64_t compat_run_granularity(const struct compat_run *r)
{
    return r->hist.scale >= 0.0 && r->hist.scale < 0x1p63 ? (int64_t)((uint64_t)r->hist.scale * 2) : 0;
}

/* Step 1: reads and selects the symbols. Borrows the specs of the options and the object. REFUSED: no .text, or no
 * symbols. O(symbols × (log symbols + specs)). */
enum profd_status compat_run_open(struct compat_run *r, const struct compat_options *options,
                                  const struct object *object, struct arena *a, struct profd_error *e);

/* Step 2: assigns counts to symbols, adds the arcs of -c, and computes times. has_histogram and has_arcs are derived
 * from the counts, unless the caller has set them before. CONFLICT as compat_hist_assign. */
enum profd_status compat_run_count(struct compat_run *r, const struct counts *counts, struct arena *a,
                                   struct profd_error *e);

/* Step 3: prints. REFUSED, with gprof's message: a style requires counts that are missing; nothing was printed.
 * TOO_LARGE: the limit of the buffer was reached. If the buffer has a drain, buffer_flush tells whether it accepted
 * everything; what it accepted stays printed. */
enum profd_status compat_run_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                   struct profd_error *e);

#endif
