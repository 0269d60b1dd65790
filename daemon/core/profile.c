#include "core/profile.h"

#include <string.h>

#include "proto/sort.h"
#include "proto/sum.h"
#include "core/row_table.h"
#include "proto/collector.h"

/* One histogram in the making: dense where the bins pay for it, else a hash of the bins that are not zero. */

struct profile_bins {
    uint32_t bins;   /* of the geometry */
    uint64_t *dense; /* ticks by bin, or NULL */
    uint32_t *index; /* else: bins in order of arrival, and their ticks */
    uint64_t *ticks;
    uint32_t used, capacity;
    struct table table;
    uint64_t seed;
};

#define PROFILE_BINS_SMALL 1024u
#define PROFILE_BINS_SPARSE 32u /* dense costs at most this many words for a bin that is stored */

static uint64_t profile_bins_hash(const void *context, uint32_t i)
{
    const struct profile_bins *b = context;
    return table_mix(b->index[i], b->seed);
}

struct profile_rows { /* a histogram's identity and what is added up in it */
    struct profile_histogram head;
    struct profile_bins bins;
};

struct profile_sum {
    struct arena *arena;
    uint64_t seed;  /* where the arena lies: differs between runs, and nothing that comes out depends on it */
    struct set ids; /* of builds */
    struct table arc_table, histogram_table;
    const char **builds;
    struct counts_order *build_orders;
    uint32_t build_capacity;
    struct profile_arc *arcs;
    uint32_t arc_count, arc_capacity;
    struct profile_rows *histograms;
    uint32_t histogram_count, histogram_capacity;
    struct tree_sum *trees; /* NULL: not wanted */
    bool saturated;
};

struct profile_sum *profile_sum_new(struct arena *a)
{
    struct profile_sum *s = ARENA_NEW(a, struct profile_sum);
    s->arena = a;
    s->seed = table_mix((uintptr_t)s, (uintptr_t)a);
    set_init(&s->ids, a);
    return s;
}

uint32_t profile_sum_build(struct profile_sum *s, const char *build_id)
{
    bool added = false;
    const uint32_t build = set_add(&s->ids, build_id, strlen(build_id), &added);
    if (added) {
        uint32_t capacity = s->build_capacity; /* of both arrays */
        s->builds = arena_extend(s->arena, s->builds, build, &capacity, sizeof *s->builds);
        s->build_orders = arena_extend(s->arena, s->build_orders, build, &s->build_capacity, sizeof *s->build_orders);
        s->builds[build] = s->ids.keys[build].bytes;
        s->build_orders[build] = (struct counts_order){UINT64_MAX, UINT32_MAX};
    }
    return build;
}

void profile_sum_load_order(struct profile_sum *s, const uint32_t *map, uint32_t builds, uint64_t commit)
{
    for (uint32_t i = 0; i < builds; i++) {
        counts_order_lower(&s->build_orders[map[i]], (struct counts_order){commit, i});
    }
}

void profile_sum_note_order(struct profile_sum *s, uint32_t index, struct counts_order order)
{
    counts_order_lower(&s->build_orders[index], order);
}

static uint64_t profile_hash_geometry(const struct profile_histogram *h, uint64_t seed)
{
    return table_mix(table_mix(h->low ^ seed, h->high), (uint64_t)h->build << 32 | h->bins);
}

static uint64_t profile_hash_histogram(const void *context, uint32_t i)
{
    const struct profile_sum *s = context;
    return profile_hash_geometry(&s->histograms[i].head, s->seed);
}

static uint64_t profile_hash_key(const struct profile_arc *k, uint64_t seed)
{
    return table_mix(table_mix(k->from ^ seed, k->to), (uint64_t)k->from_build << 32 | k->to_build);
}

static uint64_t profile_hash_arc(const void *context, uint32_t i)
{
    const struct profile_sum *s = context;
    return profile_hash_key(&s->arcs[i], s->seed);
}

static bool profile_same_arc(const struct profile_arc *a, const struct profile_arc *b)
{
    return a->from == b->from && a->to == b->to && a->from_build == b->from_build && a->to_build == b->to_build;
}

