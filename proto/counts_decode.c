#include "proto/counts.h"

#include <stdlib.h>
#include <string.h>

#include "proto/counts_columns.h"
#include "proto/counts_internal.h"
#include "proto/counts_places.h"
#include "proto/counts_tree.h"
#include "proto/deflate.h"
#include "proto/varint.h"

/* What precedes the sections. */
struct head {
    struct counts_sizes sizes;
    bool saturated;
    unsigned sections;
    uint64_t raw[COUNTS_SECTIONS], packed[COUNTS_SECTIONS];
};

/* Numbers of rows, which must fit the limits and their sections: a row takes a byte at least. */
static enum profd_status decode_sizes(const uint64_t n[5], struct head *h, struct profd_error *e)
{
    const uint64_t arcs = n[0], histograms = n[1], bins = n[2], trees = n[3], nodes = n[4];
    if (!h->sizes.sorted) {
        TRY(counts_judge_sizes(histograms, bins, arcs, e));
    }
    if (trees > LIMIT_STACK_TREES || nodes > LIMIT_STACK_NODES) {
        return profd_error_set(e, PROFD_TOO_LARGE, "stacks of %llu clocks with %llu nodes, at most %u with %u",
                               (unsigned long long)trees, (unsigned long long)nodes, LIMIT_STACK_TREES,
                               LIMIT_STACK_NODES);
    }
    if (arcs > h->raw[0] || bins > h->raw[1] || histograms > h->raw[1] / COUNTS_HISTOGRAM_MIN || nodes > h->raw[2] ||
        trees > nodes || (trees == 0 && nodes > 0)) {
        return profd_error_set(
            e, PROFD_MALFORMED,
            "%llu arcs, %llu histograms with %llu bins and %llu trees with %llu nodes stated in %llu, %llu and %llu "
            "bytes",
            (unsigned long long)arcs, (unsigned long long)histograms, (unsigned long long)bins,
            (unsigned long long)trees, (unsigned long long)nodes, (unsigned long long)h->raw[0],
            (unsigned long long)h->raw[1], (unsigned long long)h->raw[2]);
    }
    h->sizes.arcs = (uint32_t)arcs;
    h->sizes.histograms = (uint32_t)histograms;
    h->sizes.bins = (uint32_t)bins;
    h->sizes.trees = (uint32_t)trees;
    h->sizes.nodes = (uint32_t)nodes;
    return PROFD_OK;
}

/* The sizes of the sections, which fill the rest. */
static enum profd_status decode_sections(struct counts_reader *r, uint64_t total, struct head *h, struct profd_error *e)
{
    uint64_t raw = 0, packed = 0;
    for (unsigned i = 0; i < h->sections; i++) {
        if (!varint_get(&r->at, r->end, &h->raw[i]) || !varint_get(&r->at, r->end, &h->packed[i])) {
            return counts_decode_short("their sizes", e);
        }
        if (h->raw[i] > total - raw || h->packed[i] > (size_t)(r->end - r->at)) {
            return profd_error_set(e, PROFD_MALFORMED, "a section of %llu bytes in %llu, of counts of %llu in %zu",
                                   (unsigned long long)h->raw[i], (unsigned long long)h->packed[i],
                                   (unsigned long long)total, (size_t)(r->end - r->at));
        }
        if (h->raw[i] > deflate_content_max((size_t)h->packed[i])) {
            return profd_error_set(e, PROFD_MALFORMED, "a section of %llu bytes stated in %llu",
                                   (unsigned long long)h->raw[i], (unsigned long long)h->packed[i]);
        }
        raw += h->raw[i];
        packed += h->packed[i];
    }
    if (raw != total || packed != (size_t)(r->end - r->at)) {
        return profd_error_set(
            e, PROFD_MALFORMED, "sections of %llu bytes in %llu, where %llu in %zu are stated or there",
            (unsigned long long)raw, (unsigned long long)packed, (unsigned long long)total, (size_t)(r->end - r->at));
    }
    return PROFD_OK;
}

