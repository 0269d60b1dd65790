#include "proto/counts.h"

#include <stdlib.h>
#include <string.h>

#include "proto/counts_internal.h"
#include "proto/counts_tree.h"
#include "proto/deflate.h"
#include "proto/varint.h"

/* A build index with COUNTS_NOWHERE as 0. */
static uint64_t encode_end(uint32_t build)
{
    return build == COUNTS_NOWHERE ? 0 : (uint64_t)build + 1;
}

static enum profd_status encode_judge_bins(const struct counts *c, const struct counts_histogram *h, uint32_t at,
                                           struct profd_error *e)
{
    if (h->first > c->bin_count || h->used > c->bin_count - h->first) {
        return profd_error_set(e, PROFD_REFUSED, "histogram %u: bins %u to %u of %u", at, h->first, h->first + h->used,
                               c->bin_count);
    }
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        if (c->bin_index[i] >= h->bins || (i > h->first && c->bin_index[i] <= c->bin_index[i - 1])) {
            return profd_error_set(e, PROFD_REFUSED, "histogram %u: bin %u is out of order or not below %u", at,
                                   c->bin_index[i], h->bins);
        }
        if (c->bin_ticks[i] == 0) {
            return profd_error_set(e, PROFD_REFUSED, "histogram %u: bin %u is zero", at, c->bin_index[i]);
        }
    }
    return PROFD_OK;
}

/* The rules that the decoder checks, so that whatever is encoded can be decoded. *bins: those that histograms use. */
static enum profd_status encode_judge(const struct counts *c, uint64_t *bins, struct profd_error *e)
{
    enum profd_status status = counts_judge_sizes(c->histogram_count, c->bin_count, c->arc_count, e);
    uint64_t used = 0;
    for (uint32_t i = 0; i < c->histogram_count && status == PROFD_OK; i++) {
        status = counts_judge_histogram(&c->histograms[i], i, e);
        if (status == PROFD_OK) {
            status = encode_judge_bins(c, &c->histograms[i], i, e);
        }
        used += c->histograms[i].used;
    }
    if (status == PROFD_OK) {
        status = counts_judge_sizes(c->histogram_count, used, c->arc_count, e);
    }
    if (status == PROFD_OK) {
        status = counts_check_collector(c, e);
    }
    if (status == PROFD_OK) {
        struct counts_nodes nodes = COUNTS_NODES(c);
        status = counts_judge_trees(c->trees, c->tree_count, &nodes, c->node_count, COUNTS_NOWHERE, e);
    }
    if (status == PROFD_OK) {
        *bins = used;
    }
    return status;
}

static uint8_t *encode_histograms(const struct counts *c, uint8_t *p)
{
    uint64_t low = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        p = counts_encode_geometry(&h->geometry, varint_zigzag(h->low - low), p);
        p = varint_put(p, h->used);
        low = h->low;
    }
    return p;
}

static uint8_t *encode_gaps(const struct counts *c, uint8_t *p)
{
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        uint32_t next = 0;
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            p = varint_put(p, c->bin_index[i] - next);
            next = c->bin_index[i] + 1;
        }
    }
    return p;
}

static uint8_t *encode_ticks(const struct counts *c, uint8_t *p)
{
    for (uint32_t k = 0; k < c->histogram_count; k++) {
        const struct counts_histogram *h = &c->histograms[k];
        for (uint32_t i = h->first; i < h->first + h->used; i++) {
            p = varint_put(p, c->bin_ticks[i]);
        }
    }
    return p;
}

/* Runs of equal builds: (length, build), lengths adding up to n. */
static uint8_t *encode_ends(const uint32_t *builds, uint32_t n, uint8_t *p)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t start = i;
        while (i < n && builds[i] == builds[start]) {
            i++;
        }
        p = varint_put(p, i - start);
        p = varint_put(p, encode_end(builds[start]));
    }
    return p;
}

static uint8_t *encode_addresses(const uint64_t *addresses, uint32_t n, uint8_t *p)
{
    uint64_t previous = 0;
    for (uint32_t i = 0; i < n; i++) {
        p = varint_put(p, varint_zigzag(addresses[i] - previous));
        previous = addresses[i];
    }
    return p;
}

/* Callees by order of first appearance: most arcs then need one byte. A slot holds index + 1. */
struct callees {
    uint64_t *addresses;
    uint32_t *slots;
    uint32_t count, mask;
};
#define CALLEES_PROBES                                                                                                 \
    16 /* the search for a callee is bounded; a callee that is not found is listed again, so no input is slow */

static enum profd_status callees_init(struct callees *d, uint32_t arcs, struct profd_error *e)
{
    uint32_t slots = 16;
    while (slots < 2 * (uint64_t)arcs) {
        slots *= 2;
    }
    uint64_t *block = calloc((size_t)arcs + slots / 2, sizeof *block);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode %u arcs", arcs);
    }
    *d = (struct callees){.addresses = block, .slots = (uint32_t *)(block + arcs), .mask = slots - 1};
    return PROFD_OK;
}

