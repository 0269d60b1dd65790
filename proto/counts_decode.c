#include "proto/counts.h"

#include <stdlib.h>
#include <string.h>

#include "proto/counts_internal.h"
#include "proto/counts_tree.h"
#include "proto/deflate.h"
#include "proto/varint.h"

struct reader {
    const uint8_t *at, *end;
};

static enum profd_status decode_short(const char *what, struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "counts end inside %s, or a number there needs more than 64 bits", what);
}

/* One varint of at least eight readable bytes; most take one or two. */
static inline const uint8_t *decode_one(const uint8_t *p, const uint8_t *end, uint64_t *value)
{
    uint64_t first = p[0], second = p[1];
    if (first < 0x80) {
        *value = first;
        return p + 1;
    }
    if (second < 0x80) {
        *value = (first & 0x7f) | second << 7;
        return p + 2;
    }
    return varint_get(&p, end, value) ? p : NULL;
}

/* A column of n varints. Eight one-byte numbers, the usual case, are taken at once. */
static bool decode_column(struct reader *r, uint64_t *out, uint32_t n)
{
    const uint8_t *p = r->at;
    uint32_t i = 0;
    while (i < n && r->end - p >= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        if ((word & 0x8080808080808080u) == 0 && n - i >= 8) {
            for (unsigned k = 0; k < 8; k++) {
                out[i + k] = p[k];
            }
            i += 8;
            p += 8;
            continue;
        }
        p = decode_one(p, r->end, &out[i++]);
        if (p == NULL) {
            return false;
        }
    }
    for (; i < n; i++) {
        if (!varint_get(&p, r->end, &out[i])) {
            return false;
        }
    }
    r->at = p;
    return true;
}

static enum profd_status decode_histogram(struct reader *r, uint32_t at, uint64_t low, struct counts_histogram *h,
                                          struct profd_error *e)
{
    uint64_t used;
    bool wide;
    if (!counts_decode_geometry(&r->at, r->end, &h->geometry, &wide) || !varint_get(&r->at, r->end, &used)) {
        return decode_short("a histogram", e);
    }
    if (wide || used > UINT32_MAX) {
        return profd_error_set(e, PROFD_TOO_LARGE, "histogram %u: a number needs more than 32 bits", at);
    }
    h->low = low + varint_unzigzag(h->low);
    h->high += h->low;
    h->used = (uint32_t)used;
    return counts_judge_histogram(h, at, e);
}

static enum profd_status decode_histograms(struct reader *r, uint32_t builds, struct counts *c, struct profd_error *e)
{
    uint64_t low = 0, first = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        struct counts_histogram *h = &c->histograms[i];
        enum profd_status status = decode_histogram(r, i, low, h, e);
        if (status != PROFD_OK) {
            return status;
        }
        if (h->build >= builds) {
            return profd_error_set(e, PROFD_MALFORMED, "histogram %u of build %u: the upload has %u", i, h->build,
                                   builds);
        }
        h->first = (uint32_t)first;
        low = h->low;
        first += h->used;
        if (first > c->bin_count) {
            break;
        }
    }
    if (first != c->bin_count) {
        return profd_error_set(e, PROFD_MALFORMED, "histograms have %llu non-zero bins where %u were stated",
                               (unsigned long long)first, c->bin_count);
    }
    return counts_check_collector(c, e);
}

/* gaps are in bin_ticks for the moment. */
static enum profd_status decode_indices(const struct counts_histogram *h, uint32_t at, struct counts *c,
                                        struct profd_error *e)
{
    uint64_t next = 0;
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        uint64_t gap = c->bin_ticks[i];
        if (gap >= h->bins - next) {
            return profd_error_set(e, PROFD_MALFORMED, "histogram %u: a bin lies beyond the last of %u", at, h->bins);
        }
        c->bin_index[i] = (uint32_t)(next + gap);
        next += gap + 1;
    }
    return PROFD_OK;
}