static enum profd_status decode_head(struct counts_reader *r, struct head *h, struct profd_error *e)
{
    uint64_t total, n[5];
    const size_t size = (size_t)(r->end - r->at);
    if (size < 1 || *r->at != COUNTS_FORMAT) {
        return profd_error_set(e, PROFD_MALFORMED, "counts of %zu bytes in format %u: only %d is known", size,
                               size < 1 ? 0u : *r->at, COUNTS_FORMAT);
    }
    r->at++;
    if (!varint_get(&r->at, r->end, &total)) {
        return counts_decode_short("their size", e);
    }
    if (total > LIMIT_COUNTS_RAW) {
        return profd_error_set(e, PROFD_TOO_LARGE, "counts of %llu bytes, at most %u", (unsigned long long)total,
                               LIMIT_COUNTS_RAW);
    }
    if (r->at == r->end || *r->at > COUNTS_FLAGS) {
        return profd_error_set(e, PROFD_MALFORMED, "counts with flags %u: known are %u", r->at == r->end ? 0u : *r->at,
                               COUNTS_FLAGS);
    }
    h->sizes.sorted = *r->at & COUNTS_FLAG_SORTED;
    h->saturated = *r->at++ & COUNTS_FLAG_SATURATED;
    for (unsigned i = 0; i < 5; i++) {
        if (!varint_get(&r->at, r->end, &n[i])) {
            return counts_decode_short("their sizes", e);
        }
    }
    h->sections = n[3] > 0 ? 3 : 2;
    TRY(decode_sections(r, total, h, e));
    return decode_sizes(n, h, e);
}

enum profd_status counts_decode_sizes(const uint8_t *in, size_t n, struct counts_sizes *out, uint64_t *raw,
                                      struct profd_error *e)
{
    struct counts_reader r = {in, n == 0 ? in : in + n};
    struct head h = {0};
    TRY(decode_head(&r, &h, e));
    *out = h.sizes;
    *raw = h.raw[0] + h.raw[1] + h.raw[2];
    return PROFD_OK;
}

/* Arrays for the places of the largest section, and its raw bytes. */
struct work {
    struct counts_places places;
    uint64_t *scratch;
    uint8_t *raw;
    void *block;
};

static enum profd_status work_init(struct work *w, const struct head *h, unsigned parts, struct profd_error *e)
{
    const size_t arcs = parts & COUNTS_ARCS ? h->sizes.arcs : 0, nodes = parts & COUNTS_STACKS ? h->sizes.nodes : 0;
    const size_t rows = arcs > nodes ? arcs : nodes;
    size_t raw = 1;
    for (unsigned i = 0; i < h->sections; i++) {
        raw = (parts >> i & 1) != 0 && h->raw[i] > raw ? (size_t)h->raw[i] : raw;
    }
    char *block = malloc(rows * (2 * sizeof(uint64_t) + sizeof(uint32_t)) + raw);
    if (block == NULL) {
        return profd_no_memory(e);
    }
    w->block = block;
    w->places.address = (uint64_t *)(void *)block;
    w->scratch = w->places.address + rows;
    w->places.build = (uint32_t *)(w->scratch + rows);
    w->raw = (uint8_t *)(w->places.build + rows);
    return PROFD_OK;
}

/* Builds and addresses of the rows, of which numbers are the places. False: there is no such place. */
static bool take_places(const struct counts_places *places, const uint64_t *numbers, uint32_t n, uint32_t *builds,
                        uint64_t *addresses)
{
    bool beyond = false;
    for (uint32_t i = 0; i < n; i++) {
        beyond |= numbers[i] >= places->count;
    }
    for (uint32_t i = 0; i < n && !beyond; i++) {
        builds[i] = places->build[numbers[i]];
        addresses[i] = places->address[numbers[i]];
    }
    return !beyond;
}

/* Reads when each arc of sorted counts arrived first. scratch has space for the rows. */
static enum profd_status decode_orders(struct counts_reader *r, struct counts *c, uint64_t *scratch,
                                       struct profd_error *e)
{
    uint64_t lowest, rank = 0;
    bool bad = false;
    if (!varint_get(&r->at, r->end, &lowest) || !counts_column_get(&r->at, r->end, c->commit, c->arc_count) ||
        !counts_column_get(&r->at, r->end, scratch, c->arc_count)) {
        return counts_decode_short("the order of arcs", e);
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        c->commit[i] += lowest;
        bad |= c->commit[i] < lowest;
        rank += varint_unzigzag(scratch[i]);
        bad |= rank > UINT32_MAX;
        c->rank[i] = (uint32_t)rank;
    }
    return bad ? profd_error_set(e, PROFD_MALFORMED, "a commit or rank of an arc is out of range") : PROFD_OK;
}

