#include "core/diff_table.h"

#include <stddef.h>

const char *diff_metric_name(enum diff_metric metric)
{
#define X(name, text) text,
    static const char *const NAMES[] = {DIFF_METRICS(X)};
#undef X
    return (unsigned)metric < DIFF_METRIC_COUNT ? NAMES[metric] : NULL;
}

const char *diff_verdict_name(enum diff_verdict verdict)
{
    static const char *const NAMES[DIFF_VERDICTS] = {"changed",   "constant-changed", "only-in-a", "only-in-b",
                                                     "uncertain", "not-significant",  "constant",  "too-few"};
    return NAMES[verdict];
}

const char *diff_needs_name(enum diff_needs needs)
{
    static const char *const NAMES[DIFF_NEEDS] = {"nothing", "data", "processes", "too-much"};
    return NAMES[needs];
}
