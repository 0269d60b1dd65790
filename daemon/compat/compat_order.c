#include "compat/compat_order.h"

#include <string.h>

#include "compat/compat_sort.h"
#include "proto/sort.h"

/* Context of the comparisons. */
struct view {
    const struct compat_graph *g;
    const struct compat_symbols *symbols;
};

static double total_of(const struct compat_node *n)
{
    return compat_node_share(n) + n->child_share;
}

static int name_compare(const struct view *w, uint32_t x, uint32_t y)
{
    return strcmp(w->symbols->raw[x], w->symbols->raw[y]);
}

/* gprof's comparisons, unchanged: if times are NaN they contradict each other, and the result depends on which pairs
 * are compared. */
static int node_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct view *w = context;
    const struct compat_node *a = &w->g->node[x], *b = &w->g->node[y];
    double difference = total_of(a) - total_of(b);
    if (difference < 0.0 || difference > 0.0) {
        return difference < 0.0 ? 1 : -1;
    }
    bool x_cycle = x >= w->g->symbols, y_cycle = y >= w->g->symbols;
    if (x_cycle || y_cycle) {
        return x_cycle && y_cycle ? 0 : x_cycle ? -1 : 1;
    }
    bool x_low = w->symbols->raw[x][0] == '_', y_low = w->symbols->raw[y][0] == '_';
    if (x_low != y_low) {
        return x_low ? 1 : -1;
    }
    if (a->calls != b->calls) {
        return a->calls > b->calls ? -1 : 1;
    }
    return name_compare(w, x, y);
}

static int flat_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct view *w = context;
    const struct compat_node *a = &w->g->node[x], *b = &w->g->node[y];
    if (a->time < b->time || a->time > b->time) {
        return a->time > b->time ? -1 : 1;
    }
    if (a->calls != b->calls) {
        return a->calls > b->calls ? -1 : 1;
    }
    return name_compare(w, x, y);
}

static enum profd_status list_merge(struct view *w, compat_compare *compare, uint32_t *list, uint32_t n,
                                    struct arena *a)
{
    uint32_t *scratch = ARENA_ARRAY(a, n, uint32_t);
    if (scratch == NULL) {
        return PROFD_NO_MEMORY;
    }
    compat_sort(list, scratch, n, compare, w);
    return PROFD_OK;
}

/* Descending; −0 is 0. */
static uint64_t time_key(double time)
{
    return ~sort_key_double(time + 0.0);
}

enum profd_status compat_order_nodes(struct compat_graph *g, const struct compat_symbols *s, struct arena *a)
{
    uint32_t n = g->nodes, cycles = g->nodes - g->symbols;
    struct view w = {g, s};
    if (!g->orderly) {
        for (uint32_t i = 0; i < n; i++) {
            g->listing[i] = i;
        }
        return list_merge(&w, node_compare, g->listing, n, a);
    }
    struct sort_item *items = ARENA_ARRAY(a, n, struct sort_item), *scratch = ARENA_ARRAY(a, n, struct sort_item);
    if (items == NULL || scratch == NULL) {
        return PROFD_NO_MEMORY;
    }
    /* Sorts by the least significant key first. */
    for (uint32_t i = 0; i < g->symbols; i++) {
        items[i] = (struct sort_item){~g->node[g->by_name[i]].calls, g->by_name[i]};
    }
    sort_radix(items, scratch, g->symbols);
    memmove(items + cycles, items, g->symbols * sizeof *items);
    for (uint32_t i = 0; i < cycles; i++) {
        items[i] = (struct sort_item){0, g->symbols + i};
    }
    for (uint32_t i = cycles; i < n; i++) {
        items[i].key = s->raw[items[i].value][0] == '_';
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = time_key(total_of(&g->node[items[i].value]));
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        g->listing[i] = items[i].value;
    }
    return PROFD_OK;
}

enum profd_status compat_order_flat(const struct compat_graph *g, const struct compat_symbols *s, uint32_t *list,
                                    uint32_t n, struct arena *a)
{
    struct view w = {g, s};
    if (!g->orderly) {
        return list_merge(&w, flat_compare, list, n, a);
    }
    struct sort_item *items = ARENA_ARRAY(a, n, struct sort_item), *scratch = ARENA_ARRAY(a, n, struct sort_item);
    bool *listed = ARENA_ARRAY(a, g->symbols, bool);
    if (items == NULL || scratch == NULL || listed == NULL) {
        return PROFD_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n; i++) {
        listed[list[i]] = true;
    }
    for (uint32_t i = 0, k = 0; i < g->symbols; i++) {
        if (listed[g->by_name[i]]) {
            items[k++] = (struct sort_item){~g->node[g->by_name[i]].calls, g->by_name[i]};
        }
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = time_key(g->node[items[i].value].time);
    }
    sort_radix(items, scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = items[i].value;
    }
    return PROFD_OK;
}
