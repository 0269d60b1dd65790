/* What a harvest brought, in the form of every upload's counts. */
#include <string.h>

#include "core/sum.h"
#include "ingest/attach_internal.h"
#include "proto/message.h"

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

void attach_cpu_judge(const struct attach_header *h, uint64_t cpu_ns, const struct attach_snapshot *before,
                      uint64_t counters[ATTACH_SNAPSHOT_COUNTERS])
{
    static const unsigned char TICKS[] = {ATTACH_COUNTER_TICKS, ATTACH_COUNTER_TICKS_UNDELIVERED};
    uint64_t *cpu = &counters[ATTACH_COUNTER_CPU_NS], ticks = 0, least = 0;
    bool saturated = false;
    if (counters[ATTACH_COUNTER_ENDED]) {
        return;
    }
    for (unsigned i = 0; i < sizeof TICKS; i++) {
        sum_add(&ticks, counters[TICKS[i]] - before->counters[TICKS[i]], &saturated);
    }
    if (cpu_ns > h->cpu_before) {
        least = cpu_ns - h->cpu_before;
        if (least < before->counters[ATTACH_COUNTER_CPU_NS] + SECOND / 100) {
            return; /* so that an idle process is not stored again at each harvest */
        }
    } else if (h->mode == ATTACH_MODE_CPU) {
        least = before->counters[ATTACH_COUNTER_CPU_NS];
        sum_add(&least, to_ns(ticks, h->rate), &saturated);
    }
    *cpu = least > SUM_MAX ? SUM_MAX : least > *cpu ? least : *cpu;
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
        {COLLECTOR_LEFT_OUT, ATTACH_COUNTER_LEFT_OUT, 0},
        {COLLECTOR_UNDELIVERED_NS, ATTACH_COUNTER_TICKS_UNDELIVERED, 1},
        {COLLECTOR_SAMPLES, ATTACH_COUNTER_SAMPLES, 0},
    };
    struct pair p = {after, before};
    bool saturated = false;
    memset(out, 0, COLLECTOR_COUNTERS_MAX * sizeof out[0]);
    for (unsigned i = 0; i < sizeof MAP / sizeof MAP[0]; i++) {
        out[MAP[i].counter] = MAP[i].ns ? grown_ns(&p, MAP[i].from) : grown(&p, MAP[i].from);
    }
    out[COLLECTOR_SAMPLED_NS] = grown_ns(&p, ATTACH_COUNTER_TICKS);
    out[COLLECTOR_CLOCK_OFF_NS] = mode == ATTACH_MODE_OFF ? out[COLLECTOR_CPU_NS] : 0;
    sum_add(&out[COLLECTOR_MODULES_LOST], grown(&p, ATTACH_SNAPSHOT_UNLISTED), &saturated);
    out[COLLECTOR_PROCESSES] = first;
}

unsigned attach_counters_lost(const struct attach_snapshot *after, const struct attach_snapshot *before)
{
    /* A loss happened since. In a state, what goes on is lost, too. */
    static const struct {
        unsigned char counter;
        bool state;
        uint32_t why;
    } LOSSES[] = {
        {ATTACH_COUNTER_CALLS_LOST, false, INEXACT_CALLS_LOST},
        {ATTACH_COUNTER_CALLS_JUNK, false, INEXACT_CALLS_LOST},
        {ATTACH_COUNTER_TICKS_DROPPED, false, INEXACT_TICKS_LOST},
        {ATTACH_COUNTER_TICKS_BLOCKED, false, INEXACT_TICKS_LOST},
        {ATTACH_COUNTER_FORKS_UNSEEN, true, INEXACT_CALLS_LOST},
        {ATTACH_COUNTER_OVERLAPS, true, INEXACT_CALLS_LOST},
        {ATTACH_COUNTER_THREADS_UNTIMED, true, INEXACT_TICKS_LOST},
        {ATTACH_COUNTER_FOREIGN_SIGPROF, true, INEXACT_TICKS_LOST},
        {ATTACH_COUNTER_MODULES_LOST, true, INEXACT_CALLS_LOST | INEXACT_TICKS_LOST},
        {ATTACH_SNAPSHOT_UNLISTED, true, INEXACT_CALLS_LOST | INEXACT_TICKS_LOST},
    };
    struct pair p = {after, before};
    unsigned why = 0;
    for (unsigned i = 0; i < sizeof LOSSES / sizeof LOSSES[0]; i++) {
        if (LOSSES[i].state ? after->counters[LOSSES[i].counter] > 0 : grown(&p, LOSSES[i].counter) > 0) {
            why |= LOSSES[i].why;
        }
    }
    /* The second: ticks of two rates that cannot be distinguished. */
    if (attach_undelivered_matter(grown(&p, ATTACH_COUNTER_TICKS_UNDELIVERED), grown(&p, ATTACH_COUNTER_TICKS),
                                  after->rate) ||
        (before->rate != 0 && before->rate != after->rate && grown(&p, ATTACH_COUNTER_TICKS) > 0)) {
        why |= INEXACT_TICKS_LOST;
    }
    return why;
}

/* A build is one histogram of bins of one byte. A larger one is several, each of LIMIT_HISTOGRAM_BINS but the last. */
static uint32_t window_of(const struct attach_tick *t)
{
    return t->index / LIMIT_HISTOGRAM_BINS;
}

static bool same_histogram(const struct attach_tick *a, const struct attach_tick *b)
{
    return a->build == b->build && window_of(a) == window_of(b);
}

/* The clock of the ticks. */
static void clock_set(char dimension[16], char *abbreviation)
{
    memcpy(dimension, "seconds\0\0\0\0\0\0\0\0", 16);
    *abbreviation = 's';
}

