#include "core/downtime.h"

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
