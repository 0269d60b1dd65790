/* A sum as the profile that reports are made from. */
#include <string.h>

#include "core/rollup.h"
#include "core/sum.h"
#include "proto/collector.h"

static void make_histograms(const struct counts *r, struct arena *a, struct profile *p, bool *stopped)
{
    p->histograms = ARENA_ARRAY(a, r->histogram_count, struct profile_histogram);
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        const struct counts_histogram *from = &r->histograms[i];
        struct profile_histogram *h = &p->histograms[i];
        *h = (struct profile_histogram){.geometry = from->geometry,
                                        .used = from->used,
                                        .index = r->bin_index + from->first,
                                        .ticks = r->bin_ticks + from->first,
                                        .order = from->order};
        for (uint32_t k = 0; k < h->used && !collector_is_dimension(h->dimension); k++) {
            *stopped |= h->ticks[k] == SUM_MAX;
            sum_add(&p->ticks, h->ticks[k], &p->saturated);
        }
    }
    p->histogram_count = r->histogram_count;
}

void rollup_make_profile(const struct counts *r, struct arena *a, struct profile *p)
{
    bool stopped = false;
    p->ticks = p->calls = 0;
    p->saturated = false;
    make_histograms(r, a, p, &stopped);
    p->arcs = ARENA_ARRAY(a, r->arc_count, struct profile_arc);
    for (uint32_t i = 0; i < r->arc_count; i++) {
        p->arcs[i] = (struct profile_arc){r->from_build[i], r->to_build[i], r->from[i],
                                          r->to[i],         r->calls[i],    {r->commit[i], r->rank[i]}};
        stopped |= r->calls[i] == SUM_MAX;
        sum_add(&p->calls, r->calls[i], &p->saturated);
    }
    p->arc_count = r->arc_count;
    /* What saturated may have been left out since (another build, the histograms). */
    p->saturated |= r->saturated && stopped;
}
