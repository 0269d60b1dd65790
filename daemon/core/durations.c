#include "core/durations.h"

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
