#include "proto/counts.h"

#include <stdlib.h>
#include <string.h>

#include "proto/counts_columns.h"
#include "proto/counts_internal.h"
#include "proto/counts_places.h"
#include "proto/counts_tree.h"
#include "proto/deflate.h"
#include "proto/varint.h"

/* What the decoder checks of histograms, so that whatever is encoded can be decoded. *bins: those that they use. */
static enum profd_status judge_histograms(const struct counts *c, uint64_t *bins, struct profd_error *e)
{
    uint64_t used = 0;
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        TRY(counts_judge_histogram(h, k, e));
        if (h->first > c->bin_count || h->used > c->bin_count - h->first) {
            return profd_error_set(e, PROFD_REFUSED, "histogram %u: bins %u to %u of %u", k, h->first,
                                   h->first + h->used, c->bin_count);
        }
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            if (c->bin_index[i] >= h->bins || (i > h->first && c->bin_index[i] <= c->bin_index[i - 1])) {
                return profd_error_set(e, PROFD_REFUSED, "histogram %u: bin %u is out of order or not below %u", k,
                                       c->bin_index[i], h->bins);
            }
            if (c->bin_ticks[i] == 0) {
                return profd_error_set(e, PROFD_REFUSED, "histogram %u: bin %u is zero", k, c->bin_index[i]);
            }
        }
        used += h->used;
    }
    *bins = used;
    return PROFD_OK;
}

static enum profd_status judge(const struct counts *c, uint64_t *bins, struct profd_error *e)
{
    struct counts_nodes nodes = COUNTS_NODES(c);
    if (!c->sorted) {
        TRY(counts_judge_sizes(c->histogram_count, c->bin_count, c->arc_count, e));
    }
    TRY(judge_histograms(c, bins, e));
    if (!c->sorted) {
        TRY(counts_judge_sizes(c->histogram_count, *bins, c->arc_count, e));
        TRY(counts_check_collector(c, e));
    }
    for (uint32_t i = 0; i < c->arc_count; i++) { /* so that places have at most that many runs */
        if ((c->from_build[i] >= LIMIT_BUILDS && c->from_build[i] != COUNTS_NOWHERE) ||
            (c->to_build[i] >= LIMIT_BUILDS && c->to_build[i] != COUNTS_NOWHERE)) {
            return profd_error_set(e, PROFD_REFUSED, "arc %u from build %u to build %u: at most %u builds are known", i,
                                   c->from_build[i], c->to_build[i], LIMIT_BUILDS);
        }
    }
    return counts_judge_trees(c->trees, c->tree_count, &nodes, c->node_count, LIMIT_BUILDS, e);
}

/* Scratch arrays for the largest of the columns. */
struct work {
    struct sort_item *items; /* twice as many as rows */
    struct counts_places places;
    uint64_t *numbers;
    uint8_t *raw; /* a section before it is compressed */
    void *block;
};

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static enum profd_status work_init(struct work *w, const struct counts *c, uint64_t bins, struct profd_error *e)
{
    const size_t rows = (size_t)most(c->arc_count, c->node_count), numbers = (size_t)most(rows, bins);
    const size_t places = COUNTS_PLACES_MAX + COUNTS_RUN_MAX * ((size_t)LIMIT_BUILDS + 1);
    const size_t arcs = 2 * places + 2 * VARINT_MAX + 7 * counts_column_bound(c->arc_count);
    const size_t histograms = (size_t)c->histogram_count * COUNTS_HISTOGRAM_MAX + 2 * counts_column_bound(bins);
    const size_t stacks = places + (size_t)c->tree_count * COUNTS_TREE_MAX + 4 * counts_column_bound(c->node_count);
    const size_t raw = (size_t)most(arcs, most(histograms, stacks));
    char *block = malloc(rows * (2 * sizeof *w->items + 2 * sizeof(uint64_t) + sizeof(uint32_t)) + 16 +
                         numbers * sizeof(uint64_t) + raw);
    if (block == NULL) {
        return profd_no_memory(e);
    }
    w->block = block;
    w->items = (struct sort_item *)(void *)block;
    w->places.address = (uint64_t *)(w->items + 2 * rows);
    w->places.of = w->places.address + rows;
    w->numbers = w->places.of + rows;
    w->places.build = (uint32_t *)(w->numbers + numbers);
    w->raw = (uint8_t *)(w->places.build + rows);
    return PROFD_OK;
}