static enum profd_status decode_bins(struct reader *r, struct counts *c, struct profd_error *e)
{
    if (!decode_column(r, c->bin_ticks, c->bin_count)) {
        return decode_short("bins", e);
    }
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        enum profd_status status = decode_indices(&c->histograms[i], i, c, e);
        if (status != PROFD_OK) {
            return status;
        }
    }
    if (!decode_column(r, c->bin_ticks, c->bin_count)) {
        return decode_short("ticks", e);
    }
    bool zero = false;
    for (uint32_t i = 0; i < c->bin_count; i++) {
        zero |= c->bin_ticks[i] == 0;
    }
    return zero ? profd_error_set(e, PROFD_MALFORMED, "a bin with 0 ticks: only non-zero bins are sent") : PROFD_OK;
}

static enum profd_status decode_ends(struct reader *r, uint32_t builds, uint32_t *out, uint32_t n,
                                     struct profd_error *e)
{
    for (uint32_t i = 0; i < n;) {
        uint64_t length, build;
        if (!varint_get(&r->at, r->end, &length) || !varint_get(&r->at, r->end, &build)) {
            return decode_short("the builds of arcs", e);
        }
        if (length < 1 || length > n - i) {
            return profd_error_set(e, PROFD_MALFORMED, "a run of %llu arcs where %u are left",
                                   (unsigned long long)length, n - i);
        }
        if (build > builds) {
            return profd_error_set(e, PROFD_MALFORMED, "an arc of build %llu: the upload has %u",
                                   (unsigned long long)(build - 1), builds);
        }
        uint32_t value = build == 0 ? COUNTS_NOWHERE : (uint32_t)(build - 1);
        uint32_t last = i + (uint32_t)length;
        if (value == 0 || value == COUNTS_NOWHERE) { /* the program itself, as a rule: four equal bytes */
            memset(&out[i], (int)(value & 0xff), (size_t)length * sizeof out[0]);
            i = last;
        }
        for (; i < last; i++) {
            out[i] = value;
        }
    }
    return PROFD_OK;
}

static bool decode_addresses(struct reader *r, uint64_t *out, uint32_t n)
{
    if (!decode_column(r, out, n)) {
        return false;
    }
    uint64_t address = 0;
    for (uint32_t i = 0; i < n; i++) {
        address += varint_unzigzag(out[i]);
        out[i] = address;
    }
    return true;
}

/* 0 takes the next of the listed callees, n the n-th again. The list is kept in calls, which are read later. */
static enum profd_status decode_callees(struct reader *r, struct counts *c, struct profd_error *e)
{
    if (!decode_column(r, c->to, c->arc_count)) {
        return decode_short("the callees of arcs", e);
    }
    uint32_t listed = 0, next = 0;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        listed += c->to[i] == 0;
    }
    if (!decode_addresses(r, c->calls, listed)) {
        return decode_short("the list of callees", e);
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        uint64_t index = c->to[i];
        if (index > next) {
            return profd_error_set(e, PROFD_MALFORMED, "arc %u of callee %llu: %u were listed before", i,
                                   (unsigned long long)index, next);
        }
        next += index == 0;
        c->to[i] = c->calls[index == 0 ? next - 1 : index - 1];
    }
    return PROFD_OK;
}

static enum profd_status decode_arcs(struct reader *r, uint32_t builds, struct counts *c, struct profd_error *e)
{
    enum profd_status status = decode_ends(r, builds, c->from_build, c->arc_count, e);
    if (status == PROFD_OK) {
        status = decode_ends(r, builds, c->to_build, c->arc_count, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (!decode_addresses(r, c->from, c->arc_count)) {
        return decode_short("the callers of arcs", e);
    }
    status = decode_callees(r, c, e);
    if (status != PROFD_OK) {
        return status;
    }
    return decode_column(r, c->calls, c->arc_count) ? PROFD_OK : decode_short("the counts of arcs", e);
}

static enum profd_status decode_trees(struct reader *r, struct counts *c, struct profd_error *e)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < c->tree_count; i++) {
        struct counts_tree *t = &c->trees[i];
        uint64_t rate, used;
        if (!counts_decode_clock(&r->at, r->end, t, &rate, &used)) {
            return decode_short("the clocks of stacks", e);
        }
        if (rate > UINT32_MAX || used > c->node_count - first) {
            return profd_error_set(e, PROFD_MALFORMED, "stacks %u: rate %llu, %llu nodes of %u", i,
                                   (unsigned long long)rate, (unsigned long long)used, c->node_count);
        }
        t->first = (uint32_t)first;
        t->used = (uint32_t)used;
        first += used;
    }
    return PROFD_OK;
}