/* Index + 1 of an address that was there before; else it is added and the answer is 0. */
static uint32_t callees_index(struct callees *d, uint64_t address)
{
    uint32_t at = (uint32_t)(address * 0x9e3779b97f4a7c15u >> 32);
    for (unsigned probe = 0; probe < CALLEES_PROBES; probe++, at++) {
        uint32_t *slot = &d->slots[at & d->mask];
        if (*slot == 0) {
            *slot = d->count + 1;
            break;
        }
        if (d->addresses[*slot - 1] == address) {
            return *slot;
        }
    }
    d->addresses[d->count++] = address;
    return 0;
}

static uint8_t *encode_arcs(const struct counts *c, struct callees *d, uint8_t *p)
{
    p = encode_ends(c->from_build, c->arc_count, p);
    p = encode_ends(c->to_build, c->arc_count, p);
    p = encode_addresses(c->from, c->arc_count, p);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        p = varint_put(p, callees_index(d, c->to[i]));
    }
    p = encode_addresses(d->addresses, d->count, p);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        p = varint_put(p, c->calls[i]);
    }
    return p;
}

/* How many levels above the deepest possible a node is, and its kind. */
static uint8_t *encode_depths(const struct counts *c, uint8_t *p)
{
    for (uint32_t k = 0; k < c->tree_count; k++) {
        unsigned most = 0;
        for (uint32_t i = c->trees[k].first; i < c->trees[k].first + c->trees[k].used; i++) {
            p = varint_put(p, (most - c->node_depth[i]) << 1 | c->node_kind[i]);
            most = c->node_depth[i] + 1u;
        }
    }
    return p;
}

static uint8_t *encode_nodes(const struct counts *c, uint8_t *p)
{
    uint64_t previous[COUNTS_NODE_BUILDS] = {0};
    p = counts_encode_clocks(c->trees, c->tree_count, p);
    p = encode_depths(c, p);
    p = encode_ends(c->node_build, c->node_count, p);
    for (uint32_t i = 0; i < c->node_count; i++) {
        uint64_t *last = &previous[counts_node_slot(c->node_build[i])];
        p = varint_put(p, varint_zigzag(c->node_address[i] - *last));
        *last = c->node_address[i];
    }
    for (uint32_t i = 0; i < c->node_count; i++) {
        p = varint_put(p, c->node_ticks[i]);
    }
    return p;
}

static uint8_t *encode_columns(const struct counts *c, uint64_t bins, struct callees *d, uint8_t *p)
{
    p = varint_put(p, c->histogram_count);
    p = varint_put(p, bins);
    p = varint_put(p, c->arc_count);
    if (c->tree_count > 0) {
        p = varint_put(p, c->tree_count);
        p = varint_put(p, c->node_count);
    }
    p = encode_histograms(c, p);
    p = encode_gaps(c, p);
    p = encode_ticks(c, p);
    p = encode_arcs(c, d, p);
    return c->tree_count > 0 ? encode_nodes(c, p) : p;
}

/* Format byte, size of the columns, columns compressed. */
static enum profd_status encode_pack(uint8_t format, const uint8_t *raw, size_t n, uint8_t **out, size_t *out_size,
                                     struct profd_error *e)
{
    size_t capacity = deflate_bound(n), size = 0;
    if (n > LIMIT_COUNTS_RAW) {
        return profd_error_set(e, PROFD_TOO_LARGE, "counts of %zu bytes, at most %u", n, LIMIT_COUNTS_RAW);
    }
    uint8_t *block = malloc(1 + VARINT_MAX + capacity);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to compress %zu bytes of counts", n);
    }
    block[0] = format;
    uint8_t *p = varint_put(block + 1, n);
    enum profd_status status = deflate_pack(raw, n, false, p, capacity, &size, e);
    if (status != PROFD_OK) {
        free(block);
        return status;
    }
    size += (size_t)(p - block);
    uint8_t *fitted = realloc(block, size);
    *out = fitted != NULL ? fitted : block;
    *out_size = size;
    return PROFD_OK;
}

enum profd_status counts_encode(const struct counts *c, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    uint64_t bins;
    struct callees callees = {0};
    enum profd_status status = encode_judge(c, &bins, e);
    if (status == PROFD_OK) {
        status = callees_init(&callees, c->arc_count, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    size_t capacity = 5 * VARINT_MAX + (size_t)c->histogram_count * COUNTS_HISTOGRAM_MAX +
                      (size_t)bins * COUNTS_BIN_MAX + (size_t)c->arc_count * COUNTS_ARC_MAX +
                      (size_t)c->tree_count * COUNTS_TREE_MAX + (size_t)c->node_count * COUNTS_NODE_MAX;
    uint8_t *raw = malloc(capacity);
    if (raw == NULL) {
        status =
            profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode %u bins and %u arcs", c->bin_count, c->arc_count);
    } else {
        uint8_t *end = encode_columns(c, bins, &callees, raw);
        status = encode_pack(c->tree_count > 0 ? COUNTS_FORMAT_STACKS : COUNTS_FORMAT, raw, (size_t)(end - raw), out,
                             out_size, e);
    }
    free(raw);
    free(callees.addresses);
    return status;
}