/* The places of rows and which of them each row has, as differences to the row before: rows of sums ascend. */
static uint8_t *put_ends(struct work *w, const uint32_t *builds, const uint64_t *addresses, uint32_t n,
                         bool differences, uint8_t *p)
{
    counts_places_find(builds, addresses, n, w->items, &w->places);
    p = counts_places_put(&w->places, w->numbers, p);
    for (uint32_t i = 0; i < n; i++) {
        w->numbers[i] =
            differences ? varint_zigzag(w->places.of[i] - (i == 0 ? 0 : w->places.of[i - 1])) : w->places.of[i];
    }
    return counts_column_put(p, w->numbers, n, 0);
}

static uint8_t *put_orders(struct work *w, const struct counts *c, uint8_t *p)
{
    uint64_t lowest = c->arc_count == 0 ? 0 : UINT64_MAX;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        lowest = c->commit[i] < lowest ? c->commit[i] : lowest;
    }
    p = varint_put(p, lowest);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        w->numbers[i] = c->commit[i] - lowest;
    }
    p = counts_column_put(p, w->numbers, c->arc_count, 0);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        w->numbers[i] = varint_zigzag((uint64_t)c->rank[i] - (i == 0 ? 0 : c->rank[i - 1]));
    }
    return counts_column_put(p, w->numbers, c->arc_count, 0);
}

static uint8_t *put_arcs(struct work *w, const struct counts *c, uint8_t *p)
{
    p = put_ends(w, c->from_build, c->from, c->arc_count, true, p);
    p = put_ends(w, c->to_build, c->to, c->arc_count, false, p);
    if (c->sorted) {
        p = put_orders(w, c, p);
    }
    return counts_column_put(p, c->calls, c->arc_count, 1);
}

static uint8_t *put_text(const char *text, size_t most_bytes, uint8_t *p)
{
    const size_t n = strnlen(text, most_bytes);
    p = varint_put(p, n);
    memcpy(p, text, n);
    return p + n;
}

static uint8_t *put_histograms(struct work *w, const struct counts *c, uint8_t *p)
{
    size_t n = 0;
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        p = varint_put(p, h->build);
        p = varint_put(p, h->bins);
        p = varint_put(p, h->low);
        p = varint_put(p, h->high - h->low);
        p = varint_put(p, h->rate);
        p = put_text(h->dimension, sizeof h->dimension, p);
        *p++ = (uint8_t)h->abbreviation;
        p = varint_put(p, h->used);
        if (c->sorted) {
            p = varint_put(p, h->order.commit);
            p = varint_put(p, h->order.rank);
        }
        for (uint32_t i = h->first, next = 0; i < h->first + h->used; i++) {
            w->numbers[n++] = c->bin_index[i] - next;
            next = c->bin_index[i] + 1;
        }
    }
    p = counts_column_put(p, w->numbers, n, 0);
    n = 0;
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            w->numbers[n++] = c->bin_ticks[i];
        }
    }
    return counts_column_put(p, w->numbers, n, 1);
}

uint8_t *counts_encode_clocks(const struct counts_tree *trees, uint32_t n, uint8_t *p)
{
    for (const struct counts_tree *t = trees; t < trees + n; t++) {
        p = varint_put(p, t->rate);
        p = put_text(t->dimension, sizeof t->dimension, p);
        *p++ = (uint8_t)t->abbreviation;
        p = varint_put(p, t->used);
    }
    return p;
}

