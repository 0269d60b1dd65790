#include "core/upload_sum.h"

#include <string.h>

#include "core/row_table.h"
#include "proto/collector.h"
#include "proto/sort.h"
#include "proto/sum.h"

#define SMALL 1024u /* up to so many bins, a histogram has a number for each of them */
#define SPARSE 32u  /* a larger one if that costs at most this many words for a bin that is stored */

/* One histogram in the making: dense where the bins pay for it, else a hash of the bins that are not zero. */
struct upload_histogram {
    struct counts_histogram head;
    uint64_t *dense; /* ticks by bin, or NULL */
    uint32_t *index; /* else: bins in order of arrival, and their ticks */
    uint64_t *ticks;
    uint32_t used, capacity;
    struct table table;
    uint64_t seed;
};

struct upload_sum {
    struct arena *arena;
    uint64_t seed; /* where the arena lies: differs between runs, and nothing that comes out depends on it */
    struct table arc_table, histogram_table;
    struct runs_arc *arcs;
    uint32_t arc_count, arc_capacity;
    struct upload_histogram *histograms;
    uint32_t histogram_count, histogram_capacity;
    bool saturated;
};

struct upload_sum *upload_sum_new(struct arena *a)
{
    struct upload_sum *s = ARENA_NEW(a, struct upload_sum);
    s->arena = a;
    s->seed = table_mix((uintptr_t)s, (uintptr_t)a);
    return s;
}

static uint64_t hash_bin(const void *context, uint32_t i)
{
    const struct upload_histogram *h = context;
    return table_mix(h->index[i], h->seed);
}

static uint64_t mix_geometry(const struct counts_geometry *g, uint64_t seed)
{
    return table_mix(table_mix(g->low ^ seed, g->high), (uint64_t)g->build << 32 | g->bins);
}

static uint64_t hash_histogram(const void *context, uint32_t i)
{
    const struct upload_sum *s = context;
    return mix_geometry(&s->histograms[i].head.geometry, s->seed);
}

static uint64_t mix_arc(const struct runs_arc *k, uint64_t seed)
{
    return table_mix(table_mix(k->from ^ seed, k->to), (uint64_t)k->from_build << 32 | k->to_build);
}

static uint64_t hash_arc(const void *context, uint32_t i)
{
    const struct upload_sum *s = context;
    return mix_arc(&s->arcs[i], s->seed);
}

/* Position of a bin among those that arrived, introduced with 0 ticks if new. */
static uint32_t find_bin(struct upload_histogram *h, struct arena *a, uint32_t bin)
{
    table_reserve(&h->table, a, hash_bin, h);
    uint32_t at = table_slot(&h->table, table_mix(bin, h->seed));
    for (; h->table.slots[at] != 0; at = (at + 1) & h->table.mask) {
        if (h->index[h->table.slots[at] - 1] == bin) {
            return h->table.slots[at] - 1;
        }
    }
    uint32_t capacity = h->capacity; /* of both arrays */
    h->index = arena_extend(a, h->index, h->used, &capacity, sizeof *h->index);
    h->ticks = arena_extend(a, h->ticks, h->used, &h->capacity, sizeof *h->ticks);
    h->index[h->used] = bin;
    h->table.slots[at] = ++h->used;
    h->table.used++;
    return h->used - 1;
}

/* The histogram of that geometry, which is introduced if new. */
static struct upload_histogram *find_histogram(struct upload_sum *s, const struct counts_geometry *geometry)
{
    table_reserve(&s->histogram_table, s->arena, hash_histogram, s);
    uint32_t slot = table_slot(&s->histogram_table, mix_geometry(geometry, s->seed));
    for (; s->histogram_table.slots[slot] != 0; slot = (slot + 1) & s->histogram_table.mask) {
        struct upload_histogram *known = &s->histograms[s->histogram_table.slots[slot] - 1];
        if (counts_compare_geometry(&known->head.geometry, geometry) == 0) {
            return known;
        }
    }
    s->histograms =
        arena_extend(s->arena, s->histograms, s->histogram_count, &s->histogram_capacity, sizeof *s->histograms);
    struct upload_histogram *h = &s->histograms[s->histogram_count];
    *h = (struct upload_histogram){.head = {.geometry = *geometry, .order = {UINT64_MAX, 0}}, .seed = s->seed};
    s->histogram_table.slots[slot] = ++s->histogram_count;
    s->histogram_table.used++;
    return h;
}

static void add_histogram(struct upload_sum *s, const struct counts *c, uint32_t i, uint64_t commit)
{
    const struct counts_histogram *in = &c->histograms[i];
    struct upload_histogram *h = find_histogram(s, &in->geometry);
    const uint32_t *index = c->bin_index + in->first, bins = in->bins, most = h->used > in->used ? h->used : in->used;
    const uint64_t *ticks = c->bin_ticks + in->first;
    bool full = false, *saturated = collector_is_dimension(in->dimension) ? &full : &s->saturated;
    counts_order_lower(&h->head.order, (struct counts_order){commit, i});
    if (!h->dense && (bins <= SMALL || bins / SPARSE <= most)) {
        h->dense = ARENA_ARRAY(s->arena, bins, uint64_t);
        for (uint32_t k = 0; k < h->used; k++) {
            h->dense[h->index[k]] = h->ticks[k];
        }
    }
    for (uint32_t k = 0; h->dense && k < in->used; k++) {
        sum_add(&h->dense[index[k]], ticks[k], saturated);
    }
    uint32_t at = UINT32_MAX; /* uploads of one program often bring the same bins in the same order: guess the next */
    for (uint32_t k = 0; !h->dense && k < in->used; k++) {
        at++;
        if (at >= h->used || h->index[at] != index[k]) {
            at = find_bin(h, s->arena, index[k]);
        }
        sum_add(&h->ticks[at], ticks[k], saturated);
    }
}

