#include "core/report_order.h"

#include <string.h>

#include "core/sort.h"

struct order_work {
    const struct report_function *functions;
    const struct report_cycle *cycles;
};

static double order_time(const struct order_work *w, uint32_t item)
{
    if ((item & REPORT_CYCLE) != 0) {
        return w->cycles[item & ~REPORT_CYCLE].self + w->cycles[item & ~REPORT_CYCLE].children;
    }
    return w->functions[item].self + w->functions[item].children;
}

/* Keys that ascend in the wanted order, least important first. */
static uint64_t order_key(const struct order_work *w, uint32_t item, int key)
{
    bool cycle = (item & REPORT_CYCLE) != 0;
    switch (key) {
    case 0:
        return cycle ? 0 : ~w->functions[item].calls;
    case 1:
        return cycle ? 0 : w->functions[item].raw[0] == '_' ? 2 : 1;
    default:
        return ~sort_key_double(order_time(w, item));
    }
}

/* Among equal keys: items are in order of position, and cycles of number. */
static int order_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct order_work *w = context;
    if (((x | y) & REPORT_CYCLE) != 0) {
        return 0;
    }
    return strcmp(w->functions[x].raw, w->functions[y].raw);
}

static bool order_same(const struct order_work *w, uint32_t x, uint32_t y)
{
    for (int key = 0; key < 3; key++) {
        if (order_key(w, x, key) != order_key(w, y, key)) {
            return false;
        }
    }
    return true;
}

static bool order_sort(struct arena *a, const struct order_work *w, uint32_t *items, uint32_t n)
{
    struct sort_item *sorted = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    uint32_t *scratch = ARENA_ARRAY(a, n, uint32_t);
    if (sorted == NULL || scratch == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        sorted[i].value = items[i];
    }
    for (int key = 0; key < 3; key++) {
        for (uint32_t i = 0; i < n; i++) {
            sorted[i].key = order_key(w, sorted[i].value, key);
        }
        sort_radix(sorted, sorted + n, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        items[i] = sorted[i].value;
    }
    for (uint32_t low = 0, high; low < n; low = high) {
        for (high = low + 1; high < n && order_same(w, items[low], items[high]); high++) {
            continue;
        }
        sort_merge(items + low, scratch, high - low, order_compare, w);
    }
    return true;
}

bool report_order_entries(struct arena *a, const struct report_graph *g, struct report_function *functions,
                          struct report_cycle *cycles, const uint32_t **order, uint32_t *count)
{
    struct order_work w = {functions, cycles};
    uint32_t *items = ARENA_ARRAY(a, (size_t)g->function_count + g->cycle_count, uint32_t), n = 0;
    if (items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        items[n++] = REPORT_CYCLE | i;
    }
    for (uint32_t i = 0; i < g->function_count; i++) {
        if (g->entry[g->node_of[i]]) {
            items[n++] = i;
        }
    }
    if (!order_sort(a, &w, items, n)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if ((items[i] & REPORT_CYCLE) != 0) {
            cycles[items[i] & ~REPORT_CYCLE].index = i + 1;
        } else {
            functions[items[i]].index = i + 1;
        }
    }
    *order = items;
    *count = n;
    return true;
}
