#include "core/report_graph.h"

#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "proto/sort.h"
#include "core/coverage.h"
#include "core/report.h"
#include "proto/sum.h"
#include "proto/bins.h"
#include "proto/collector.h"

bool report_dimension_is_time(const char *dimension)
{
    return strcmp(dimension, REPORT_DIMENSION_USUAL) == 0 || strcmp(dimension, "wall") == 0;
}

static int dimension_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct counts_histogram *histograms = context;
    return strcmp(histograms[x].dimension, histograms[y].dimension);
}

enum profd_status report_dimension_pick(const struct report_dimension *list, uint32_t n, const char *asked,
                                        bool may_lack, uint32_t *at, struct profd_error *e)
{
    uint32_t found = 0;
    while (found < n && strcmp(list[found].name, asked != NULL ? asked : REPORT_DIMENSION_USUAL) != 0) {
        found++;
    }
    if (found == n && asked != NULL && n > 0 && !may_lack) {
        struct buffer b;
        buffer_init(&b, 200);
        for (uint32_t i = 0; i < n && !b.failed; i++) {
            buffer_add_format(&b, "%s%s", i > 0 ? ", " : "", list[i].name);
        }
        enum profd_status status =
            profd_error_set(e, PROFD_BAD_QUERY, "dimension=%s: the samples have %.*s%s", asked, (int)b.size,
                            b.size > 0 ? b.data : "", b.failed ? " and others" : "");
        buffer_done(&b);
        return status;
    }
    *at = found == n && asked == NULL ? 0 : found;
    return PROFD_OK;
}

/* Chooses the dimension that was asked for, or (NULL) "seconds" if there is any, else the first in byte order. *others:
 * all that are left out, in byte order, in the arena; the collector's counters are none. BAD_QUERY naming what there
 * is, unless it may lack; where there are no samples at all, whatever was asked for is as good as "seconds".
 * O(histograms log histograms + bins). */
static enum profd_status dimension_choose(struct arena *a, const struct report_request *request,
                                          struct report_ticks *out, struct profd_error *e)
{
    const struct counts *c = &request->profile->counts;
    struct report_dimension *list = ARENA_ARRAY(a, c->histogram_count, struct report_dimension);
    uint32_t *order = ARENA_ARRAY(a, (size_t)c->histogram_count * 2, uint32_t), used = 0, n = 0, at;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (!collector_is_dimension(c->histograms[i].dimension)) {
            order[used++] = i;
        }
    }
    sort_merge(order, order + used, used, dimension_compare, c->histograms);
    for (uint32_t i = 0; i < used; i++) {
        const struct counts_histogram *h = &c->histograms[order[i]];
        bool saturated = false; /* the profile says it */
        if (n == 0 || strcmp(list[n - 1].name, h->dimension) != 0) {
            list[n++] = (struct report_dimension){h->dimension, 0};
        }
        for (uint32_t k = 0; k < h->used; k++) {
            sum_add(&list[n - 1].ticks, c->bin_ticks[h->first + k], &saturated);
        }
    }
    const char *asked = request->dimension;
    TRY(report_dimension_pick(list, n, asked, request->dimension_may_lack, &at, e));
    out->dimension = at < n ? list[at].name : asked != NULL ? asked : REPORT_DIMENSION_USUAL;
    out->other_count = at < n ? n - 1 : n;
    for (uint32_t i = at; i < out->other_count; i++) {
        list[i] = list[i + 1];
    }
    out->others = list;
    return PROFD_OK;
}

struct ticks_work {
    const struct counts *counts;
    const struct report_builds *builds;
    uint64_t *whole; /* of each owner, for the current rate */
    double *part, *given, *sharing;
    struct sort_item *touched; /* owners with ticks at this rate; capacity for all of them twice */
    uint32_t touched_count;
    uint32_t owner_count;
    const uint64_t *calls; /* into each owner */
    uint64_t *before;      /* of the current histogram: ticks of the first n used bins; capacity for the longest */
    bool saturated;
};

/* A histogram and the build that it is of. */
struct ticks_histogram {
    const struct counts_histogram *h;
    const uint32_t *index; /* of its used bins, and their ticks */
    const uint64_t *ticks;
    struct bins bins;
    const struct symtab *table;
    uint32_t base; /* number of the table's first owner */
    bool summed;   /* before is this histogram's */
};

/* What decides between owners of one bin; each comes only into bins that have none of a better rank. */
enum ticks_rank { TICKS_GAP, TICKS_SIZELESS, TICKS_FUNCTION };

