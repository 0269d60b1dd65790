#include "core/counts_merge.h"

#include <string.h>

#include "core/sum.h"
#include "core/table.h"
#include "core/tree_merge.h"
#include "proto/collector.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"

#define NONE UINT32_MAX

/* Rows of out are found by their keys while they are added. */
struct counts_merger {
    struct counts *out;
    struct arena *arena;
    struct table arcs, histograms;
    uint64_t seed; /* where the arena lies: nothing that comes out depends on it */
};

static uint64_t merge_hash_arc(const void *context, uint32_t i)
{
    const struct counts_merger *x = context;
    const struct counts *c = x->out;
    return table_mix(table_mix(c->from[i] ^ x->seed, c->to[i]), (uint64_t)c->from_build[i] << 32 | c->to_build[i]);
}

static bool merge_same_arc(const struct counts *c, uint32_t i, uint32_t k)
{
    return c->from[i] == c->from[k] && c->to[i] == c->to[k] && c->from_build[i] == c->from_build[k] &&
           c->to_build[i] == c->to_build[k];
}

/* Inserts row `used` of out into one of the tables. known: its key may already be there; the row is then not inserted.
 * *place: its row, or the first with its key. False if memory is exhausted. */
static inline bool merge_enter(struct counts_merger *x, struct table *t, table_hash *hash,
                               bool (*same)(const struct counts *, uint32_t, uint32_t), bool known, uint32_t *place)
{
    if (!table_reserve(t, x->arena, hash, x)) {
        return false;
    }
    uint32_t row = t->used, at = table_slot(t, hash(x, row));
    for (; t->slots[at] != 0; at = (at + 1) & t->mask) {
        if (known && same(x->out, t->slots[at] - 1, row)) {
            *place = t->slots[at] - 1;
            return true;
        }
    }
    t->slots[at] = row + 1;
    t->used++;
    *place = row;
    return true;
}

static bool merge_enter_arc(struct counts_merger *x, bool known, uint32_t *place)
{
    return merge_enter(x, &x->arcs, merge_hash_arc, merge_same_arc, known, place);
}

static void merge_copy_arcs(struct counts *out, const struct counts *c)
{
    size_t n = c->arc_count;
    if (n == 0) {
        return;
    }
    memcpy(out->from_build, c->from_build, n * sizeof *c->from_build);
    memcpy(out->to_build, c->to_build, n * sizeof *c->to_build);
    memcpy(out->from, c->from, n * sizeof *c->from);
    memcpy(out->to, c->to, n * sizeof *c->to);
    memcpy(out->calls, c->calls, n * sizeof *c->calls);
}

static bool merge_add_arcs(struct counts_merger *x, const struct counts *old, const struct counts *more,
                           bool *saturated)
{
    struct counts *out = x->out;
    uint32_t place;
    merge_copy_arcs(out, old);
    for (uint32_t i = 0; i < old->arc_count && more->arc_count > 0; i++) {
        if (!merge_enter_arc(x, false, &place)) { /* a duplicate remains */
            return false;
        }
    }
    uint32_t n = old->arc_count;
    for (uint32_t i = 0; i < more->arc_count; i++) {
        out->from_build[n] = more->from_build[i];
        out->to_build[n] = more->to_build[i];
        out->from[n] = more->from[i];
        out->to[n] = more->to[i];
        out->calls[n] = 0;
        if (!merge_enter_arc(x, true, &place)) {
            return false;
        }
        sum_add(&out->calls[place], more->calls[i], saturated);
        n += place == n;
    }
    out->arc_count = n;
    return true;
}

static uint64_t merge_hash_histogram(const void *context, uint32_t i)
{
    const struct counts_merger *x = context;
    const struct counts_histogram *h = &x->out->histograms[i];
    return table_mix(table_mix(h->low ^ x->seed, h->high), (uint64_t)h->build << 32 | h->bins);
}

static bool merge_same_geometry(const struct counts *c, uint32_t i, uint32_t k)
{
    return counts_compare_geometry(&c->histograms[i].geometry, &c->histograms[k].geometry) == 0;
}

static bool merge_enter_histogram(struct counts_merger *x, bool known, uint32_t *place)
{
    return merge_enter(x, &x->histograms, merge_hash_histogram, merge_same_geometry, known, place);
}

/* How many bins two histograms have together. */
static uint32_t merge_count_bins(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m)
{
    uint32_t common = 0;
    for (uint32_t i = 0, k = 0; i < n && k < m;) {
        common += a[i] == b[k];
        uint32_t left = a[i], right = b[k];
        i += left <= right;
        k += right <= left;
    }
    return n + m - common;
}

/* Adds one of more's histograms to the last of out, which has space after it: from the end, so that nothing is
 * overwritten. */
