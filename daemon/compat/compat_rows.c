#include "compat/compat_rows.h"

#include <string.h>

#include "compat/compat_sort.h"
#include "core/sort.h"

#define RUN 16u /* up to this number, rows are sorted by insertion */

static uint32_t longest_list(const struct compat_arcs *arcs, uint32_t symbols)
{
    uint32_t longest = 0;
    for (uint32_t v = 0; v < symbols; v++) {
        uint32_t parents = arcs->parent_first[v + 1] - arcs->parent_first[v];
        uint32_t children = arcs->child_first[v + 1] - arcs->child_first[v];
        longest = parents > longest ? parents : longest;
        longest = children > longest ? children : longest;
    }
    return longest;
}

enum profd_status compat_rows_init(struct compat_rows *r, const struct compat_run *run, struct arena *a)
{
    size_t n = longest_list(&run->arcs, run->graph.symbols);
    *r = (struct compat_rows){ARENA_ARRAY(a, n, struct compat_row), ARENA_ARRAY(a, n, struct compat_row_key),
                              ARENA_ARRAY(a, n, struct compat_row_key), ARENA_ARRAY(a, n, uint32_t),
                              ARENA_ARRAY(a, n, uint32_t)};
    return r->rows == NULL || r->keys == NULL || r->scratch == NULL || r->list == NULL || r->list_scratch == NULL
               ? PROFD_NO_MEMORY
               : PROFD_OK;
}

static struct compat_row row_make(const struct compat_run *run, uint32_t parent, uint32_t child, uint64_t calls,
                                  uint32_t other)
{
    struct compat_row row = {.other = other, .calls = calls, .rank = COMPAT_RANK_OTHER};
    uint32_t cycle = run->cycles.number[parent];
    if (parent == child) {
        row.rank = COMPAT_RANK_SELF;
    } else if (cycle != 0 && cycle == run->cycles.number[child]) {
        row.rank = COMPAT_RANK_INSIDE;
    } else {
        row.flow = compat_graph_flow(&run->graph, parent, child, calls);
    }
    return row;
}

static bool key_less(const struct compat_row_key *x, const struct compat_row_key *y)
{
    return x->first < y->first || (x->first == y->first && x->second < y->second);
}

/* The sort key ascends with the row; a list has at most one self arc. Times are not negative. */
static struct compat_row_key key_make(const struct compat_row *row, uint32_t number)
{
    uint64_t first =
        row->rank == COMPAT_RANK_OTHER ? sort_key_double(row->flow.self + row->flow.child + 0.0) : (uint64_t)row->rank;
    return (struct compat_row_key){first, row->calls, number, 0};
}

static void keys_insert(struct compat_row_key *keys, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct compat_row_key key = keys[i];
        uint32_t j = i;
        for (; j > 0 && key_less(&key, &keys[j - 1]); j--) {
            keys[j] = keys[j - 1];
        }
        keys[j] = key;
    }
}

/* Merges from[low, middle) and from[middle, high). */
static void keys_merge(const struct compat_row_key *from, struct compat_row_key *to, size_t low, size_t middle,
                       size_t high)
{
    size_t i = low, j = middle;
    for (size_t k = low; k < high; k++) {
        to[k] = j == high || (i < middle && !key_less(&from[j], &from[i])) ? from[i++] : from[j++];
    }
}

/* Stable sort. Returns the array that contains the sorted keys. */
static const struct compat_row_key *keys_sort(struct compat_row_key *keys, struct compat_row_key *scratch, size_t n)
{
    for (size_t low = 0; low < n; low += RUN) {
        keys_insert(keys + low, (uint32_t)(n - low < RUN ? n - low : RUN));
    }
    for (size_t run = RUN; run < n; run *= 2) {
        for (size_t low = 0; low < n; low += 2 * run) {
            size_t middle = n - low < run ? n : low + run, high = n - low < 2 * run ? n : low + 2 * run;
            keys_merge(keys, scratch, low, middle, high);
        }
        struct compat_row_key *swap = keys;
        keys = scratch;
        scratch = swap;
    }
    return keys;
}

/* gprof's comparison, used if times are NaN. */
static int row_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct compat_row *a = (const struct compat_row *)context + x, *b = (const struct compat_row *)context + y;
    double a_time = a->flow.self + a->flow.child, b_time = b->flow.self + b->flow.child;
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->rank == COMPAT_RANK_OTHER && (a_time < b_time || a_time > b_time)) {
        return a_time < b_time ? -1 : 1;
    }
    if (a->rank == COMPAT_RANK_SELF || a->calls == b->calls) {
        return 0;
    }
    return a->calls < b->calls ? -1 : 1;
}

static int row_compare_down(const void *context, uint32_t x, uint32_t y)
{
    return row_compare(context, y, x);
}

static void rows_order(struct compat_rows *r, bool orderly, uint32_t n, bool down)
{
    if (!orderly) {
        for (uint32_t i = 0; i < n; i++) {
            r->list[i] = i;
        }
        compat_sort(r->list, r->list_scratch, n, down ? row_compare_down : row_compare, r->rows);
        return;
    }
    uint64_t flip = down ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < n; i++) {
        r->keys[i] = key_make(&r->rows[i], i);
        r->keys[i].first ^= flip;
        r->keys[i].second ^= flip;
    }
    const struct compat_row_key *sorted = keys_sort(r->keys, r->scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        r->list[i] = sorted[i].row;
    }
}

uint32_t compat_rows_parents(struct compat_rows *r, const struct compat_run *run, uint32_t v)
{
    const struct compat_arcs *arcs = &run->arcs;
    uint32_t first = arcs->parent_first[v], n = arcs->parent_first[v + 1] - first;
    for (uint32_t i = 0; i < n; i++) {
        r->rows[i] = row_make(run, arcs->parent[first + i], v, arcs->parent_calls[first + i], arcs->parent[first + i]);
    }
    rows_order(r, run->graph.orderly, n, false);
    return n;
}

uint32_t compat_rows_children(struct compat_rows *r, const struct compat_run *run, uint32_t v)
{
    const struct compat_arcs *arcs = &run->arcs;
    uint32_t first = arcs->child_first[v], n = arcs->child_first[v + 1] - first;
    for (uint32_t i = 0; i < n; i++) {
        r->rows[i] = row_make(run, v, arcs->child[first + i], arcs->calls[first + i], arcs->child[first + i]);
    }
    rows_order(r, run->graph.orderly, n, true);
    return n;
}