/* Position of a bin among those that arrived, introduced with 0 ticks if new. */
static uint32_t profile_bins_find(struct profile_bins *b, struct arena *a, uint32_t bin)
{
    table_reserve(&b->table, a, profile_bins_hash, b);
    uint32_t at = table_slot(&b->table, table_mix(bin, b->seed));
    for (; b->table.slots[at] != 0; at = (at + 1) & b->table.mask) {
        if (b->index[b->table.slots[at] - 1] == bin) {
            return b->table.slots[at] - 1;
        }
    }
    if (b->used == b->capacity) {
        size_t capacity = b->capacity == 0 ? 256 : (size_t)b->capacity * 2; /* at most twice the bins of a histogram */
        uint32_t *index = ARENA_ARRAY(a, capacity, uint32_t);
        uint64_t *ticks = ARENA_ARRAY(a, capacity, uint64_t);
        if (b->used > 0) {
            memcpy(index, b->index, b->used * sizeof *index);
            memcpy(ticks, b->ticks, b->used * sizeof *ticks);
        }
        b->index = index;
        b->ticks = ticks;
        b->capacity = (uint32_t)capacity;
    }
    b->index[b->used] = bin;
    b->ticks[b->used] = 0;
    b->table.slots[at] = ++b->used;
    b->table.used++;
    return b->used - 1;
}

/* Adds a histogram of an upload to the one of its geometry, which is introduced if new. O(used) expected. */
static void profile_add_histogram(struct profile_sum *s, const struct counts *c, uint32_t i, const uint32_t *map,
                                  uint64_t commit)
{
    const struct counts_histogram *in = &c->histograms[i];
    struct profile_histogram key = {.geometry = in->geometry, .order = {commit, c->sorted ? in->order.rank : i}};
    struct profile_rows *row = NULL;
    key.build = map[in->build];
    table_reserve(&s->histogram_table, s->arena, profile_hash_histogram, s);
    uint32_t slot = table_slot(&s->histogram_table, profile_hash_geometry(&key, s->seed));
    for (; s->histogram_table.slots[slot] != 0 && row == NULL; slot = (slot + 1) & s->histogram_table.mask) {
        struct profile_rows *known = &s->histograms[s->histogram_table.slots[slot] - 1];
        row = counts_compare_geometry(&known->head.geometry, &key.geometry) == 0 ? known : NULL;
    }
    if (row == NULL) {
        s->histograms =
            arena_extend(s->arena, s->histograms, s->histogram_count, &s->histogram_capacity, sizeof *s->histograms);
        row = &s->histograms[s->histogram_count];
        row->head = key;
        row->bins = (struct profile_bins){.bins = key.bins, .seed = s->seed};
        s->histogram_table.slots[slot] = ++s->histogram_count;
        s->histogram_table.used++;
    }
    bool is_collector = collector_is_dimension(key.dimension), full = false;
    bool *saturated = is_collector ? &full : &s->saturated;
    counts_order_lower(&row->head.order, key.order);
    if (!is_collector) { /* they say nothing about a build */
        counts_order_lower(&s->build_orders[key.build], (struct counts_order){commit, in->build});
    }

    struct profile_bins *b = &row->bins;
    const uint32_t *index = c->bin_index + in->first, most = b->used > in->used ? b->used : in->used;
    const uint64_t *ticks = c->bin_ticks + in->first;
    if (b->dense == NULL && (b->bins <= PROFILE_BINS_SMALL || b->bins / PROFILE_BINS_SPARSE <= most)) {
        b->dense = ARENA_ARRAY(s->arena, b->bins, uint64_t);
        for (uint32_t k = 0; k < b->used; k++) {
            b->dense[b->index[k]] = b->ticks[k];
        }
    }
    for (uint32_t k = 0; b->dense != NULL && k < in->used; k++) {
        sum_add(&b->dense[index[k]], ticks[k], saturated);
    }
    uint32_t at = UINT32_MAX; /* uploads of one program often bring the same bins in the same order: guess the next */
    for (uint32_t k = 0; b->dense == NULL && k < in->used; k++) {
        at++;
        if (at >= b->used || b->index[at] != index[k]) {
            at = profile_bins_find(b, s->arena, index[k]);
        }
        sum_add(&b->ticks[at], ticks[k], saturated);
    }
}