static uint8_t *put_stacks(struct work *w, const struct counts *c, uint8_t *p)
{
    p = counts_encode_clocks(c->trees, c->tree_count, p);
    for (uint32_t k = 0; k < c->tree_count; k++) {
        uint64_t deepest = 0; /* that is possible */
        for (uint32_t i = c->trees[k].first; i < c->trees[k].first + c->trees[k].used; i++) {
            w->numbers[i] = deepest - c->node_depth[i];
            deepest = c->node_depth[i] + 1u;
        }
    }
    p = counts_column_put(p, w->numbers, c->node_count, 0);
    p = counts_column_put(p, c->node_ticks, c->node_count, 1);
    counts_places_find(c->node_build, c->node_address, c->node_count, w->items, &w->places);
    p = counts_places_put(&w->places, w->numbers, p);
    for (uint32_t i = 0; i < c->node_count; i++) {
        w->numbers[i] = w->places.of[i] * 2 + c->node_kind[i];
    }
    return counts_column_put(p, w->numbers, c->node_count, 0);
}

/* The encoding in the making: a block that grows by one compressed section after the other. */
struct pack {
    uint8_t *block;
    size_t used;
    uint64_t raw[COUNTS_SECTIONS], packed[COUNTS_SECTIONS], total;
};

static enum profd_status pack_section(struct pack *x, unsigned section, const uint8_t *raw, size_t n,
                                      struct profd_error *e)
{
    size_t size = 0;
    uint8_t *grown = realloc(x->block, x->used + deflate_bound(n));
    if (grown == NULL) {
        return profd_no_memory(e);
    }
    x->block = grown;
    TRY(deflate_pack(raw, n, false, x->block + x->used, deflate_bound(n), &size, e));
    x->used += size;
    x->raw[section] = n;
    x->packed[section] = size;
    x->total += n;
    return x->total <= LIMIT_COUNTS_RAW ? PROFD_OK
                                        : profd_error_set(e, PROFD_TOO_LARGE, "counts of %llu bytes, at most %u",
                                                          (unsigned long long)x->total, LIMIT_COUNTS_RAW);
}

/* The head goes in front of the sections, which leave COUNTS_HEAD_MAX bytes for it, and everything moves down. */
static void pack_head(struct pack *x, const struct counts *c, uint64_t bins)
{
    uint8_t head[COUNTS_HEAD_MAX], *p = head;
    const unsigned sections = c->tree_count > 0 ? 3 : 2;
    *p++ = COUNTS_FORMAT;
    p = varint_put(p, x->total);
    *p++ = (uint8_t)((c->sorted ? COUNTS_FLAG_SORTED : 0) | (c->saturated ? COUNTS_FLAG_SATURATED : 0));
    p = varint_put(p, c->arc_count);
    p = varint_put(p, c->histogram_count);
    p = varint_put(p, bins);
    p = varint_put(p, c->tree_count);
    p = varint_put(p, c->node_count);
    for (unsigned i = 0; i < sections; i++) {
        p = varint_put(p, x->raw[i]);
        p = varint_put(p, x->packed[i]);
    }
    const size_t n = (size_t)(p - head);
    memmove(x->block + n, x->block + COUNTS_HEAD_MAX, x->used - COUNTS_HEAD_MAX);
    memcpy(x->block, head, n);
    x->used -= COUNTS_HEAD_MAX - n;
}

static enum profd_status encode(struct work *w, struct pack *x, const struct counts *c, uint64_t bins,
                                struct profd_error *e)
{
    TRY(work_init(w, c, bins, e));
    TRY(pack_section(x, 0, w->raw, (size_t)(put_arcs(w, c, w->raw) - w->raw), e));
    TRY(pack_section(x, 1, w->raw, (size_t)(put_histograms(w, c, w->raw) - w->raw), e));
    if (c->tree_count > 0) {
        TRY(pack_section(x, 2, w->raw, (size_t)(put_stacks(w, c, w->raw) - w->raw), e));
    }
    pack_head(x, c, bins);
    return PROFD_OK;
}

enum profd_status counts_encode(const struct counts *c, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    struct work w = {0};
    struct pack x = {.used = COUNTS_HEAD_MAX};
    uint64_t bins = 0;
    TRY(judge(c, &bins, e));
    enum profd_status status = encode(&w, &x, c, bins, e);
    free(w.block);
    if (status) {
        free(x.block);
        return status;
    }
    uint8_t *fitted = realloc(x.block, x.used);
    *out = fitted != NULL ? fitted : x.block;
    *out_size = x.used;
    return PROFD_OK;
}
