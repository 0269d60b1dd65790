/* What of the times without a daemon lies within a report. */
#include <criterion/criterion.h>

#include "core/figures.h"

Test(downtime, only_what_lies_between_counts)
{
    static const struct downtime d = {.count = 3, .gaps = {{10, 20}, {30, 35}, {50, 90}}};
    uint64_t count;
    int64_t ns;

    downtime_measure(&d, 0, 100, &count, &ns);
    cr_assert(count == 3 && ns == 55);
    downtime_measure(&d, 15, 60, &count, &ns);
    cr_assert(count == 3 && ns == 5 + 5 + 10);
    downtime_measure(&d, 20, 30, &count, &ns); /* between two */
    cr_assert(count == 0 && ns == 0);
    downtime_measure(&d, 60, 61, &count, &ns); /* within one */
    cr_assert(count == 1 && ns == 1);
    downtime_measure(&d, 0, 0, &count, &ns); /* of a report without data */
    cr_assert(count == 0 && ns == 0);
}
