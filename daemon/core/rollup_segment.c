#include "core/rollup_segment.h"

#include "core/sum.h"

/* The shares of n rows, appended to shares. */
static void make_shares(const uint64_t *spread, uint32_t n, uint16_t *groups, struct segment_counts *c)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *row = spread + (size_t)i * COUNTS_GROUPS;
        groups[i] = 0;
        for (unsigned g = 0; g < COUNTS_GROUPS; g++) {
            if (row[g] != 0) {
                groups[i] = (uint16_t)(groups[i] | 1u << g);
                c->shares[c->share_count++] = row[g];
            }
        }
    }
}

enum profd_status rollup_make_segment(const struct counts *r, const struct counts_shares *spread, struct arena *a,
                                      struct segment *s, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
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
                               .histograms = r->histograms,
                               .groups = ARENA_ARRAY(a, rows, uint16_t),
                               .shares = ARENA_ARRAY(a, rows * COUNTS_GROUPS, uint64_t)};
    rollup_rank(r, a, &c.rank, &c.histogram_rank);
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
                spread[(size_t)i * COUNTS_GROUPS + (unsigned)__builtin_ctz(left)] = **shares;
            }
            sum_add(&sums[i], *(*shares)++, &ignored);
        }
    }
}

static void take_histograms(const struct segment_counts *c, const struct counts_order *at, struct counts_histogram *out)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        out[i] = (struct counts_histogram){.geometry = h->geometry,
                                           .first = h->first,
                                           .used = h->used,
                                           .order = {at->commit, at->rank + c->histogram_rank[i]}};
    }
}

enum profd_status rollup_from_segment(const struct segment *s, const struct counts_order *at, struct arena *a,
                                      struct counts *r, struct counts_shares *spread, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    const struct segment_counts *c = &s->counts;
    struct counts out = {.histogram_count = c->histogram_count,
                         .bin_count = c->bin_count,
                         .arc_count = c->arc_count,
                         .histograms = ARENA_ARRAY(a, c->histogram_count, struct counts_histogram),
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
                         .sorted = true,
                         .saturated = s->saturated};
    struct counts_shares shares = {NULL, NULL, NULL};
    if (spread != NULL) {
        shares.bins = ARENA_ARRAY(a, (size_t)c->bin_count * COUNTS_GROUPS, uint64_t);
        shares.arcs = ARENA_ARRAY(a, (size_t)c->arc_count * COUNTS_GROUPS, uint64_t);
        shares.nodes = ARENA_ARRAY(a, (size_t)c->node_count * COUNTS_GROUPS, uint64_t);
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