static enum profd_status decode_arcs(struct counts_reader *r, uint32_t builds, struct work *w, struct counts *c,
                                     struct profd_error *e)
{
    uint64_t *from = c->from, *to = c->calls, place = 0; /* calls are read last */
    TRY(counts_places_get(r, builds, "an arc", c->arc_count, w->scratch, &w->places, e));
    if (!counts_column_get(&r->at, r->end, w->scratch, c->arc_count)) {
        return counts_decode_short("the callers of arcs", e);
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        place += varint_unzigzag(w->scratch[i]);
        w->scratch[i] = place;
    }
    if (!take_places(&w->places, w->scratch, c->arc_count, c->from_build, from)) {
        return profd_error_set(e, PROFD_MALFORMED, "the caller of an arc is none of %u places", w->places.count);
    }
    /* The places of the callees replace those of the callers, and sorted arcs keep the numbers of these in commit. */
    if (c->sorted && c->arc_count > 0) {
        memcpy(c->commit, w->scratch, c->arc_count * sizeof *c->commit);
    }
    TRY(counts_places_get(r, builds, "an arc", c->arc_count, w->scratch, &w->places, e));
    if (!counts_column_get(&r->at, r->end, to, c->arc_count)) {
        return counts_decode_short("the callees of arcs", e);
    }
    if (!take_places(&w->places, to, c->arc_count, c->to_build, c->to)) {
        return profd_error_set(e, PROFD_MALFORMED, "the callee of an arc is none of %u places", w->places.count);
    }
    if (c->sorted) {
        /* commit and to have the numbers of the places, which ascend as the places do. */
        bool ascend = true;
        for (uint32_t i = 1; i < c->arc_count; i++) {
            ascend &= c->commit[i] > c->commit[i - 1] || (c->commit[i] == c->commit[i - 1] && to[i] > to[i - 1]);
        }
        if (!ascend) {
            return profd_error_set(e, PROFD_MALFORMED, "arcs of a sum do not ascend");
        }
        TRY(decode_orders(r, c, w->scratch, e));
    }
    if (!counts_column_get(&r->at, r->end, c->calls, c->arc_count)) {
        return counts_decode_short("the counts of arcs", e);
    }
    for (uint32_t i = 0; c->sorted && i < c->arc_count; i++) {
        if (c->calls[i] > (uint64_t)INT64_MAX) {
            return profd_error_set(e, PROFD_MALFORMED, "arc %u of a sum has more than 2^63-1 calls", i);
        }
    }
    return PROFD_OK;
}

static bool get_text(struct counts_reader *r, char text[16])
{
    uint64_t n;
    if (!varint_get(&r->at, r->end, &n) || n > 15 || n > (size_t)(r->end - r->at)) {
        return false;
    }
    memset(text, 0, 16);
    memcpy(text, r->at, (size_t)n);
    r->at += n;
    return true;
}

static enum profd_status decode_histogram(struct counts_reader *r, uint32_t at, uint32_t builds, bool sorted,
                                          struct counts_histogram *h, struct profd_error *e)
{
    uint64_t build, bins, span, rate, used, rank = 0;
    *h = (struct counts_histogram){0};
    if (!varint_get(&r->at, r->end, &build) || !varint_get(&r->at, r->end, &bins) ||
        !varint_get(&r->at, r->end, &h->low) || !varint_get(&r->at, r->end, &span) ||
        !varint_get(&r->at, r->end, &rate) || !get_text(r, h->dimension) || r->at == r->end) {
        return counts_decode_short("a histogram", e);
    }
    h->abbreviation = (char)*r->at++;
    if (!varint_get(&r->at, r->end, &used) ||
        (sorted && (!varint_get(&r->at, r->end, &h->order.commit) || !varint_get(&r->at, r->end, &rank)))) {
        return counts_decode_short("a histogram", e);
    }
    if (build > UINT32_MAX || bins > UINT32_MAX || rate > UINT32_MAX || used > UINT32_MAX || rank > UINT32_MAX) {
        return profd_error_set(e, PROFD_TOO_LARGE, "histogram %u: a number needs more than 32 bits", at);
    }
    h->build = (uint32_t)build;
    h->bins = (uint32_t)bins;
    h->high = h->low + span;
    h->rate = (uint32_t)rate;
    h->used = (uint32_t)used;
    h->order.rank = (uint32_t)rank;
    TRY(counts_judge_histogram(h, at, e));
    if (h->build >= builds) {
        return profd_error_set(e, PROFD_MALFORMED, "histogram %u of build %u: the upload has %u", at, h->build, builds);
    }
    if (sorted && at > 0 && counts_compare_geometry(&h[-1].geometry, &h->geometry) >= 0) {
        return profd_error_set(e, PROFD_MALFORMED, "histogram %u of a sum is out of order", at);
    }
    return PROFD_OK;
}

