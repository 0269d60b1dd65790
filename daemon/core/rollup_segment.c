#include "core/rollup_segment.h"

#include "core/sort.h"
#include "core/sum.h"

/* ranks[i]: how many of the n rows arrived before row i. items has space for 2n; the first n have the ranks as keys. */
static void rank_rows(struct sort_item *items, const uint64_t *commits, uint32_t n, uint32_t *ranks)
{
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = commits[items[i].value];
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        ranks[items[i].value] = i;
    }
}

static bool make_arc_ranks(const struct rollup *r, struct arena *a, uint32_t *ranks)
{
    struct sort_item *items = ARENA_ARRAY(a, 2 * (size_t)r->arc_count, struct sort_item);
    if (items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < r->arc_count; i++) {
        items[i] = (struct sort_item){r->rank[i], i};
    }
    rank_rows(items, r->commit, r->arc_count, ranks);
    return true;
}

static bool make_histograms(const struct rollup *r, struct arena *a, struct segment_counts *c)
{
    const uint32_t n = r->histogram_count;
    struct sort_item *items = ARENA_ARRAY(a, 2 * (size_t)n, struct sort_item);
    uint64_t *commits = ARENA_ARRAY(a, n, uint64_t);
    c->histograms = ARENA_ARRAY(a, n, struct counts_histogram);
    c->histogram_rank = ARENA_ARRAY(a, n, uint32_t);
    if (items == NULL || commits == NULL || c->histograms == NULL || c->histogram_rank == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct rollup_histogram *h = &r->histograms[i];
        c->histograms[i] = (struct counts_histogram){.geometry = h->geometry, .first = h->first, .used = h->used};
        items[i] = (struct sort_item){h->order.rank, i};
        commits[i] = h->order.commit;
    }
    rank_rows(items, commits, n, c->histogram_rank);
    return true;
}

/* The shares of n rows, appended to shares. */
static void make_shares(const uint64_t *spread, uint32_t n, uint16_t *groups, struct segment_counts *c)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *row = spread + (size_t)i * ROLLUP_GROUPS;
        groups[i] = 0;
        for (unsigned g = 0; g < ROLLUP_GROUPS; g++) {
            if (row[g] != 0) {
                groups[i] = (uint16_t)(groups[i] | 1u << g);
                c->shares[c->share_count++] = row[g];
            }
        }
    }
}

enum profd_status rollup_make_segment(const struct rollup *r, const struct rollup_spread *spread, struct arena *a,
                                      struct segment *s, struct profd_error *e)
{
    const size_t rows = (size_t)r->bin_count + r->arc_count + r->node_count;
    if (rows > LIMIT_SEGMENT_ROWS) {
        return profd_error_set(e, PROFD_TOO_LARGE, "a sum of %zu rows, a segment has at most %u", rows,
                               LIMIT_SEGMENT_ROWS);
    }
    struct segment_counts c = {.bin_count = r->bin_count,
                               .arc_count = r->arc_count,
                               .histogram_count = r->histogram_count,
                               .bin_index = r->bin_index,
                               .from_build = r->from_build,
                               .to_build = r->to_build,
                               .from = r->from,
                               .to = r->to,
                               .tree_count = r->tree_count,
                               .node_count = r->node_count,
                               .trees = r->trees,
                               .node_depth = r->node_depth,
                               .node_kind = r->node_kind,
                               .node_build = r->node_build,
                               .node_address = r->node_address,
                               .rank = ARENA_ARRAY(a, r->arc_count, uint32_t),
                               .groups = ARENA_ARRAY(a, rows, uint16_t),
                               .shares = ARENA_ARRAY(a, rows * ROLLUP_GROUPS, uint64_t)};
    if (c.rank == NULL || c.groups == NULL || c.shares == NULL || !make_arc_ranks(r, a, c.rank) ||
        !make_histograms(r, a, &c)) {
        return profd_no_memory(e);
    }
    make_shares(spread->bins, r->bin_count, c.groups, &c);
    make_shares(spread->arcs, r->arc_count, c.groups + r->bin_count, &c);
    make_shares(spread->nodes, r->node_count, c.groups + r->bin_count + r->arc_count, &c);
    s->counts = c;
    s->saturated |= r->saturated;
    return PROFD_OK;
}