/* Position of the arc, introduced with 0 calls if new. */
static uint32_t profile_find_arc(struct profile_sum *s, const struct profile_arc *key)
{
    /* Enters the arcs of the first upload: the table is made when a later upload has an arc that must be looked for. */
    while (s->arc_table.used < s->arc_count) {
        table_add(&s->arc_table, s->arena, profile_hash_arc, s);
    }
    table_reserve(&s->arc_table, s->arena, profile_hash_arc, s);
    uint32_t at = table_slot(&s->arc_table, profile_hash_key(key, s->seed));
    for (; s->arc_table.slots[at] != 0; at = (at + 1) & s->arc_table.mask) {
        if (profile_same_arc(&s->arcs[s->arc_table.slots[at] - 1], key)) {
            return s->arc_table.slots[at] - 1;
        }
    }
    s->arcs = arena_extend(s->arena, s->arcs, s->arc_count, &s->arc_capacity, sizeof *s->arcs);
    s->arcs[s->arc_count] = *key;
    s->arc_table.slots[at] = ++s->arc_count;
    s->arc_table.used++;
    return s->arc_count - 1;
}

/* The profile's index of the build at an arc's end. Marks the build as loaded. */
static uint32_t profile_map_end(struct profile_sum *s, uint32_t build, const uint32_t *map, uint64_t commit)
{
    if (build == COUNTS_NOWHERE) {
        return COUNTS_NOWHERE;
    }
    counts_order_lower(&s->build_orders[map[build]], (struct counts_order){commit, build});
    return map[build];
}

void profile_sum_add(struct profile_sum *s, const struct counts *c, const uint32_t *map, uint64_t commit,
                     bool arcs_only)
{
    for (uint32_t i = 0; i < c->histogram_count && !arcs_only; i++) {
        profile_add_histogram(s, c, i, map, commit);
    }
    bool first = s->arc_count == 0;
    if (first) {
        s->arcs = ARENA_ARRAY(s->arena, (size_t)c->arc_count + 1, struct profile_arc);
        s->arc_capacity = c->arc_count;
    }
    uint32_t at = UINT32_MAX; /* uploads of one program often bring the same arcs in the same order: guess the next */
    for (uint32_t i = 0; i < c->arc_count; i++) {
        struct profile_arc key = {.from_build = profile_map_end(s, c->from_build[i], map, commit),
                                  .to_build = profile_map_end(s, c->to_build[i], map, commit),
                                  .from = c->from[i],
                                  .to = c->to[i],
                                  .order = {commit, c->sorted ? c->rank[i] : i}};
        at++;
        if (first) { /* as it comes: profile_sum_finish joins equal ones */
            s->arcs[s->arc_count++] = key;
        } else if (at >= s->arc_count || !profile_same_arc(&s->arcs[at], &key)) {
            at = profile_find_arc(s, &key);
        }
        sum_add(&s->arcs[at].calls, c->calls[i], &s->saturated);
        counts_order_lower(&s->arcs[at].order, key.order);
    }
}

void profile_sum_want_stacks(struct profile_sum *s, bool shares)
{
    s->trees = tree_sum_new(s->arena, shares);
}

enum profd_status profile_sum_add_stacks(struct profile_sum *s, const struct tree_addend *more, uint64_t commit,
                                         struct profd_error *e)
{
    for (uint32_t i = 0; i < more->list.count && commit != UINT64_MAX; i++) {
        const struct counts_tree *t = &more->list.trees[i];
        for (uint32_t k = t->first; k < t->first + t->used; k++) {
            uint32_t build = more->list.nodes.build[k];
            if (build != COUNTS_NOWHERE && more->map[build] != COUNTS_NOWHERE) {
                counts_order_lower(&s->build_orders[more->map[build]], (struct counts_order){commit, build});
            }
        }
    }
    return tree_sum_add(s->trees, more, e);
}

static int profile_compare_histograms(const void *context, uint32_t x, uint32_t y)
{
    const struct profile_rows *rows = context;
    return counts_compare_geometry(&rows[x].head.geometry, &rows[y].head.geometry);
}

/* The four keys of an arc, least important first. */
static uint64_t profile_arc_key(const void *context, uint32_t i, int key)
{
    const struct profile_arc *arc = (const struct profile_arc *)context + i;
    return key == 0 ? arc->to : key == 1 ? arc->to_build : key == 2 ? arc->from : arc->from_build;
}