static enum profd_status decode_bins(struct counts_reader *r, struct counts *c, struct profd_error *e)
{
    if (!counts_column_get(&r->at, r->end, c->bin_ticks, c->bin_count)) { /* gaps, for the moment */
        return counts_decode_short("bins", e);
    }
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        uint64_t next = 0;
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            const uint64_t gap = c->bin_ticks[i];
            if (gap >= h->bins - next) {
                return profd_error_set(e, PROFD_MALFORMED, "histogram %u: a bin lies beyond the last of %u", k,
                                       h->bins);
            }
            c->bin_index[i] = (uint32_t)(next + gap);
            next += gap + 1;
        }
    }
    if (!counts_column_get(&r->at, r->end, c->bin_ticks, c->bin_count)) {
        return counts_decode_short("ticks", e);
    }
    bool zero = false, large = false;
    for (uint32_t i = 0; i < c->bin_count; i++) {
        zero |= c->bin_ticks[i] == 0;
        large |= c->bin_ticks[i] > (uint64_t)INT64_MAX;
    }
    return zero                 ? profd_error_set(e, PROFD_MALFORMED, "a bin with 0 ticks: only non-zero bins are sent")
           : c->sorted && large ? profd_error_set(e, PROFD_MALFORMED, "a bin of a sum has more than 2^63-1 ticks")
                                : PROFD_OK;
}

static enum profd_status decode_histograms(struct counts_reader *r, uint32_t builds, struct work *w, struct counts *c,
                                           struct profd_error *e)
{
    uint64_t first = 0;
    (void)w;
    for (uint32_t i = 0; i < c->histogram_count && first <= c->bin_count; i++) {
        struct counts_histogram *h = &c->histograms[i];
        TRY(decode_histogram(r, i, builds, c->sorted, h, e));
        h->first = (uint32_t)first;
        first += h->used;
    }
    if (first != c->bin_count) {
        return profd_error_set(e, PROFD_MALFORMED, "histograms have %llu non-zero bins where %u were stated",
                               (unsigned long long)first, c->bin_count);
    }
    if (!c->sorted) {
        TRY(counts_check_collector(c, e));
    }
    return decode_bins(r, c, e);
}

static enum profd_status decode_clocks(struct counts_reader *r, struct counts *c, struct profd_error *e)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < c->tree_count; i++) {
        struct counts_tree *t = &c->trees[i];
        uint64_t rate, used;
        *t = (struct counts_tree){0};
        if (!varint_get(&r->at, r->end, &rate) || !get_text(r, t->dimension) || r->at == r->end) {
            return counts_decode_short("the clocks of stacks", e);
        }
        t->abbreviation = (char)*r->at++;
        if (!varint_get(&r->at, r->end, &used)) {
            return counts_decode_short("the clocks of stacks", e);
        }
        if (rate > UINT32_MAX || used > c->node_count - first) {
            return profd_error_set(e, PROFD_MALFORMED, "stacks %u: rate %llu, %llu nodes of %u", i,
                                   (unsigned long long)rate, (unsigned long long)used, c->node_count);
        }
        t->rate = (uint32_t)rate;
        t->first = (uint32_t)first;
        t->used = (uint32_t)used;
        first += used;
    }
    return PROFD_OK;
}

