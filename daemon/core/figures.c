#include "core/figures.h"

const double durations_bounds[DURATIONS_BOUNDS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};

void durations_add(struct durations *d, double seconds)
{
    unsigned i = 0;

    while (i < DURATIONS_BOUNDS && seconds > durations_bounds[i]) {
        i++;
    }
    d->buckets[i]++;
    d->count++;
    d->sum += seconds;
}

void downtime_measure(const struct downtime *d, int64_t first, int64_t last, uint64_t *count, int64_t *ns)
{
    *count = 0;
    *ns = 0;
    for (size_t i = 0; i < d->count; i++) {
        const int64_t from = d->gaps[i].from > first ? d->gaps[i].from : first;
        const int64_t to = d->gaps[i].to < last ? d->gaps[i].to : last;

        if (to > from) {
            *count += 1;
            *ns += to - from;
        }
    }
}
