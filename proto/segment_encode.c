#include <stdlib.h>
#include <string.h>

#include "proto/counts_tree.h"
#include "proto/segment_internal.h"

#define NUMBER ((size_t)VARINT_MAX)

/* Bytes of content at most, strings included. */
static size_t content_bound(const struct segment *s)
{
    const struct segment_counts *c = &s->counts;
    size_t n = SEGMENT_EPOCH_SIZE + NUMBER * (16 + SEGMENT_GROUPS);
    for (size_t i = 0; i < s->build_count; i++) {
        n += 2 * NUMBER + strlen(s->builds[i].build_id) + strlen(s->builds[i].name);
    }
    for (size_t i = 0; i < s->label_count; i++) {
        n += 2 * NUMBER + strlen(s->labels[i].name) + strlen(s->labels[i].value);
    }
    n += c->histogram_count * (8 * NUMBER + sizeof c->histograms[0].dimension);
    n += c->tree_count * (4 * NUMBER + sizeof c->trees[0].dimension) + NUMBER * 5 * (size_t)c->node_count;
    return n + NUMBER * (2 * (size_t)c->bin_count + 6 * (size_t)c->arc_count + c->share_count);
}

static uint8_t *put_bytes(uint8_t *p, const void *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

static uint8_t *put_text(uint8_t *p, const char *text)
{
    size_t n = strlen(text);
    return put_bytes(varint_put(p, n), text, n);
}

static uint8_t *put_identity(uint8_t *p, const struct segment *s)
{
    p = varint_put(p, s->build_count);
    p = varint_put(p, s->program);
    for (size_t i = 0; i < s->build_count; i++) {
        p = put_text(p, s->builds[i].build_id);
        p = put_text(p, s->builds[i].name);
    }
    p = varint_put(p, s->label_count);
    for (size_t i = 0; i < s->label_count; i++) {
        p = put_text(p, s->labels[i].name);
        p = put_text(p, s->labels[i].value);
    }
    return p;
}

static uint8_t *put_sums(uint8_t *p, const struct segment *s)
{
    p = varint_put(p, s->uid);
    p = varint_put(p, (uint64_t)(s->last - s->hour * SEGMENT_HOUR));
    p = varint_put(p, (uint64_t)(s->last - s->first));
    p = varint_put(p, (uint64_t)(s->last - s->ended));
    p = varint_put(p, s->inexact);
    p = varint_put(p, s->saturated ? 1 : 0);
    p = varint_put(p, s->uploads);
    for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
        p = varint_put(p, s->processes[g]);
    }
    return p;
}

static uint8_t *put_histograms(uint8_t *p, const struct segment_counts *c)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        p = varint_put(p, h->build);
        p = varint_put(p, h->bins);
        p = varint_put(p, h->low);
        p = varint_put(p, h->high - h->low);
        p = varint_put(p, h->rate);
        p = put_text(p, h->dimension);
        *p++ = (uint8_t)h->abbreviation;
        p = varint_put(p, h->used);
        p = varint_put(p, c->histogram_rank[i]);
    }
    return p;
}

static uint8_t *put_bins(uint8_t *p, const struct segment_counts *c)
{
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        uint32_t next = 0;
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            p = varint_put(p, c->bin_index[k] - next);
            next = c->bin_index[k] + 1;
        }
    }
    return p;
}

/* Build indices, with the number of builds for COUNTS_NOWHERE. */
static uint8_t *put_builds(uint8_t *p, const uint32_t *builds, uint32_t n, size_t count)
{
    for (uint32_t i = 0; i < n; i++) {
        p = varint_put(p, builds[i] == COUNTS_NOWHERE ? count : builds[i]);
    }
    return p;
}

static uint8_t *put_addresses(uint8_t *p, const uint64_t *addresses, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        p = varint_put(p, varint_zigzag(addresses[i] - (i == 0 ? 0 : addresses[i - 1])));
    }
    return p;
}

static uint8_t *put_stacks(uint8_t *p, const struct segment *s)
{
    const struct segment_counts *c = &s->counts;
    p = counts_encode_clocks(c->trees, c->tree_count, p);
    for (uint32_t i = 0; i < c->node_count; i++) {
        p = varint_put(p, c->node_depth[i]);
    }
    for (uint32_t i = 0; i < c->node_count; i++) {
        p = varint_put(p, c->node_kind[i]);
    }
    p = put_builds(p, c->node_build, c->node_count, s->build_count);
    return put_addresses(p, c->node_address, c->node_count);
}

static uint8_t *put_counts(uint8_t *p, const struct segment *s)
{
    const struct segment_counts *c = &s->counts;
    p = varint_put(p, c->histogram_count);
    p = varint_put(p, c->bin_count);
    p = varint_put(p, c->arc_count);
    p = varint_put(p, c->share_count);
    p = varint_put(p, c->tree_count);
    p = varint_put(p, c->node_count);
    p = put_histograms(p, c);
    p = put_bins(p, c);
    p = put_builds(p, c->from_build, c->arc_count, s->build_count);
    p = put_addresses(p, c->from, c->arc_count);
    p = put_builds(p, c->to_build, c->arc_count, s->build_count);
    p = put_addresses(p, c->to, c->arc_count);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        p = varint_put(p, varint_zigzag((uint64_t)c->rank[i] - (i == 0 ? 0 : c->rank[i - 1])));
    }
    p = put_stacks(p, s);
    for (uint32_t i = 0; i < c->bin_count + c->arc_count + c->node_count; i++) {
        p = varint_put(p, c->groups[i]);
    }
    for (uint32_t i = 0; i < c->share_count; i++) {
        p = varint_put(p, c->shares[i]);
    }
    return p;
}

enum profd_status segment_encode(const struct segment *s, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    TRY(segment_check(s, e));
    uint8_t *content = malloc(s->kind == SEGMENT_COUNTS ? content_bound(s) : SEGMENT_EPOCH_SIZE + 3 * NUMBER);
    if (content == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode a segment of %u bins and %u arcs",
                               s->counts.bin_count, s->counts.arc_count);
    }
    uint8_t *p = varint_put(content, (uint64_t)s->kind);
    p = put_bytes(p, s->epoch, sizeof s->epoch);
    p = varint_put(p, s->sequence);
    p = varint_put(p, (uint64_t)s->hour);
    if (s->kind == SEGMENT_COUNTS) {
        p = put_sums(p, s);
        p = put_identity(p, s);
        p = put_counts(p, s);
    }
    enum profd_status status = segment_pack(content, (size_t)(p - content), out, out_size, e);
    free(content);
    return status;
}