static enum profd_status decode_stacks(struct counts_reader *r, uint32_t builds, struct work *w, struct counts *c,
                                       struct profd_error *e)
{
    TRY(decode_clocks(r, c, e));
    if (!counts_column_get(&r->at, r->end, w->scratch, c->node_count)) {
        return counts_decode_short("the depths of stacks", e);
    }
    for (uint32_t k = 0; k < c->tree_count; k++) {
        const struct counts_tree *t = &c->trees[k];
        uint64_t deepest = 0; /* that is possible */
        for (uint32_t i = t->first; i < t->first + t->used; i++) {
            if (w->scratch[i] > deepest || deepest - w->scratch[i] >= LIMIT_STACK_DEPTH) {
                return profd_error_set(
                    e, PROFD_MALFORMED, "node %u of stacks: %llu levels above depth %llu, at most %u", i,
                    (unsigned long long)w->scratch[i], (unsigned long long)deepest, LIMIT_STACK_DEPTH - 1);
            }
            c->node_depth[i] = (uint8_t)(deepest - w->scratch[i]);
            deepest = deepest - w->scratch[i] + 1;
        }
    }
    if (!counts_column_get(&r->at, r->end, c->node_ticks, c->node_count)) {
        return counts_decode_short("the ticks of stacks", e);
    }
    TRY(counts_places_get(r, builds, "a frame", c->node_count, w->scratch, &w->places, e));
    if (!counts_column_get(&r->at, r->end, w->scratch, c->node_count)) {
        return counts_decode_short("the frames of stacks", e);
    }
    bool large = false;
    for (uint32_t i = 0; i < c->node_count; i++) {
        c->node_kind[i] = w->scratch[i] & 1;
        w->scratch[i] /= 2;
        large |= c->node_ticks[i] > (uint64_t)INT64_MAX;
    }
    if (!take_places(&w->places, w->scratch, c->node_count, c->node_build, c->node_address)) {
        return profd_error_set(e, PROFD_MALFORMED, "the frame of a node is none of %u places", w->places.count);
    }
    if (c->sorted && large) {
        return profd_error_set(e, PROFD_MALFORMED, "a node of a sum has more than 2^63-1 ticks");
    }
    struct counts_nodes nodes = COUNTS_NODES(c);
    return counts_judge_trees(c->trees, c->tree_count, &nodes, c->node_count, builds, e);
}

static const struct {
    enum profd_status (*decode)(struct counts_reader *r, uint32_t builds, struct work *w, struct counts *c,
                                struct profd_error *e);
    const char *what;
} sections[COUNTS_SECTIONS] = {
    {decode_arcs, "arcs"},
    {decode_histograms, "histograms"},
    {decode_stacks, "stacks"},
};

/* at: where the first section begins. */
static enum profd_status decode_all(const uint8_t *at, const struct head *h, uint32_t builds, unsigned parts,
                                    struct work *w, struct counts *c, struct profd_error *e)
{
    TRY(work_init(w, h, parts, e));
    for (unsigned i = 0; i < h->sections; at += h->packed[i++]) {
        if ((parts >> i & 1) == 0) {
            continue;
        }
        TRY(deflate_unpack(at, (size_t)h->packed[i], w->raw, (size_t)h->raw[i], e));
        struct counts_reader r = {w->raw, w->raw + h->raw[i]};
        TRY(sections[i].decode(&r, builds, w, c, e));
        if (r.at != r.end) {
            return profd_error_set(e, PROFD_MALFORMED, "%zu bytes follow the %s", (size_t)(r.end - r.at),
                                   sections[i].what);
        }
    }
    return PROFD_OK;
}

enum profd_status counts_decode_parts(const uint8_t *in, size_t n, uint32_t builds, unsigned parts,
                                      const struct counts_memory *memory, struct counts *c, struct profd_error *e)
{
    struct counts_reader r = {in, n == 0 ? in : in + n};
    struct head h = {0};
    struct counts result = {0};
    struct work w = {0};
    TRY(decode_head(&r, &h, e));
    struct counts_sizes wanted = {.sorted = h.sizes.sorted};
    if (parts & COUNTS_ARCS) {
        wanted.arcs = h.sizes.arcs;
    }
    if (parts & COUNTS_HISTOGRAMS) {
        wanted.histograms = h.sizes.histograms;
        wanted.bins = h.sizes.bins;
    }
    if (parts & COUNTS_STACKS) {
        wanted.trees = h.sizes.trees;
        wanted.nodes = h.sizes.nodes;
    }
    TRY(counts_take_block(&result, &wanted, memory, e));
    result.saturated = h.saturated;
    enum profd_status status = decode_all(r.at, &h, builds, parts, &w, &result, e);
    free(w.block);
    if (status) {
        counts_done(&result);
        return status;
    }
    *c = result;
    return PROFD_OK;
}

enum profd_status counts_decode(const uint8_t *in, size_t n, uint32_t builds, struct counts *c, struct profd_error *e)
{
    return counts_decode_parts(in, n, builds, COUNTS_ALL, NULL, c, e);
}