/* Position of the arc, introduced with 0 calls if new. */
static uint32_t find_arc(struct upload_sum *s, const struct runs_arc *key)
{
    /* Enters the arcs of the first upload: the table is made when a later upload has an arc that must be looked for. */
    while (s->arc_table.used < s->arc_count) {
        table_add(&s->arc_table, s->arena, hash_arc, s);
    }
    table_reserve(&s->arc_table, s->arena, hash_arc, s);
    uint32_t at = table_slot(&s->arc_table, mix_arc(key, s->seed));
    for (; s->arc_table.slots[at] != 0; at = (at + 1) & s->arc_table.mask) {
        if (runs_same_arc(&s->arcs[s->arc_table.slots[at] - 1], key)) {
            return s->arc_table.slots[at] - 1;
        }
    }
    s->arcs = arena_extend(s->arena, s->arcs, s->arc_count, &s->arc_capacity, sizeof *s->arcs);
    s->arcs[s->arc_count] = *key;
    s->arc_table.slots[at] = ++s->arc_count;
    s->arc_table.used++;
    return s->arc_count - 1;
}

void upload_sum_add(struct upload_sum *s, const struct counts *c, uint64_t commit)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        add_histogram(s, c, i, commit);
    }
    const bool first = s->arc_count == 0;
    if (first) {
        s->arcs = ARENA_ARRAY(s->arena, (size_t)c->arc_count + 1, struct runs_arc);
        s->arc_capacity = c->arc_count;
    }
    uint32_t at = UINT32_MAX; /* uploads of one program often bring the same arcs in the same order: guess the next */
    for (uint32_t i = 0; i < c->arc_count; i++) {
        const struct runs_arc key = {c->from_build[i], c->to_build[i], c->from[i], c->to[i], 0, {commit, i}};
        at++;
        if (first) { /* as it comes: upload_sum_finish joins equal ones */
            s->arcs[s->arc_count++] = key;
        } else if (at >= s->arc_count || !runs_same_arc(&s->arcs[at], &key)) {
            at = find_arc(s, &key);
        }
        sum_add(&s->arcs[at].calls, c->calls[i], &s->saturated);
        counts_order_lower(&s->arcs[at].order, key.order);
    }
}

static int compare_histograms(const void *context, uint32_t x, uint32_t y)
{
    const struct upload_histogram *h = context;
    return counts_compare_geometry(&h[x].head.geometry, &h[y].head.geometry);
}

/* The four keys of an arc, least important first. */
static uint64_t arc_key(const void *context, uint32_t i, int key)
{
    const struct runs_arc *arc = (const struct runs_arc *)context + i;
    return key == 0 ? arc->to : key == 1 ? arc->to_build : key == 2 ? arc->from : arc->from_build;
}

/* Adds the bins with ticks, ascending. O(bins) when dense, else O(used). */
static void put_bins(const struct upload_histogram *h, struct arena *a, struct counts *r)
{
    const uint32_t n = h->dense ? h->head.bins : h->used;
    struct sort_item *items = h->dense ? NULL : ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    for (uint32_t i = 0; items && i < n; i++) {
        items[i] = (struct sort_item){h->index[i], i};
    }
    if (items) {
        sort_radix(items, items + n, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t ticks = items ? h->ticks[items[i].value] : h->dense[i];
        if (ticks != 0) {
            r->bin_index[r->bin_count] = items ? (uint32_t)items[i].key : i;
            r->bin_ticks[r->bin_count++] = ticks;
        }
    }
}

struct runs_run *upload_sum_finish(struct upload_sum *s, struct runs *runs)
{
    struct arena *a = s->arena;
    const uint32_t heads = s->histogram_count, arcs = s->arc_count;
    uint64_t bins = 0;
    for (uint32_t i = 0; i < heads; i++) {
        const struct upload_histogram *h = &s->histograms[i];
        bins += h->dense ? 0 : h->used;
        for (uint32_t k = 0; h->dense && k < h->head.bins; k++) {
            bins += h->dense[k] != 0;
        }
    }
    struct runs_run *run = bins <= UINT32_MAX
                               ? runs_take(runs, (const uint32_t[COUNTS_KINDS]){heads, (uint32_t)bins, arcs, 0, 0})
                               : arena_fail(a);
    struct counts *r = &run->r;
    uint32_t *order = ARENA_ARRAY(a, (size_t)heads * 2, uint32_t);
    for (uint32_t i = 0; i < heads; i++) {
        order[i] = i;
    }
    sort_merge(order, order + heads, heads, compare_histograms, s->histograms);
    for (uint32_t i = 0; i < heads; i++) {
        struct counts_histogram *to = &r->histograms[i];
        *to = s->histograms[order[i]].head;
        to->first = r->bin_count;
        put_bins(&s->histograms[order[i]], a, r);
        to->used = r->bin_count - to->first;
    }
    r->histogram_count = heads;
    r->saturated = s->saturated;

    struct sort_item *items = ARENA_ARRAY(a, (size_t)arcs * 2, struct sort_item);
    for (uint32_t i = 0; i < arcs; i++) {
        items[i].value = i;
    }
    sort_keys(items, items + arcs, arcs, 4, arc_key, s->arcs);
    for (uint32_t i = 0; i < arcs; i++) {
        runs_add_arc(r, &s->arcs[items[i].value]);
    }
    return run;
}
