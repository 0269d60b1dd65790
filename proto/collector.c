#include "proto/collector.h"

#include <string.h>

bool collector_is_dimension(const char *dimension)
{
    return strcmp(dimension, COLLECTOR_DIMENSION) == 0;
}

const char *collector_counter_name(uint32_t counter)
{
    static const char *const NAMES[COLLECTOR_COUNTERS_MAX] = {
#define X(name, number, json, text) [number] = (json),
        COLLECTOR_COUNTER_LIST(X)
#undef X
    };
    return counter < COLLECTOR_COUNTERS_MAX ? NAMES[counter] : NULL;
}

bool collector_counter_is_time(uint32_t counter)
{
    return (counter >= COLLECTOR_CPU_NS && counter <= COLLECTOR_OUTSIDE_NS) || counter == COLLECTOR_CLOCK_OFF_NS ||
           counter == COLLECTOR_UNCLOCKED_NS || counter == COLLECTOR_UNDELIVERED_NS;
}