/* The bins with ticks, ascending, in new arrays of the arena. O(bins) when dense, else O(used). */
static void profile_bins_finish(const struct profile_bins *b, struct arena *a, struct profile_histogram *h)
{
    if (b->dense != NULL) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < b->bins; i++) {
            n += b->dense[i] != 0;
        }
        h->index = ARENA_ARRAY(a, n, uint32_t);
        h->ticks = ARENA_ARRAY(a, n, uint64_t);
        for (uint32_t i = 0; i < b->bins; i++) {
            if (b->dense[i] != 0) {
                h->index[h->used] = i;
                h->ticks[h->used++] = b->dense[i];
            }
        }
        return;
    }
    struct sort_item *items = ARENA_ARRAY(a, (size_t)b->used * 2, struct sort_item);
    h->index = ARENA_ARRAY(a, b->used, uint32_t);
    h->ticks = ARENA_ARRAY(a, b->used, uint64_t);
    for (uint32_t i = 0; i < b->used; i++) {
        items[i] = (struct sort_item){b->index[i], i};
    }
    sort_radix(items, items + b->used, b->used);
    for (uint32_t i = 0; i < b->used; i++) {
        if (b->ticks[items[i].value] != 0) {
            h->index[h->used] = (uint32_t)items[i].key;
            h->ticks[h->used++] = b->ticks[items[i].value];
        }
    }
}

enum profd_status profile_sum_finish(struct profile_sum *s, struct profile **out, struct profd_error *e)
{
    struct arena *a = s->arena;
    struct profile *p = ARENA_NEW(a, struct profile);
    p->build_count = s->ids.count;
    p->builds = s->builds;
    p->build_orders = s->build_orders;
    p->saturated = s->saturated;

    const uint32_t histograms = s->histogram_count, arcs = s->arc_count;
    uint32_t *order = ARENA_ARRAY(a, (size_t)histograms * 2, uint32_t);
    p->histogram_count = histograms;
    p->histograms = ARENA_ARRAY(a, histograms, struct profile_histogram);
    for (uint32_t i = 0; i < histograms; i++) {
        order[i] = i;
    }
    sort_merge(order, order + histograms, histograms, profile_compare_histograms, s->histograms);
    for (uint32_t i = 0; i < histograms; i++) {
        struct profile_histogram *h = &p->histograms[i];
        *h = s->histograms[order[i]].head;
        profile_bins_finish(&s->histograms[order[i]].bins, a, h);
        for (uint32_t k = 0; k < h->used && !collector_is_dimension(h->dimension); k++) {
            sum_add(&p->ticks, h->ticks[k], &p->saturated);
        }
    }

    struct sort_item *items = ARENA_ARRAY(a, (size_t)arcs * 2, struct sort_item);
    p->arcs = ARENA_ARRAY(a, arcs, struct profile_arc);
    for (uint32_t i = 0; i < arcs; i++) {
        items[i].value = i;
    }
    sort_keys(items, items + arcs, arcs, 4, profile_arc_key, s->arcs);
    for (uint32_t i = 0; i < arcs; i++) {
        const struct profile_arc *arc = &s->arcs[items[i].value];
        struct profile_arc *last = p->arc_count > 0 ? &p->arcs[p->arc_count - 1] : NULL;
        if (last != NULL && profile_same_arc(last, arc)) {
            sum_add(&last->calls, arc->calls, &p->saturated);
            counts_order_lower(&last->order, arc->order);
        } else {
            p->arcs[p->arc_count++] = *arc;
        }
        sum_add(&p->calls, arc->calls, &p->saturated);
    }

    struct tree_total t = {0};
    if (s->trees != NULL) {
        TRY(tree_sum_finish(s->trees, &t, &p->saturated, e));
    }
    p->tree_count = t.tree_count;
    p->node_count = t.node_count;
    p->trees = t.trees;
    p->node_depth = t.nodes.depth;
    p->node_kind = t.nodes.kind;
    p->node_build = t.nodes.build;
    p->node_address = t.nodes.address;
    p->node_ticks = t.nodes.ticks;
    p->node_shares = t.shares;
    *out = p;
    return PROFD_OK;
}
