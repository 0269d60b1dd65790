#include "clickhouse/import_cut.h"

/* Bins from `from` on, n of them, with the histograms that have them; those without any are in the first part. */
static bool cut_bins(const struct rollup *r, uint32_t from, uint32_t n, struct arena *a, struct rollup *part)
{
    part->histograms = ARENA_ARRAY(a, r->histogram_count + 1, struct rollup_histogram);
    if (!part->histograms) {
        return false;
    }
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        struct rollup_histogram h = r->histograms[i];
        const uint32_t end = h.first + h.used, low = h.first > from ? h.first : from,
                       high = end < from + n ? end : from + n;
        if (low < high || (h.used == 0 && from == 0)) {
            h.first = h.used == 0 ? 0 : low - from;
            h.used = h.used == 0 ? 0 : high - low;
            part->histograms[part->histogram_count++] = h;
        }
    }
    part->bin_count = n;
    part->bin_index = r->bin_index + from;
    part->bin_ticks = r->bin_ticks + from;
    return true;
}

static void cut_arcs(const struct rollup *r, uint32_t from, uint32_t n, struct rollup *part)
{
    part->arc_count = n;
    part->from_build = r->from_build + from;
    part->to_build = r->to_build + from;
    part->from = r->from + from;
    part->to = r->to + from;
    part->calls = r->calls + from;
    part->commit = r->commit + from;
    part->rank = r->rank + from;
}

static void cut_nodes(const struct rollup *r, struct rollup *part)
{
    part->tree_count = r->tree_count;
    part->trees = r->trees;
    part->node_count = r->node_count;
    part->node_depth = r->node_depth;
    part->node_kind = r->node_kind;
    part->node_build = r->node_build;
    part->node_address = r->node_address;
    part->node_ticks = r->node_ticks;
}

static uint32_t at_most(uint32_t n, uint32_t most)
{
    return n < most ? n : most;
}

bool import_cut_next(struct import_cut *cut, const struct rollup *r, const struct rollup_spread *spread, uint32_t most,
                     struct arena *a, struct rollup *part, struct rollup_spread *part_spread)
{
    const uint32_t nodes = cut->nodes ? 0 : r->node_count;
    const uint32_t bins = at_most(r->bin_count - cut->bins, most - nodes);
    const uint32_t arcs = at_most(r->arc_count - cut->arcs, most - nodes - bins);
    *part = (struct rollup){.saturated = r->saturated};
    *part_spread = (struct rollup_spread){.bins = spread->bins + (size_t)cut->bins * ROLLUP_GROUPS,
                                          .arcs = spread->arcs + (size_t)cut->arcs * ROLLUP_GROUPS,
                                          .nodes = spread->nodes};
    if (!cut_bins(r, cut->bins, bins, a, part)) {
        return false;
    }
    cut_arcs(r, cut->arcs, arcs, part);
    if (!cut->nodes) {
        cut_nodes(r, part);
    }
    cut->bins += bins;
    cut->arcs += arcs;
    cut->nodes = true;
    cut->done = cut->bins == r->bin_count && cut->arcs == r->arc_count;
    return true;
}
