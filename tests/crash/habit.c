/* What daemons of the campaign do besides storing. */
#include "tests/crash/campaign.h"

const struct habit habits[HABITS] = {
    [HABIT_PLAIN] = {.name = "storing", .life_us = 30000},
    [HABIT_SUMS] = {.name = "rolling up",
                    .options = {"--raw-age", "1s", "--raw-bytes", "64K", "--keep-age", "0"},
                    .hours = 100,
                    .life_us = 500000},
    [HABIT_RETENTION] = {.name = "rolling up and removing",
                         .options = {"--raw-age", "1s", "--raw-bytes", "64K", "--keep-age", "1s"},
                         .hours = 100,
                         .keep = INT64_C(1000000000),
                         .life_us = 500000},
};

void run_accustom(struct run *r, const struct habit *h)
{
    for (size_t i = 0; i < DAEMON_OPTIONS; i++) {
        r->daemon.options[i] = h->options[i];
    }
    r->stream->hours = h->hours;
    r->stream->keep = h->keep;
}
