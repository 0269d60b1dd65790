#include <math.h>
#include <string.h>

#include "compat/compat_gmon_internal.h"

static double scale_of(const struct counts_histogram *h)
{
    return (double)((h->high - h->low) / 2) / h->bins;
}

/* The same message in the three lines of gprof. */
static enum profd_status judge_dimension(const struct gmon_file *f, const struct counts_histogram *first,
                                         const struct counts_histogram *h)
{
    const char *p = f->g->program;
    if (strncmp(h->dimension, first->dimension, 15) != 0) {
        return gmon_complain(f, PROFD_CONFLICT,
                             "%s: dimension unit changed between histogram records\n%s: from '%s'\n%s: to '%s'\n", p, p,
                             first->dimension, p, h->dimension);
    }
    if (h->abbreviation != first->abbreviation) {
        return gmon_complain(
            f, PROFD_CONFLICT,
            "%s: dimension abbreviation changed between histogram records\n%s: from '%c'\n%s: to '%c'\n", p, p,
            first->abbreviation, p, h->abbreviation);
    }
    if (fabs(scale_of(first) - scale_of(h)) > 0.000001) {
        return gmon_complain(f, PROFD_CONFLICT, "%s: different scales in histogram records", p);
    }
    return PROFD_OK;
}

static bool ranges_meet(const struct counts_histogram *x, const struct counts_histogram *y)
{
    uint64_t low = x->low > y->low ? x->low : y->low, high = x->high < y->high ? x->high : y->high;
    return low < high;
}

enum profd_status gmon_judge_histogram(const struct gmon_file *f, struct counts_histogram *h)
{
    const struct counts *c = &f->g->counts;
    if (c->histogram_count == 0) {
        return PROFD_OK;
    }
    enum profd_status status = judge_dimension(f, &c->histograms[0], h);
    if (status != PROFD_OK) {
        return status;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *k = &c->histograms[i];
        if (k->low != h->low || k->high != h->high) {
            continue;
        }
        h->bins = k->bins;
        return PROFD_OK;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (ranges_meet(&c->histograms[i], h)) {
            return gmon_complain(f, PROFD_CONFLICT, "%s: overlapping histogram records\n", f->g->program);
        }
    }
    return PROFD_OK;
}