static void merge_add_bins(struct counts *out, struct counts_histogram *h, const struct counts *more,
                           const struct counts_histogram *part, bool *saturated)
{
    uint32_t *index = out->bin_index + h->first;
    uint64_t *ticks = out->bin_ticks + h->first;
    const uint32_t *from = more->bin_index + part->first;
    const uint64_t *add = more->bin_ticks + part->first;
    uint32_t i = h->used, k = part->used, n = merge_count_bins(index, i, from, k);
    h->used = n;
    while (k > 0) {
        n--;
        if (i > 0 && index[i - 1] > from[k - 1]) {
            i--;
            index[n] = index[i];
            ticks[n] = ticks[i];
            continue;
        }
        uint64_t sum = 0;
        k--;
        if (i > 0 && index[i - 1] == from[k]) {
            sum = ticks[--i];
        }
        sum_add(&sum, add[k], saturated);
        index[n] = from[k];
        ticks[n] = sum;
    }
}

/* head[i], next: chain of more's histograms that belong to row i of out. Its rows are those of old and then the new
 * ones, still without bins. */
static void merge_fill_bins(struct counts *out, const struct counts *old, const struct counts *more,
                            const uint32_t *head, const uint32_t *next, bool *saturated)
{
    uint32_t n = 0;
    bool full = false;
    for (uint32_t i = 0; i < out->histogram_count; i++) {
        struct counts_histogram *h = &out->histograms[i];
        h->first = n;
        h->used = 0;
        if (i < old->histogram_count && old->histograms[i].used > 0) {
            const struct counts_histogram *was = &old->histograms[i];
            memcpy(out->bin_index + n, old->bin_index + was->first, was->used * sizeof *old->bin_index);
            memcpy(out->bin_ticks + n, old->bin_ticks + was->first, was->used * sizeof *old->bin_ticks);
            h->used = was->used;
        }
        for (uint32_t k = head[i]; k != NONE; k = next[k]) {
            merge_add_bins(out, h, more, &more->histograms[k],
                           collector_is_dimension(h->dimension) ? &full : saturated);
        }
        n += h->used;
    }
    out->bin_count = n;
}

static bool merge_add_histograms(struct counts_merger *x, const struct counts *old, const struct counts *more,
                                 bool *saturated)
{
    struct counts *out = x->out;
    uint32_t n = old->histogram_count, most = n + more->histogram_count, place;
    uint32_t *head = ARENA_ARRAY(x->arena, most + 1, uint32_t), *next = ARENA_ARRAY(x->arena, most + 1, uint32_t);
    if (head == NULL || next == NULL) {
        return false;
    }
    memset(head, 0xff, most * sizeof *head);
    for (uint32_t i = 0; i < n; i++) {
        out->histograms[i] = old->histograms[i];
        if (!merge_enter_histogram(x, false, &place)) {
            return false;
        }
    }
    for (uint32_t k = 0; k < more->histogram_count; k++) {
        out->histograms[n] = more->histograms[k];
        if (!merge_enter_histogram(x, true, &place)) {
            return false;
        }
        n += place == n;
        next[k] = head[place]; /* sums do not depend on the order */
        head[place] = k;
    }
    out->histogram_count = n;
    merge_fill_bins(out, old, more, head, next, saturated);
    return true;
}

static enum profd_status merge_add_trees(struct counts *out, const struct counts *old, const struct counts *more,
                                         bool *saturated, struct profd_error *e)
{
    struct counts_nodes nodes = COUNTS_NODES(out);
    tree_merge(&(struct tree_list){old->trees, COUNTS_NODES(old), old->tree_count},
               &(struct tree_list){more->trees, COUNTS_NODES(more), more->tree_count}, out->trees, &nodes,
               &out->tree_count, &out->node_count, NULL, saturated);
    return counts_tree_fold(out->trees, out->tree_count, &nodes, &out->node_count, LIMIT_STACK_NODES, NULL, e);
}

enum profd_status counts_merge(struct arena *scratch, const struct counts *old, const struct counts *more,
                               struct counts *out, bool *saturated, struct profd_error *e)
{
    struct counts sum;
    arena_reset(scratch);
    const struct counts_sizes sizes = {.histograms = old->histogram_count + more->histogram_count,
                                       .bins = old->bin_count + more->bin_count,
                                       .arcs = old->arc_count + more->arc_count,
                                       .trees = old->tree_count + more->tree_count,
                                       .nodes = old->node_count + more->node_count};
    enum profd_status status = counts_init_sizes(&sum, &sizes, e);
    if (status != PROFD_OK) {
        return status;
    }
    struct counts_merger x = {
        .out = &sum, .arena = scratch, .seed = table_mix((uintptr_t)scratch, (uintptr_t)sum.block)};
    bool full = false;
    if (!merge_add_arcs(&x, old, more, &full) || !merge_add_histograms(&x, old, more, &full)) {
        counts_done(&sum);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to add %u arcs to %u", more->arc_count, old->arc_count);
    }
    status = merge_add_trees(&sum, old, more, &full, e);
    if (status != PROFD_OK) {
        counts_done(&sum);
        return status;
    }
    *saturated |= full;
    *out = sum;
    return PROFD_OK;
}