/* A bin that touches the spans first … last, and sums over those of the best rank. */
struct ticks_shared {
    uint32_t bin, first, last;
    enum ticks_rank rank;
    double ticks;
    double called;    /* Σ bytes × calls */
    double expected;  /* Σ bytes × density, of those with a known density */
    double unknown;   /* Σ bytes × calls of the others; Σ bytes where none of all was called */
    double remaining; /* ticks − expected, at least 0 */
};

static int ticks_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct ticks_work *w = context;
    const struct counts_histogram *a = &w->counts->histograms[x], *b = &w->counts->histograms[y];
    const int order = compare_pairs(a->rate, b->rate, report_builds_rank(w->builds, a->build),
                                    report_builds_rank(w->builds, b->build));
    return order != 0 ? order : counts_compare_geometry(&a->geometry, &b->geometry);
}

static void ticks_touch(struct ticks_work *w, uint32_t owner)
{
    if (w->whole[owner] == 0 && !(w->part[owner] > 0) && !(w->sharing[owner] > 0)) {
        w->touched[w->touched_count++] = (struct sort_item){owner, owner};
    }
}

static void ticks_add_whole(struct ticks_work *w, uint32_t owner, uint64_t ticks)
{
    ticks_touch(w, owner);
    sum_add(&w->whole[owner], ticks, &w->saturated);
}

/* Ends of span s, in the histogram's fractions of a byte behind its low. */
static void ticks_span(const struct ticks_histogram *x, uint32_t s, bins_offset *start, bins_offset *end)
{
    const struct symtab *t = x->table;
    uint64_t low = t->span_low[s], high = s + 1 < t->span_count ? t->span_low[s + 1] : UINT64_MAX;
    *start = low <= x->h->low ? 0 : (bins_offset)(low - x->h->low) * x->bins.unit;
    *end = high <= x->h->low ? 0 : (bins_offset)(high - x->h->low) * x->bins.unit;
}

static double ticks_overlap(const struct ticks_histogram *x, uint32_t s, uint32_t bin)
{
    bins_offset low = bins_start(&x->bins, bin), high = bins_start(&x->bins, bin + 1), start, end;
    ticks_span(x, s, &start, &end);
    start = start < low ? low : start;
    end = end > high || s + 1 == x->table->span_count ? high : end;
    return end > start ? (double)(end - start) : 0;
}

static enum ticks_rank ticks_rank(const struct ticks_histogram *x, uint32_t s)
{
    const struct symtab_owner *owner = &x->table->owners[x->table->span_owner[s]];
    return owner->kind == SYMTAB_GAP                            ? TICKS_GAP
           : owner->kind == SYMTAB_FUNCTION && owner->size == 0 ? TICKS_SIZELESS
                                                                : TICKS_FUNCTION;
}

/* Ticks of the bins below one. */
static uint64_t ticks_below(const struct ticks_work *w, const struct ticks_histogram *x, uint32_t bin)
{
    uint32_t i;
    SORT_SEARCH(i, 0, x->h->used, x->index[i] < bin);
    return w->before[i];
}

static uint32_t ticks_find(const struct ticks_histogram *x, bins_offset offset)
{
    uint64_t bin = bins_find(&x->bins, (uint64_t)(offset / x->bins.unit));
    return bin < x->h->bins ? (uint32_t)bin : x->h->bins;
}

/* Ticks by fraction of a byte in the bins that lie wholly in span s. False if there is none. */
static bool ticks_density(const struct ticks_work *w, const struct ticks_histogram *x, uint32_t s, double *density)
{
    bins_offset start, end;
    ticks_span(x, s, &start, &end);
    uint32_t first = ticks_find(x, start), last = ticks_find(x, end);
    while (first < last && bins_start(&x->bins, first) < start) {
        first++;
    }
    if (first >= last) {
        return false;
    }
    *density = (double)(ticks_below(w, x, last) - ticks_below(w, x, first)) /
               (double)(bins_start(&x->bins, last) - bins_start(&x->bins, first));
    return true;
}

/* Bytes × calls where any owner in the bin was called, else bytes. */
static double ticks_prior(const struct ticks_work *w, const struct ticks_histogram *x,
                          const struct ticks_shared *shared, uint32_t s)
{
    double bytes = ticks_overlap(x, s, shared->bin);
    return shared->called > 0 ? bytes * (double)w->calls[x->base + x->table->span_owner[s]] : bytes;
}