/* Takes the shares of n rows from *shares: their sums, and the spread, unless that is NULL. */
static void take_shares(const uint16_t *groups, uint32_t n, const uint64_t **shares, uint64_t *sums, uint64_t *spread)
{
    bool ignored = false;
    for (uint32_t i = 0; i < n; i++) {
        sums[i] = 0;
        for (unsigned left = groups[i]; left != 0; left &= left - 1) {
            if (spread != NULL) {
                spread[(size_t)i * ROLLUP_GROUPS + (unsigned)__builtin_ctz(left)] = **shares;
            }
            sum_add(&sums[i], *(*shares)++, &ignored);
        }
    }
}

static void take_histograms(const struct segment_counts *c, const struct profile_order *at,
                            struct rollup_histogram *out)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        out[i] = (struct rollup_histogram){.geometry = h->geometry,
                                           .first = h->first,
                                           .used = h->used,
                                           .order = {at->commit, at->rank + c->histogram_rank[i]}};
    }
}

enum profd_status rollup_from_segment(const struct segment *s, const struct profile_order *at, struct arena *a,
                                      struct rollup *r, struct rollup_spread *spread, struct profd_error *e)
{
    const struct segment_counts *c = &s->counts;
    struct rollup out = {.histogram_count = c->histogram_count,
                         .bin_count = c->bin_count,
                         .arc_count = c->arc_count,
                         .histograms = ARENA_ARRAY(a, c->histogram_count, struct rollup_histogram),
                         .bin_index = c->bin_index,
                         .bin_ticks = ARENA_ARRAY(a, c->bin_count, uint64_t),
                         .from_build = c->from_build,
                         .to_build = c->to_build,
                         .from = c->from,
                         .to = c->to,
                         .calls = ARENA_ARRAY(a, c->arc_count, uint64_t),
                         .commit = ARENA_ARRAY(a, c->arc_count, uint64_t),
                         .rank = ARENA_ARRAY(a, c->arc_count, uint32_t),
                         .tree_count = c->tree_count,
                         .node_count = c->node_count,
                         .trees = c->trees,
                         .node_depth = c->node_depth,
                         .node_kind = c->node_kind,
                         .node_build = c->node_build,
                         .node_address = c->node_address,
                         .node_ticks = ARENA_ARRAY(a, c->node_count, uint64_t),
                         .saturated = s->saturated};
    struct rollup_spread shares = {NULL, NULL, NULL};
    if (spread != NULL) {
        shares.bins = ARENA_ARRAY(a, (size_t)c->bin_count * ROLLUP_GROUPS, uint64_t);
        shares.arcs = ARENA_ARRAY(a, (size_t)c->arc_count * ROLLUP_GROUPS, uint64_t);
        shares.nodes = ARENA_ARRAY(a, (size_t)c->node_count * ROLLUP_GROUPS, uint64_t);
    }
    if (out.histograms == NULL || out.bin_ticks == NULL || out.calls == NULL || out.commit == NULL ||
        out.rank == NULL || out.node_ticks == NULL ||
        (spread != NULL && (shares.bins == NULL || shares.arcs == NULL || shares.nodes == NULL))) {
        return profd_no_memory(e);
    }
    const uint64_t *next = c->shares;
    take_histograms(c, at, out.histograms);
    take_shares(c->groups, c->bin_count, &next, out.bin_ticks, shares.bins);
    take_shares(c->groups + c->bin_count, c->arc_count, &next, out.calls, shares.arcs);
    take_shares(c->groups + c->bin_count + c->arc_count, c->node_count, &next, out.node_ticks, shares.nodes);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        out.commit[i] = at->commit;
        out.rank[i] = at->rank + c->rank[i];
    }
    *r = out;
    if (spread != NULL) {
        *spread = shares;
    }
    return PROFD_OK;
}