static void histogram_make(const struct attach_news *n, const struct attach_tick *t, struct counts_histogram *h)
{
    const struct attach_build *b = &n->builds->build[t->build];
    uint64_t low = b->low + (uint64_t)window_of(t) * LIMIT_HISTOGRAM_BINS, high = b->high;
    if (high - low > LIMIT_HISTOGRAM_BINS) {
        high = low + LIMIT_HISTOGRAM_BINS;
    }
    *h = (struct counts_histogram){
        .build = t->build, .bins = (uint32_t)(high - low), .low = low, .high = high, .rate = n->rate};
    clock_set(h->dimension, &h->abbreviation);
}

static void ticks_put(const struct attach_news *n, struct counts *c, uint32_t *bin)
{
    const struct attach_ticks *s = &n->difference->ticks;
    uint32_t k = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (i == 0 || !same_histogram(&s->tick[i - 1], &s->tick[i])) {
            histogram_make(n, &s->tick[i], &c->histograms[k]);
            c->histograms[k++].first = *bin;
        }
        c->histograms[k - 1].used++;
        c->bin_index[*bin] = s->tick[i].index % LIMIT_HISTOGRAM_BINS;
        c->bin_ticks[(*bin)++] = s->tick[i].ticks;
    }
}

static void counters_put(const struct attach_news *n, struct counts *c, uint32_t *bin)
{
    struct counts_histogram *h = &c->histograms[c->histogram_count - 1];
    collector_make_histogram(h, 0);
    h->first = *bin;
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        if (n->counters[i] == 0) {
            continue;
        }
        c->bin_index[*bin] = i;
        c->bin_ticks[(*bin)++] = n->counters[i];
        h->used++;
    }
}

static void arcs_put(const struct attach_arcs *s, const struct attach_builds *uncounted, struct counts *c, uint32_t *at)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct attach_arc *a = &s->arc[i];
        if (uncounted && a->to_build != COUNTS_NOWHERE && uncounted->build[a->to_build].counted) {
            continue;
        }
        c->from_build[*at] = a->from_build;
        c->to_build[*at] = a->to_build;
        c->from[*at] = a->from;
        c->to[*at] = a->to;
        c->calls[(*at)++] = a->calls;
    }
}

/* How many sampled pairs become arcs. */
static uint32_t pairs_kept(const struct attach_news *n)
{
    const struct attach_arcs *s = &n->difference->pairs;
    uint32_t kept = 0;
    if (n->builds->build[0].counted) {
        return 0;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        kept += s->arc[i].to_build == COUNTS_NOWHERE || !n->builds->build[s->arc[i].to_build].counted;
    }
    return kept;
}

static enum profd_status stacks_put(const struct attach_news *n, struct counts *c, struct profd_error *e)
{
    const struct attach_stacks *s = &n->difference->stacks;
    if (s->tree_count == 0) {
        return PROFD_OK;
    }
    struct counts_nodes nodes = COUNTS_NODES(c);
    c->trees[0].rate = n->rate;
    clock_set(c->trees[0].dimension, &c->trees[0].abbreviation);
    enum profd_status status = counts_tree_sort(s->tree, s->tree_count, &nodes, &c->trees[0].used, NULL, e);
    c->node_count = c->trees[0].used;
    c->tree_count = c->node_count > 0;
    return status;
}

static enum profd_status columns_put(const struct attach_news *news, uint32_t pairs, struct counts *c,
                                     struct profd_error *e)
{
    struct attach_difference *d = news->difference;
    uint32_t bin = 0, arc = 0;
    ticks_put(news, c, &bin);
    if (c->bin_count > d->ticks.count) {
        counters_put(news, c, &bin);
    }
    arcs_put(&d->calls, NULL, c, &arc);
    if (pairs > 0) {
        arcs_put(&d->pairs, news->builds, c, &arc);
    }
    return stacks_put(news, c, e);
}

static struct counts_sizes sizes_of(const struct attach_news *n, uint32_t pairs)
{
    const struct attach_difference *d = n->difference;
    struct counts_sizes s = {.bins = d->ticks.count,
                             .arcs = d->calls.count + pairs,
                             .trees = d->stacks.tree_count > 0,
                             .nodes = d->stacks.tree_count};
    for (uint32_t i = 0; i < d->ticks.count; i++) {
        s.histograms += i == 0 || !same_histogram(&d->ticks.tick[i - 1], &d->ticks.tick[i]);
    }
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        s.bins += n->counters[i] != 0;
    }
    s.histograms += s.bins > d->ticks.count;
    return s;
}

static uint64_t ticks_sum(const struct attach_ticks *s)
{
    uint64_t sum = 0;
    bool saturated = false;
    for (uint32_t i = 0; i < s->count; i++) {
        sum_add(&sum, s->tick[i].ticks, &saturated);
    }
    return sum;
}

enum profd_status attach_counts_make(const struct attach_news *news, struct counts *c, bool *any, bool *sampled,
                                     struct profd_error *e)
{
    struct attach_difference *d = news->difference;
    struct counts made;
    TRY(attach_stacks_list(&d->stacks, news->builds, ticks_sum(&d->ticks), &d->pairs, e));
    attach_ticks_sort(&d->ticks);
    uint32_t pairs = pairs_kept(news);
    struct counts_sizes sizes = sizes_of(news, pairs);
    if (sizes.bins + sizes.arcs == 0) { /* and no stacks, which are never more than ticks */
        *any = false;
        return PROFD_OK;
    }
    TRY(counts_init_sizes(&made, &sizes, e));
    enum profd_status status = columns_put(news, pairs, &made, e);
    if (status != PROFD_OK) {
        counts_done(&made);
        return status;
    }
    *any = true;
    *sampled = pairs > 0;
    *c = made;
    return PROFD_OK;
}
