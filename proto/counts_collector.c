/* The histogram of the collector's counters among the counts. */
#include "proto/counts_internal.h"
#include "proto/collector.h"

void collector_make_histogram(struct counts_histogram *h, uint32_t program)
{
    *h = (struct counts_histogram){.build = program,
                                   .bins = COLLECTOR_COUNTERS_MAX,
                                   .low = 0,
                                   .high = COLLECTOR_COUNTERS_MAX,
                                   .rate = 1,
                                   .dimension = COLLECTOR_DIMENSION,
                                   .abbreviation = 'c'};
}

/* The geometry is fixed; otherwise the counters of two versions could not be added up. */
enum profd_status counts_check_collector_histogram(const struct counts_histogram *h, uint32_t at, struct profd_error *e)
{
    struct counts_histogram w;
    collector_make_histogram(&w, h->build);
    if (h->low == w.low && h->high == w.high && h->bins == w.bins && h->rate == w.rate &&
        h->abbreviation == w.abbreviation) {
        return PROFD_OK;
    }
    return profd_error_set(
        e, PROFD_MALFORMED,
        "histogram %u of dimension " COLLECTOR_DIMENSION ": 0x%llx-0x%llx, %u bins, rate %u, '%c'; it must be "
        "0x%llx-0x%llx, %u bins, rate %u, '%c'",
        at, (unsigned long long)h->low, (unsigned long long)h->high, h->bins, h->rate, h->abbreviation,
        (unsigned long long)w.low, (unsigned long long)w.high, w.bins, w.rate, w.abbreviation);
}

enum profd_status counts_check_collector(const struct counts *c, struct profd_error *e)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (!collector_is_dimension(c->histograms[i].dimension)) {
            continue;
        }
        if (found != UINT32_MAX) {
            return profd_error_set(e, PROFD_MALFORMED,
                                   "histograms %u and %u are both of dimension " COLLECTOR_DIMENSION ": at most one is",
                                   found, i);
        }
        found = i;
    }
    return PROFD_OK;
}
