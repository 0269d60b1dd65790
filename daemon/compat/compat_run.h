/* All that a listing reads. */
#ifndef PROFD_COMPAT_COMPAT_RUN_H
#define PROFD_COMPAT_COMPAT_RUN_H

#include <stdint.h>

#include "compat/compat_arcs.h"
#include "compat/compat_cycles.h"
#include "compat/compat_filter.h"
#include "compat/compat_graph.h"
#include "compat/compat_hist.h"
#include "compat/compat_options.h"
#include "compat/compat_symbols.h"

struct compat_run {
    struct compat_options options;
    struct compat_symbols symbols;
    struct compat_filter filter;
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

#endif
