#include "query/steps.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

/* Steps divide a day or are whole days, so that they begin where sums begin, in UTC. */
static const struct {
    const char *text;
    int64_t seconds;
} STEPS[] = {{"1m", 60},    {"5m", 300},   {"10m", 600},  {"15m", 900},  {"30m", 1800},  {"1h", 3600},  {"2h", 7200},
             {"3h", 10800}, {"4h", 14400}, {"6h", 21600}, {"8h", 28800}, {"12h", 43200}, {"1d", 86400}, {"7d", 604800}};

enum profd_status steps_parse(struct job *job, int64_t usual, int64_t *step, struct profd_error *e)
{
    const char *text = params_find(job->params, "step");
    int64_t found = text == NULL ? usual : 0;
    for (size_t i = 0; text != NULL && i < sizeof STEPS / sizeof *STEPS; i++) {
        if (strcmp(STEPS[i].text, text) == 0) {
            found = STEPS[i].seconds * SECOND;
        }
    }
    if (text != NULL && found == 0) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "step=%s is none of: 1m, 5m, 10m, 15m, 30m, 1h, 2h, 3h, 4h, 6h, 8h, 12h, 1d, 7d", text);
    }
    job->unsettled = found % STEPS_HOUR != 0;
    *step = found;
    return PROFD_OK;
}

enum profd_status steps_find_span(const struct work *w, int64_t step, int64_t *begin, int64_t *end,
                                  struct profd_error *e)
{
    int64_t from = w->options.since > 0 ? w->options.since : w->first_seen;
    int64_t to = w->options.until > 0 ? w->options.until : w->last_seen + 1;
    from = from < w->first_seen ? w->first_seen : from;
    to = to > w->last_seen + 1 ? w->last_seen + 1 : to;
    int64_t steps = step > 0 && from < to ? (to - from) / step + 1 : 0;
    if (steps > LIMIT_STEPS) {
        return profd_error_set(e, PROFD_BAD_QUERY,
                               "%" PRId64 " steps, the limit is %u; use a longer step= or a shorter time range", steps,
                               LIMIT_STEPS);
    }
    *begin = from;
    *end = to;
    return PROFD_OK;
}
