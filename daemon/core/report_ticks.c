#include "core/report_ticks.h"

#include <string.h>

#include "core/sort.h"
#include "core/sum.h"
#include "proto/words.h"

__extension__ typedef unsigned __int128 report_u128;

struct ticks_work {
    const struct profile *profile;
    const struct report_builds *builds;
    uint64_t *whole; /* of each owner, for the rate at hand */
    double *part;
    struct sort_item *touched; /* owners with ticks at this rate; room for all of them twice */
    uint32_t touched_count;
    uint32_t owner_count;
    bool saturated;
};

static int ticks_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct ticks_work *w = context;
    const struct profile_histogram *a = &w->profile->histograms[x], *b = &w->profile->histograms[y];
    uint32_t build_a = report_builds_rank(w->builds, a->build), build_b = report_builds_rank(w->builds, b->build);
    if (a->rate != b->rate)
        return a->rate < b->rate ? -1 : 1;
    if (build_a != build_b)
        return build_a < build_b ? -1 : 1;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    if (a->bins != b->bins)
        return a->bins < b->bins ? -1 : 1;
    return a->abbreviation - b->abbreviation;
}

static void ticks_touch(struct ticks_work *w, uint32_t owner)
{
    if (w->whole[owner] == 0 && !(w->part[owner] > 0))
        w->touched[w->touched_count++] = (struct sort_item){owner, owner};
}

static void ticks_add_whole(struct ticks_work *w, uint32_t owner, uint64_t ticks)
{
    ticks_touch(w, owner);
    sum_add(&w->whole[owner], ticks, &w->saturated);
}

static void ticks_add_part(struct ticks_work *w, uint32_t owner, double ticks)
{
    if (!(ticks > 0))
        return;
    ticks_touch(w, owner);
    w->part[owner] += ticks;
}

/* Bytes of span s under the bin, times the number of bins, so that bins of broken width need no fractions. */
static double ticks_overlap(const struct symtab *t, const struct profile_histogram *h, uint32_t s, uint32_t bin)
{
    report_u128 width = h->high - h->low, low = width * bin, high = low + width, start, end;
    start = t->span_low[s] <= h->low ? 0 : (report_u128)(t->span_low[s] - h->low) * h->bins;
    if (s + 1 == t->span_count)
        end = high;
    else
        end = t->span_low[s + 1] <= h->low ? 0 : (report_u128)(t->span_low[s + 1] - h->low) * h->bins;
    start = start < low ? low : start;
    end = end > high ? high : end;
    return end > start ? (double)(end - start) : 0;
}

/* Shares a bin among the spans first … last that it touches. */
static void ticks_share(struct ticks_work *w, const struct symtab *t, uint32_t base, const struct profile_histogram *h,
                        uint32_t bin, uint64_t ticks, uint32_t first, uint32_t last)
{
    double all = 0, named = 0, given = 0;
    uint32_t final = SYMTAB_NONE;
    for (uint32_t s = first; s <= last; s++) {
        double overlap = ticks_overlap(t, h, s, bin);
        all += overlap;
        if (t->owners[t->span_owner[s]].kind != SYMTAB_GAP)
            named += overlap;
    }
    for (uint32_t s = first; s <= last; s++)
        if (ticks_overlap(t, h, s, bin) > 0 && (!(named > 0) || t->owners[t->span_owner[s]].kind != SYMTAB_GAP))
            final = s;
    if (final == SYMTAB_NONE) { /* narrower than any fraction can tell */
        ticks_add_whole(w, base + t->span_owner[first], ticks);
        return;
    }
    for (uint32_t s = first; s < final; s++) {
        if (named > 0 && t->owners[t->span_owner[s]].kind == SYMTAB_GAP)
            continue;
        double share = (double)ticks * (ticks_overlap(t, h, s, bin) / (named > 0 ? named : all));
        ticks_add_part(w, base + t->span_owner[s], share);
        given += share;
    }
    if (given > 0) /* the last one takes the rest, so that nothing is lost to rounding */
        ticks_add_part(w, base + t->span_owner[final], (double)ticks - given);
    else
        ticks_add_whole(w, base + t->span_owner[final], ticks);
}

