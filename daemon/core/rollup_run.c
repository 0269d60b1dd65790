#include "core/rollup_run.h"

#include <string.h>

#include "core/sort.h"
#include "core/sum.h"
#include "proto/collector.h"

static int compare_heads(const void *context, uint32_t x, uint32_t y)
{
    const struct rollup_histogram *heads = context;
    return counts_compare_geometry(&heads[x].geometry, &heads[y].geometry);
}

bool rollup_run_repeats(const struct counts *c)
{
    if (c->histogram_count > 64) { /* rare, and adding up is always right */
        return true;
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (counts_compare_geometry(&c->histograms[i].geometry, &c->histograms[k].geometry) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void sort_histograms(const struct counts *c, uint64_t commit, struct rollup *r)
{
    struct rollup_histogram heads[64];
    uint32_t order[128];
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        heads[i] = (struct rollup_histogram){.geometry = c->histograms[i].geometry, .order = {commit, i}};
        order[i] = i;
    }
    sort_merge(order, order + 64, c->histogram_count, compare_heads, heads);
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *from = &c->histograms[order[i]];
        struct rollup_histogram *h = &r->histograms[i];
        *h = heads[order[i]];
        h->first = r->bin_count;
        h->used = from->used;
        bool full = false, is_collector = collector_is_dimension(h->dimension);
        for (uint32_t k = from->first; k < from->first + from->used; k++) {
            r->bin_index[r->bin_count] = c->bin_index[k];
            r->bin_ticks[r->bin_count] = 0;
            sum_add(&r->bin_ticks[r->bin_count++], c->bin_ticks[k], is_collector ? &full : &r->saturated);
        }
    }
    r->histogram_count = c->histogram_count;
}

/* Positions by key, equal keys in order of arrival. items holds twice as many. */
static void sort_arcs(const struct counts *c, struct sort_item *items)
{
    uint32_t n = c->arc_count;
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){c->to[i], i};
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = c->to_build[items[i].value];
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = c->from[items[i].value];
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = c->from_build[items[i].value];
    }
    sort_radix(items, items + n, n);
}

static void fill_arcs(const struct counts *c, const struct sort_item *items, uint64_t commit, struct rollup *r)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->arc_count; k++) {
        uint32_t i = items[k].value;
        if (n == 0 || r->from[n - 1] != c->from[i] || r->to[n - 1] != c->to[i] ||
            r->from_build[n - 1] != c->from_build[i] || r->to_build[n - 1] != c->to_build[i]) {
            r->from_build[n] = c->from_build[i];
            r->to_build[n] = c->to_build[i];
            r->from[n] = c->from[i];
            r->to[n] = c->to[i];
            r->commit[n] = commit;
            r->rank[n] = i;
            r->calls[n++] = 0;
        }
        sum_add(&r->calls[n - 1], c->calls[i], &r->saturated);
    }
    r->arc_count = n;
}

bool rollup_runs_reserve(struct rollup_runs *runs, uint32_t n)
{
    if (n <= runs->item_capacity) {
        return true;
    }
    size_t capacity = (size_t)n + n / 4;
    struct sort_item *items = ARENA_ARRAY(runs->arena, 2 * capacity, struct sort_item);
    if (items == NULL) {
        return false;
    }
    runs->items = items;
    runs->item_capacity = capacity;
    return true;
}

struct rollup_run *rollup_run_sort(struct rollup_runs *runs, const struct counts *c, uint64_t commit)
{
    uint64_t bins = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        bins += c->histograms[i].used;
    }
    struct rollup_run *run =
        bins > UINT32_MAX ? NULL : rollup_run_take(runs, c->histogram_count, (uint32_t)bins, c->arc_count);
    if (run == NULL || !rollup_runs_reserve(runs, c->arc_count)) {
        return NULL;
    }
    sort_arcs(c, runs->items);
    fill_arcs(c, runs->items, commit, &run->r);
    sort_histograms(c, commit, &run->r);
    return run;
}

static void fill_profile_histograms(const struct profile *p, struct rollup *r)
{
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        const struct profile_histogram *from = &p->histograms[i];
        struct rollup_histogram *h = &r->histograms[i];
        *h = (struct rollup_histogram){
            .geometry = from->geometry, .order = from->order, .first = r->bin_count, .used = from->used};
        for (uint32_t k = 0; k < from->used; k++, r->bin_count++) {
            r->bin_index[r->bin_count] = from->index[k];
            r->bin_ticks[r->bin_count] = from->ticks[k];
        }
    }
    r->histogram_count = p->histogram_count;
}

struct rollup_run *rollup_run_profile(struct rollup_runs *runs, const struct profile *p)
{
    uint64_t bins = 0;
    for (uint32_t i = 0; i < p->histogram_count; i++) {
        bins += p->histograms[i].used;
    }
    struct rollup_run *run =
        bins > UINT32_MAX ? NULL : rollup_run_take(runs, p->histogram_count, (uint32_t)bins, p->arc_count);
    if (run == NULL) {
        return NULL;
    }
    struct rollup *r = &run->r;
    r->saturated = p->saturated;
    fill_profile_histograms(p, r);
    for (uint32_t i = 0; i < p->arc_count; i++) {
        const struct profile_arc *arc = &p->arcs[i];
        r->from_build[i] = arc->from_build;
        r->to_build[i] = arc->to_build;
        r->from[i] = arc->from;
        r->to[i] = arc->to;
        r->calls[i] = arc->calls;
        r->commit[i] = arc->order.commit;
        r->rank[i] = arc->order.rank;
    }
    r->arc_count = p->arc_count;
    return run;
}

static void fill_shares(const uint64_t *numbers, uint32_t n, uint32_t group, uint64_t *out)
{
    memset(out, 0, (size_t)n * ROLLUP_GROUPS * sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        out[(size_t)i * ROLLUP_GROUPS + group] = numbers[i];
    }
}

struct rollup_run *rollup_run_share(struct rollup_runs *runs, const struct rollup_run *from, uint32_t group)
{
    const struct rollup *f = &from->r;
    struct rollup_run *run = rollup_run_take(runs, f->histogram_count, f->bin_count, f->arc_count);
    if (run == NULL) {
        return NULL;
    }
    struct rollup *r = &run->r;
    memcpy(r->histograms, f->histograms, f->histogram_count * sizeof *f->histograms);
    memcpy(r->bin_index, f->bin_index, f->bin_count * sizeof *f->bin_index);
    memcpy(r->bin_ticks, f->bin_ticks, f->bin_count * sizeof *f->bin_ticks);
    memcpy(r->from_build, f->from_build, f->arc_count * sizeof *f->from_build);
    memcpy(r->to_build, f->to_build, f->arc_count * sizeof *f->to_build);
    memcpy(r->from, f->from, f->arc_count * sizeof *f->from);
    memcpy(r->to, f->to, f->arc_count * sizeof *f->to);
    memcpy(r->calls, f->calls, f->arc_count * sizeof *f->calls);
    memcpy(r->commit, f->commit, f->arc_count * sizeof *f->commit);
    memcpy(r->rank, f->rank, f->arc_count * sizeof *f->rank);
    r->histogram_count = f->histogram_count;
    r->bin_count = f->bin_count;
    r->arc_count = f->arc_count;
    r->saturated = f->saturated;
    fill_shares(f->bin_ticks, f->bin_count, group, run->s.bins);
    fill_shares(f->calls, f->arc_count, group, run->s.arcs);
    return run;
}
