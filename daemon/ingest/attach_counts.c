/* What a harvest brought, in the form of every upload's counts. */
#include <string.h>

#include "ingest/attach_internal.h"

/* A build is one histogram of bins of one byte. A larger one is several, each of LIMIT_HISTOGRAM_BINS but the last. */
static uint32_t window_of(const struct attach_tick *t)
{
    return t->index / LIMIT_HISTOGRAM_BINS;
}

static bool same_histogram(const struct attach_tick *a, const struct attach_tick *b)
{
    return a->build == b->build && window_of(a) == window_of(b);
}

static void histogram_make(const struct attach_news *n, const struct attach_tick *t, struct counts_histogram *h)
{
    const struct attach_build *b = &n->builds->build[t->build];
    uint64_t low = b->low + (uint64_t)window_of(t) * LIMIT_HISTOGRAM_BINS, high = b->high;
    if (high - low > LIMIT_HISTOGRAM_BINS) {
        high = low + LIMIT_HISTOGRAM_BINS;
    }
    *h = (struct counts_histogram){.build = t->build,
                                   .bins = (uint32_t)(high - low),
                                   .low = low,
                                   .high = high,
                                   .rate = n->rate,
                                   .dimension = "seconds",
                                   .abbreviation = 's'};
    if (n->wall) {
        memcpy(h->dimension, "wall", sizeof "wall");
        h->abbreviation = 'w';
        memset(h->dimension + sizeof "wall", 0, sizeof h->dimension - sizeof "wall");
    }
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

enum profd_status attach_counts_make(const struct attach_news *news, struct counts *c, bool *any, bool *sampled,
                                     struct profd_error *e)
{
    struct attach_difference *d = news->difference;
    struct counts made;
    uint32_t histograms = 0, counters = 0, bin = 0, arc = 0, pairs = pairs_kept(news);
    attach_ticks_sort(&d->ticks);
    for (uint32_t i = 0; i < d->ticks.count; i++) {
        histograms += i == 0 || !same_histogram(&d->ticks.tick[i - 1], &d->ticks.tick[i]);
    }
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        counters += news->counters[i] != 0;
    }
    if (histograms + counters + d->calls.count + pairs == 0) {
        *any = false;
        return PROFD_OK;
    }
    enum profd_status status =
        counts_init(&made, histograms + (counters > 0), d->ticks.count + counters, d->calls.count + pairs, e);
    if (status != PROFD_OK) {
        return status;
    }
    ticks_put(news, &made, &bin);
    if (counters > 0) {
        counters_put(news, &made, &bin);
    }
    arcs_put(&d->calls, NULL, &made, &arc);
    if (pairs > 0) {
        arcs_put(&d->pairs, news->builds, &made, &arc);
    }
    *any = true;
    *sampled = pairs > 0;
    *c = made;
    return PROFD_OK;
}