static void ticks_add_histogram(struct ticks_work *w, const struct profile_histogram *h)
{
    uint32_t build = report_builds_rank(w->builds, h->build), base = w->builds->first[build], span = 0;
    const struct symtab *t = w->builds->tables[build];
    report_u128 width = h->high - h->low;
    bool even = (h->high - h->low) % h->bins == 0;
    uint64_t step = (h->high - h->low) / h->bins;
    for (uint32_t i = 0; i < h->used; i++) {
        uint32_t bin = h->index[i];
        uint64_t low = h->low + (even ? step * bin : (uint64_t)(width * bin / h->bins));
        uint64_t high =
            even ? low + step : h->low + (uint64_t)((width * ((report_u128)bin + 1) + h->bins - 1) / h->bins);
        uint32_t owner = symtab_find_next(t, low, &span);
        if (span + 1 == t->span_count || high <= t->span_low[span + 1] || high - low <= 1) {
            ticks_add_whole(w, base + owner, h->ticks[i]);
            continue;
        }
        uint32_t last = symtab_find_span(t, high - 1);
        ticks_share(w, t, base, h, bin, h->ticks[i], span, last);
    }
}

/* Closes a rate: its owners become rows in ascending order, and the sums are zero again. */
static bool ticks_close_rate(struct ticks_work *w, struct arena *a, struct report_ticks *out, uint32_t *capacity)
{
    sort_radix(w->touched, w->touched + w->owner_count, w->touched_count);
    if (*capacity - out->count < w->touched_count) {
        size_t more = ((size_t)out->count + w->touched_count) * 2;
        struct report_tick *rows = more > UINT32_MAX ? NULL : ARENA_ARRAY(a, more, struct report_tick);
        if (rows == NULL)
            return false;
        if (out->count > 0)
            memcpy(rows, out->rows, out->count * sizeof *rows);
        out->rows = rows;
        *capacity = (uint32_t)more;
    }
    for (uint32_t i = 0; i < w->touched_count; i++) {
        uint32_t owner = w->touched[i].value;
        out->rows[out->count++] = (struct report_tick){w->whole[owner], w->part[owner], out->rate_count - 1, owner};
        w->whole[owner] = 0;
        w->part[owner] = 0;
    }
    w->touched_count = 0;
    return true;
}

/* The histograms of the dimension, ascending by rate. False when memory is exhausted. */
static bool ticks_order(struct arena *a, const struct ticks_work *w, const char *dimension, uint32_t **out,
                        uint32_t *count)
{
    const struct profile *p = w->profile;
    uint32_t *order = ARENA_ARRAY(a, (size_t)p->histogram_count * 2, uint32_t), n = 0;
    if (order == NULL)
        return false;
    for (uint32_t i = 0; i < p->histogram_count; i++)
        if (strcmp(p->histograms[i].dimension, dimension) == 0 && !words_are(dimension))
            order[n++] = i;
    sort_merge(order, order + n, n, ticks_compare, w);
    *out = order;
    *count = n;
    return true;
}

enum profd_status report_ticks_collect(struct arena *a, const struct profile *p, const struct report_builds *b,
                                       const char *dimension, bool may_lack, struct report_ticks *out,
                                       struct profd_error *e)
{
    struct ticks_work w = {.profile = p, .builds = b, .owner_count = b->first[b->count + 1]};
    uint32_t n = 0, capacity = 0, *order = NULL;
    *out = (struct report_ticks){0};
    enum profd_status status =
        report_dimension_choose(a, p, dimension, may_lack, &out->dimension, &out->others, &out->other_count, e);
    if (status != PROFD_OK)
        return status;
    w.whole = ARENA_ARRAY(a, w.owner_count, uint64_t);
    w.part = ARENA_ARRAY(a, w.owner_count, double);
    w.touched = ARENA_ARRAY(a, (size_t)w.owner_count * 2, struct sort_item);
    out->rates = ARENA_ARRAY(a, p->histogram_count, uint32_t);
    out->totals = ARENA_ARRAY(a, p->histogram_count, uint64_t);
    bool done = w.whole != NULL && w.part != NULL && w.touched != NULL && out->rates != NULL && out->totals != NULL &&
                ticks_order(a, &w, out->dimension, &order, &n);
    for (uint32_t i = 0; done && i < n; i++) {
        const struct profile_histogram *h = &p->histograms[order[i]];
        if (out->rate_count == 0 || out->rates[out->rate_count - 1] != h->rate)
            out->rates[out->rate_count++] = h->rate;
        for (uint32_t k = 0; k < h->used; k++) {
            sum_add(&out->totals[out->rate_count - 1], h->ticks[k], &w.saturated);
            sum_add(&out->ticks, h->ticks[k], &w.saturated);
        }
        ticks_add_histogram(&w, h);
        if (i + 1 == n || p->histograms[order[i + 1]].rate != h->rate)
            done = ticks_close_rate(&w, a, out, &capacity);
    }
    if (!done)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the samples of %u functions", w.owner_count);
    return PROFD_OK;
}