static bool ticks_takes_part(const struct ticks_histogram *x, const struct ticks_shared *shared, uint32_t s)
{
    return ticks_rank(x, s) == shared->rank && ticks_overlap(x, s, shared->bin) > 0;
}

static double ticks_weight(const struct ticks_work *w, const struct ticks_histogram *x,
                           const struct ticks_shared *shared, uint32_t s)
{
    double density;
    if (!ticks_takes_part(x, shared, s)) {
        return 0;
    }
    if (!(shared->expected > 0)) {
        return ticks_prior(w, x, shared, s);
    }
    if (ticks_density(w, x, s, &density)) {
        return ticks_overlap(x, s, shared->bin) * density;
    }
    return shared->unknown > 0 ? shared->remaining * (ticks_prior(w, x, shared, s) / shared->unknown) : 0;
}

/* Gives a part of a bin that several owners share. */
static void ticks_give(struct ticks_work *w, uint32_t owner, const struct ticks_shared *shared, double ticks)
{
    ticks_touch(w, owner);
    w->part[owner] += ticks;
    w->given[owner] += ticks;
    w->sharing[owner] += shared->ticks;
}

/* Shares the ticks of a bin; the last owner takes the rest, so that nothing is lost to rounding. */
static void ticks_share(struct ticks_work *w, struct ticks_histogram *x, struct ticks_shared *shared, uint64_t ticks)
{
    const uint32_t first = shared->first, last = shared->last, *owners = x->table->span_owner;
    /* Sums of ticks, for the first shared bin of a histogram. */
    for (uint32_t i = 0; !x->summed && i < x->h->used; i++) {
        w->before[i + 1] = w->before[i];
        sum_add(&w->before[i + 1], x->ticks[i], &w->saturated);
    }
    x->summed = true;

    for (uint32_t s = first; s <= last; s++) {
        if (ticks_rank(x, s) > shared->rank && ticks_overlap(x, s, shared->bin) > 0) {
            shared->rank = ticks_rank(x, s);
        }
    }
    uint32_t final = first, owner = UINT32_MAX;
    bool several = false;
    for (uint32_t s = first; s <= last; s++) {
        if (ticks_takes_part(x, shared, s)) {
            shared->called += ticks_overlap(x, s, shared->bin) * (double)w->calls[x->base + owners[s]];
            several |= owner != UINT32_MAX && owners[s] != owner;
            owner = owners[s];
        }
    }
    for (uint32_t s = first; s <= last; s++) {
        double density;
        if (!ticks_takes_part(x, shared, s)) {
            continue;
        }
        if (ticks_density(w, x, s, &density)) {
            shared->expected += ticks_overlap(x, s, shared->bin) * density;
        } else {
            shared->unknown += ticks_prior(w, x, shared, s);
        }
    }
    shared->remaining = shared->ticks > shared->expected ? shared->ticks - shared->expected : 0;

    double all = 0, given = 0;
    for (uint32_t s = first; s <= last; s++) {
        double weight = ticks_weight(w, x, shared, s);
        final = weight > 0 ? s : final;
        all += weight;
    }
    const uint32_t rest = x->base + owners[final];
    for (uint32_t s = first; several && s <= last; s++) {
        if (s != final && ticks_takes_part(x, shared, s)) {
            double share = shared->ticks * (ticks_weight(w, x, shared, s) / all);
            ticks_give(w, x->base + owners[s], shared, share);
            given += share;
        }
    }
    if (given > 0) {
        ticks_give(w, rest, shared, shared->ticks > given ? shared->ticks - given : 0);
        return;
    }
    ticks_add_whole(w, rest, ticks);
    if (several) {
        w->given[rest] += shared->ticks;
        w->sharing[rest] += shared->ticks;
    }
}

static void ticks_add_histogram(struct ticks_work *w, const struct counts_histogram *h)
{
    uint32_t build = report_builds_rank(w->builds, h->build), span = 0;
    const struct symtab *t = w->builds->tables[build];
    struct ticks_histogram x = {.h = h,
                                .index = w->counts->bin_index + h->first,
                                .ticks = w->counts->bin_ticks + h->first,
                                .bins = bins_make(h->low, h->high, h->bins),
                                .table = t,
                                .base = w->builds->first[build]};
    for (uint32_t i = 0; i < h->used; i++) {
        uint64_t low, high;
        bins_range(&x.bins, x.index[i], &low, &high);
        uint32_t owner = symtab_find_next(t, low, &span);
        if (span + 1 == t->span_count || high <= t->span_low[span + 1] || high - low <= 1) {
            ticks_add_whole(w, x.base + owner, x.ticks[i]);
            continue;
        }
        struct ticks_shared shared = {
            .bin = x.index[i], .first = span, .last = symtab_find_span(t, high - 1), .ticks = (double)x.ticks[i]};
        ticks_share(w, &x, &shared, x.ticks[i]);
    }
}

