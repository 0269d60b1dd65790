/* The collector's counters: computes their differences, in units that can be added up. */
#include <string.h>

#include "core/sum.h"
#include "ingest/attach_internal.h"

#define SECOND 1000000000u

__extension__ typedef unsigned __int128 wide;

void attach_counters_read(const struct attach_image *image, const struct attach_builds *b, uint64_t outside,
                          const struct attach_snapshot *before, uint64_t out[ATTACH_SNAPSHOT_COUNTERS])
{
    bool saturated = false;
    memset(out, 0, ATTACH_SNAPSHOT_COUNTERS * sizeof out[0]);
    for (unsigned i = 0; i < ATTACH_COUNTER_COUNT; i++) {
        out[i] = image->header.counters[i] > SUM_MAX ? SUM_MAX : image->header.counters[i];
    }
    out[ATTACH_SNAPSHOT_NAMELESS] = b->nameless;
    out[ATTACH_SNAPSHOT_UNLISTED] = b->unlisted;
    for (unsigned i = 0; i < ATTACH_SNAPSHOT_COUNTERS; i++) {
        if (out[i] < before->counters[i]) {
            out[i] = before->counters[i];
        }
    }
    sum_add(&out[ATTACH_SNAPSHOT_OUTSIDE], outside, &saturated);
}

static uint64_t to_ns(uint64_t ticks, uint32_t rate)
{
    wide ns = rate ? (wide)ticks * SECOND / rate : 0;
    return ns > SUM_MAX ? SUM_MAX : (uint64_t)ns;
}

struct pair {
    const struct attach_snapshot *after, *before;
};

static uint64_t grown(const struct pair *p, unsigned counter)
{
    return p->after->counters[counter] - p->before->counters[counter];
}

/* Ticks as time. Rounded so that the differences add up to the whole's time. */
static uint64_t grown_ns(const struct pair *p, unsigned counter)
{
    uint32_t rate = p->after->rate;
    if (p->before->rate != rate) {
        return to_ns(grown(p, counter), rate);
    }
    return to_ns(p->after->counters[counter], rate) - to_ns(p->before->counters[counter], rate);
}

void attach_counters_subtract(const struct attach_snapshot *after, const struct attach_snapshot *before,
                              enum attach_mode mode, bool first, uint64_t out[COLLECTOR_COUNTERS_MAX])
{
    static const struct {
        unsigned counter;
        unsigned char from, ns;
    } MAP[] = {
        {COLLECTOR_CPU_NS, ATTACH_COUNTER_CPU_NS, 0},
        {COLLECTOR_INSIDE_NS, ATTACH_COUNTER_TICKS_INSIDE, 1},
        {COLLECTOR_BLOCKED_NS, ATTACH_COUNTER_TICKS_BLOCKED, 1},
        {COLLECTOR_DROPPED_NS, ATTACH_COUNTER_TICKS_DROPPED, 1},
        {COLLECTOR_OUTSIDE_NS, ATTACH_SNAPSHOT_OUTSIDE, 1},
        {COLLECTOR_CALLS_LOST, ATTACH_COUNTER_CALLS_LOST, 0},
        {COLLECTOR_CALLS_JUNK, ATTACH_COUNTER_CALLS_JUNK, 0},
        {COLLECTOR_PAIRS_DROPPED, ATTACH_COUNTER_PAIRS_DROPPED, 0},
        {COLLECTOR_THREADS, ATTACH_COUNTER_THREADS, 0},
        {COLLECTOR_THREADS_UNTIMED, ATTACH_COUNTER_THREADS_UNTIMED, 0},
        {COLLECTOR_MODULES_LOST, ATTACH_COUNTER_MODULES_LOST, 0},
        {COLLECTOR_MODULES_NAMELESS, ATTACH_SNAPSHOT_NAMELESS, 0},
        {COLLECTOR_SIGPROF_FOREIGN, ATTACH_COUNTER_FOREIGN_SIGPROF, 0},
        {COLLECTOR_FORKS_UNSEEN, ATTACH_COUNTER_FORKS_UNSEEN, 0},
        {COLLECTOR_PAUSES, ATTACH_COUNTER_PAUSES, 0},
        {COLLECTOR_OVERLAPS, ATTACH_COUNTER_OVERLAPS, 0},
    };
    struct pair p = {after, before};
    bool saturated = false;
    memset(out, 0, COLLECTOR_COUNTERS_MAX * sizeof out[0]);
    for (unsigned i = 0; i < sizeof MAP / sizeof MAP[0]; i++) {
        out[MAP[i].counter] = MAP[i].ns ? grown_ns(&p, MAP[i].from) : grown(&p, MAP[i].from);
    }
    out[mode == ATTACH_MODE_WALL ? COLLECTOR_WALL_NS : COLLECTOR_SAMPLED_NS] = grown_ns(&p, ATTACH_COUNTER_TICKS);
    out[COLLECTOR_CLOCK_OFF_NS] = mode == ATTACH_MODE_OFF ? out[COLLECTOR_CPU_NS] : 0;
    sum_add(&out[COLLECTOR_MODULES_LOST], grown(&p, ATTACH_SNAPSHOT_UNLISTED), &saturated);
    out[COLLECTOR_PROCESSES] = first;
}

bool attach_counters_lost(const struct attach_snapshot *after, const struct attach_snapshot *before)
{
    /* Each of the first was a loss at that time; the others are states, and what goes on in them is lost, too. */
    static const unsigned char LOSSES[] = {ATTACH_COUNTER_CALLS_LOST, ATTACH_COUNTER_CALLS_JUNK,
                                           ATTACH_COUNTER_TICKS_DROPPED, ATTACH_COUNTER_TICKS_BLOCKED};
    static const unsigned char STATES[] = {ATTACH_COUNTER_MODULES_LOST,    ATTACH_COUNTER_FORKS_UNSEEN,
                                           ATTACH_COUNTER_OVERLAPS,        ATTACH_COUNTER_THREADS_UNTIMED,
                                           ATTACH_COUNTER_FOREIGN_SIGPROF, ATTACH_SNAPSHOT_UNLISTED};
    struct pair p = {after, before};
    for (unsigned i = 0; i < sizeof LOSSES; i++) {
        if (grown(&p, LOSSES[i]) > 0) {
            return true;
        }
    }
    for (unsigned i = 0; i < sizeof STATES; i++) {
        if (after->counters[STATES[i]] > 0) {
            return true;
        }
    }
    /* Ticks of two rates that cannot be distinguished. */
    return before->rate != 0 && before->rate != after->rate && grown(&p, ATTACH_COUNTER_TICKS) > 0;
}