/* What was read is in node_ticks for the moment. */
static enum profd_status decode_depths(struct counts *c, const struct counts_tree *t, struct profd_error *e)
{
    uint64_t most = 0;
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        uint64_t up = c->node_ticks[i] >> 1;
        if (up > most || most - up >= LIMIT_STACK_DEPTH) {
            return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks: %llu levels above depth %llu, at most %u", i,
                                   (unsigned long long)up, (unsigned long long)most, LIMIT_STACK_DEPTH - 1);
        }
        c->node_depth[i] = (uint8_t)(most - up);
        c->node_kind[i] = c->node_ticks[i] & 1;
        most = most - up + 1;
    }
    return PROFD_OK;
}

static enum profd_status decode_nodes(struct reader *r, uint32_t builds, struct counts *c, struct profd_error *e)
{
    uint64_t previous[COUNTS_NODE_BUILDS] = {0};
    enum profd_status status = decode_trees(r, c, e);
    if (status == PROFD_OK && !decode_column(r, c->node_ticks, c->node_count)) {
        status = decode_short("the depths of stacks", e);
    }
    for (uint32_t i = 0; i < c->tree_count && status == PROFD_OK; i++) {
        status = decode_depths(c, &c->trees[i], e);
    }
    if (status == PROFD_OK) {
        status = decode_ends(r, builds, c->node_build, c->node_count, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (!decode_column(r, c->node_address, c->node_count)) {
        return decode_short("the addresses of stacks", e);
    }
    for (uint32_t i = 0; i < c->node_count; i++) {
        uint64_t *last = &previous[counts_node_slot(c->node_build[i])];
        c->node_address[i] = *last += varint_unzigzag(c->node_address[i]);
    }
    if (!decode_column(r, c->node_ticks, c->node_count)) {
        return decode_short("the ticks of stacks", e);
    }
    struct counts_nodes nodes = COUNTS_NODES(c);
    return counts_judge_trees(c->trees, c->tree_count, &nodes, c->node_count, builds, e);
}

static enum profd_status decode_columns(struct reader *r, uint32_t builds, struct counts *c, struct profd_error *e)
{
    enum profd_status status = decode_histograms(r, builds, c, e);
    if (status == PROFD_OK) {
        status = decode_bins(r, c, e);
    }
    if (status == PROFD_OK) {
        status = decode_arcs(r, builds, c, e);
    }
    if (status == PROFD_OK && c->tree_count > 0) {
        status = decode_nodes(r, builds, c, e);
    }
    if (status == PROFD_OK && r->at != r->end) {
        status = profd_error_set(e, PROFD_MALFORMED, "%zu bytes follow the counts", (size_t)(r->end - r->at));
    }
    return status;
}

/* The sizes of a format with stacks. */
static enum profd_status decode_stack_sizes(struct reader *r, uint64_t *trees, uint64_t *nodes, struct profd_error *e)
{
    if (!varint_get(&r->at, r->end, trees) || !varint_get(&r->at, r->end, nodes)) {
        return decode_short("their sizes", e);
    }
    if (*trees > LIMIT_STACK_TREES || *nodes > LIMIT_STACK_NODES) {
        return profd_error_set(e, PROFD_TOO_LARGE, "stacks of %llu clocks with %llu nodes, at most %u with %u",
                               (unsigned long long)*trees, (unsigned long long)*nodes, LIMIT_STACK_TREES,
                               LIMIT_STACK_NODES);
    }
    return *trees > 0 ? PROFD_OK
                      : profd_error_set(e, PROFD_MALFORMED, "counts in format %d have no stacks", COUNTS_FORMAT_STACKS);
}

static enum profd_status decode_sizes(struct reader *r, bool stacks, struct counts_sizes *sizes, struct profd_error *e)
{
    uint64_t histograms, bins, arcs, trees = 0, nodes = 0;
    if (!varint_get(&r->at, r->end, &histograms) || !varint_get(&r->at, r->end, &bins) ||
        !varint_get(&r->at, r->end, &arcs)) {
        return decode_short("their sizes", e);
    }
    enum profd_status status = counts_judge_sizes(histograms, bins, arcs, e);
    if (status == PROFD_OK && stacks) {
        status = decode_stack_sizes(r, &trees, &nodes, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    uint64_t least = histograms * COUNTS_HISTOGRAM_MIN + bins * COUNTS_BIN_MIN + arcs * COUNTS_ARC_MIN +
                     trees * COUNTS_TREE_MIN + nodes * COUNTS_NODE_MIN;
    if (least > (uint64_t)(r->end - r->at)) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "%llu histograms, %llu bins, %llu arcs and %llu nodes of stacks stated in %zu bytes",
                               (unsigned long long)histograms, (unsigned long long)bins, (unsigned long long)arcs,
                               (unsigned long long)nodes, (size_t)(r->end - r->at));
    }
    *sizes =
        (struct counts_sizes){(uint32_t)histograms, (uint32_t)bins, (uint32_t)arcs, (uint32_t)trees, (uint32_t)nodes};
    return PROFD_OK;
}

static enum profd_status decode_raw(struct reader r, bool stacks, uint32_t builds, struct counts *c,
                                    struct profd_error *e)
{
    struct counts_sizes sizes = {0};
    struct counts result = {0};
    enum profd_status status = decode_sizes(&r, stacks, &sizes, e);
    if (status == PROFD_OK) {
        status = counts_take_block(&result, &sizes, false, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    status = decode_columns(&r, builds, &result, e);
    if (status == PROFD_OK) {
        *c = result;
    } else {
        counts_done(&result);
    }
    return status;
}

/* The envelope: format byte and size of the columns. */
static enum profd_status decode_envelope(struct reader *r, size_t n, uint64_t *size, struct profd_error *e)
{
    if (n < 1 || (*r->at != COUNTS_FORMAT && *r->at != COUNTS_FORMAT_STACKS)) {
        return profd_error_set(e, PROFD_MALFORMED, "counts of %zu bytes in format %u: only %d and %d are known", n,
                               n < 1 ? 0u : *r->at, COUNTS_FORMAT, COUNTS_FORMAT_STACKS);
    }
    r->at++;
    if (!varint_get(&r->at, r->end, size)) {
        return decode_short("their size", e);
    }
    if (*size > LIMIT_COUNTS_RAW) {
        return profd_error_set(e, PROFD_TOO_LARGE, "counts of %llu bytes, at most %u", (unsigned long long)*size,
                               LIMIT_COUNTS_RAW);
    }
    size_t packed = (size_t)(r->end - r->at);
    if (*size > deflate_content_max(packed)) {
        return profd_error_set(e, PROFD_MALFORMED, "counts of %llu bytes stated in %zu", (unsigned long long)*size,
                               packed);
    }
    return PROFD_OK;
}

enum profd_status counts_decode(const uint8_t *in, size_t n, uint32_t builds, struct counts *c, struct profd_error *e)
{
    struct reader r = {in, n == 0 ? in : in + n};
    uint64_t size = 0;
    enum profd_status status = decode_envelope(&r, n, &size, e);
    if (status != PROFD_OK) {
        return status;
    }
    uint8_t *raw = malloc(size == 0 ? 1 : (size_t)size);
    if (raw == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for counts of %llu bytes", (unsigned long long)size);
    }
    status = deflate_unpack(r.at, (size_t)(r.end - r.at), raw, (size_t)size, e);
    if (status == PROFD_OK) {
        status = decode_raw((struct reader){raw, raw + size}, *in == COUNTS_FORMAT_STACKS, builds, c, e);
    }
    free(raw);
    return status;
}