/* Closes a rate: its owners become rows in ascending order, and the sums are zero again. */
static void ticks_close_rate(struct ticks_work *w, struct arena *a, struct report_ticks *out, uint32_t *capacity)
{
    sort_radix(w->touched, w->touched + w->owner_count, w->touched_count);
    if (*capacity - out->count < w->touched_count) {
        size_t more = ((size_t)out->count + w->touched_count) * 2;
        struct report_tick *rows = more > UINT32_MAX ? arena_fail(a) : ARENA_ARRAY(a, more, struct report_tick);
        if (out->count > 0) {
            memcpy(rows, out->rows, out->count * sizeof *rows);
        }
        out->rows = rows;
        *capacity = (uint32_t)more;
    }
    for (uint32_t i = 0; i < w->touched_count; i++) {
        uint32_t owner = w->touched[i].value;
        out->rows[out->count++] = (struct report_tick){w->whole[owner],   w->part[owner],      w->given[owner],
                                                       w->sharing[owner], out->rate_count - 1, owner};
        w->whole[owner] = 0;
        w->part[owner] = w->given[owner] = w->sharing[owner] = 0;
    }
    w->touched_count = 0;
}

/* Adds them to the lowest rate, which is the current one. */
static void ticks_add_outside(struct ticks_work *w, struct report_ticks *out, uint64_t ns, bool known)
{
    const uint32_t rate = out->rates[0];
    const uint64_t ticks =
        ns / REPORT_TICKS_NS * rate + (ns % REPORT_TICKS_NS * rate + REPORT_TICKS_NS / 2) / REPORT_TICKS_NS;
    ticks_add_whole(w, w->builds->first[w->builds->count], ticks);
    sum_add(&out->totals[0], ticks, &w->saturated);
    sum_add(&out->ticks, known ? ticks : 0, &w->saturated);
}

enum profd_status report_ticks_collect(struct arena *a, const struct report_request *request,
                                       const struct report_builds *b, const uint64_t *calls, struct report_ticks *out,
                                       struct profd_error *e)
{
    const struct counts *c = &request->profile->counts;
    struct ticks_work w = {.counts = c, .builds = b, .owner_count = b->first[b->count + 1], .calls = calls};
    uint32_t n = 0, capacity = 0, most = 0, *order = ARENA_ARRAY(a, (size_t)c->histogram_count * 2, uint32_t);
    *out = (struct report_ticks){0};
    TRY(dimension_choose(a, request, out, e));
    struct coverage counters;
    coverage_make(request->profile, &counters);
    const bool usual = strcmp(out->dimension, REPORT_DIMENSION_USUAL) == 0; /* collectors count CPU time */
    const uint64_t outside = request->outside && usual ? counters.counters[COLLECTOR_OUTSIDE_NS] : 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        if (strcmp(h->dimension, out->dimension) == 0 && !collector_is_dimension(out->dimension)) {
            order[n++] = i;
            most = h->used > most ? h->used : most;
        }
    }
    sort_merge(order, order + n, n, ticks_compare, &w);
    w.whole = ARENA_ARRAY(a, w.owner_count, uint64_t);
    w.part = ARENA_ARRAY(a, w.owner_count, double);
    w.given = ARENA_ARRAY(a, w.owner_count, double);
    w.sharing = ARENA_ARRAY(a, w.owner_count, double);
    w.touched = ARENA_ARRAY(a, (size_t)w.owner_count * 2, struct sort_item);
    w.before = ARENA_ARRAY(a, (size_t)most + 1, uint64_t);
    out->rates = ARENA_ARRAY(a, c->histogram_count, uint32_t);
    out->totals = ARENA_ARRAY(a, c->histogram_count, uint64_t);
    for (uint32_t i = 0; i < n; i++) {
        const struct counts_histogram *h = &c->histograms[order[i]];
        if (out->rate_count == 0 || out->rates[out->rate_count - 1] != h->rate) {
            out->rates[out->rate_count++] = h->rate;
        }
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            sum_add(&out->totals[out->rate_count - 1], c->bin_ticks[k], &w.saturated);
            sum_add(&out->ticks, c->bin_ticks[k], &w.saturated);
        }
        ticks_add_histogram(&w, h);
        if (i + 1 == n || c->histograms[order[i + 1]].rate != h->rate) {
            if (out->rate_count == 1 && outside > 0) {
                ticks_add_outside(&w, out, outside, true);
            }
            ticks_close_rate(&w, a, out, &capacity);
        }
    }
    if (n == 0 && outside > 0) {
        out->rates[out->rate_count++] = REPORT_TICKS_NS;
        ticks_add_outside(&w, out, outside, false);
        ticks_close_rate(&w, a, out, &capacity);
    }
    double seconds = 0;
    for (uint32_t i = 0; i < out->rate_count; i++) {
        seconds += (double)out->totals[i] / out->rates[i];
    }
    const bool time = report_dimension_is_time(out->dimension) && seconds > 0;
    out->per_tick = time ? coverage_per_tick(&counters, (double)out->ticks / seconds) : 1;
    return PROFD_OK;
}

#define ROUNDING 1e-9 /* of a self time: two ways of adding the same numbers differ by less */

struct placed {
    uint32_t function;
    struct report_place place;
};

static int placed_compare(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    return compare_pairs(a->function, b->function, a->place.address, b->place.address);
}

void report_places_make(struct arena *a, const struct report *report, const struct profile *profile,
                        struct report_places *out)
{
    const struct report_function *functions = report->functions;
    struct placed *placed = NULL;
    uint32_t count = 0, capacity = 0, rows = 0;
    uint64_t widest = 0;
    for (uint32_t k = 0; profile != NULL && k < profile->counts.histogram_count; k++) {
        const struct counts_histogram *h = &profile->counts.histograms[k];
        uint32_t build = 0;
        while (build < report->build_count && strcmp(report->builds[build], profile->builds[h->build]) != 0) {
            build++;
        }
        if (build == report->build_count || strcmp(h->dimension, report->dimension) != 0) {
            continue;
        }
        const struct bins bins = bins_make(h->low, h->high, h->bins);
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            uint64_t low, high;
            bins_range(&bins, profile->counts.bin_index[i], &low, &high);
            /* Functions ascend by build and address: the one before the first that begins above. */
            uint32_t above;
            SORT_SEARCH(above, 0, report->function_count,
                        compare_pairs(functions[above].build, build, functions[above].address, low) <= 0);
            const struct report_function *f = above > 0 ? &functions[above - 1] : NULL;
            if (f == NULL || f->build != build || report_kind_is_class(f->kind) || high - f->address > f->size) {
                continue;
            }
            placed = arena_extend(a, placed, count, &capacity, sizeof *placed);
            placed[count++] = (struct placed){above - 1, {low, (double)profile->counts.bin_ticks[i] / h->rate}};
            widest = high - low > widest ? high - low : widest;
        }
    }
    if (count > 0) {
        qsort(placed, count, sizeof *placed, placed_compare);
    }
    for (uint32_t i = 0; i < count; i++) { /* one row for each function and address */
        if (rows > 0 && placed_compare(&placed[rows - 1], &placed[i]) == 0) {
            placed[rows - 1].place.seconds += placed[i].place.seconds;
        } else {
            placed[rows++] = placed[i];
        }
    }

    uint32_t *first = ARENA_ARRAY(a, (size_t)report->function_count + 1, uint32_t), n = 0, at = 0;
    struct report_place *list = ARENA_ARRAY(a, (size_t)rows + 1, struct report_place);
    for (uint32_t i = 0; i < report->function_count; i++) {
        const double self = functions[i].self;
        const uint32_t begin = at;
        double sum = 0;
        for (; at < rows && placed[at].function == i; at++) {
            sum += placed[at].place.seconds;
        }
        first[i] = n;
        /* A function inside another one may own bytes of it: then the bins say more than its self time, and it has no
         * places. */
        const bool more = !report->time_measured && sum > self * (1 + ROUNDING);
        for (uint32_t k = begin; self > 0 && sum > 0 && !more && k < at; k++) {
            list[n] = placed[k].place;
            list[n++].seconds *= report->time_measured ? self / sum : 1;
        }
    }
    first[report->function_count] = n;
    *out = (struct report_places){.first = first, .list = list, .bin_bytes = n > 0 ? widest : 0};
}
