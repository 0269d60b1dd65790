#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "core/rollup_columns.h"
#include "core/rollup_ends.h"
#include "core/rollup_format.h"
#include "core/rollup_trees_format.h"
#include "proto/limits.h"
#include "proto/varint.h"

static uint8_t *encode_orders(const struct rollup *r, uint64_t *scratch, uint8_t *p)
{
    uint64_t lowest = r->arc_count == 0 ? 0 : UINT64_MAX;
    for (uint32_t i = 0; i < r->arc_count; i++) {
        lowest = r->commit[i] < lowest ? r->commit[i] : lowest;
    }
    p = varint_put(p, lowest);
    for (uint32_t i = 0; i < r->arc_count; i++) {
        scratch[i] = r->commit[i] - lowest;
    }
    p = rollup_column_put(p, scratch, r->arc_count);
    for (uint32_t i = 0; i < r->arc_count; i++) {
        scratch[i] = varint_zigzag((uint64_t)r->rank[i] - (i == 0 ? 0 : r->rank[i - 1]));
    }
    return rollup_column_put(p, scratch, r->arc_count);
}

/* The columns of the arcs, callees' order included, which the arcs' own columns are put around. */
static uint8_t *encode_arcs(const struct rollup *r, const struct rollup_ends *c, uint64_t *scratch, uint8_t *p)
{
    uint32_t from_runs, to_runs;
    rollup_ends_put_runs(r->from_build, r->from, r->arc_count, NULL, &from_runs);
    rollup_ends_put_runs(c->build, c->address, c->count, NULL, &to_runs);
    *p++ = r->saturated ? ROLLUP_SATURATED : 0;
    p = varint_put(p, r->arc_count);
    p = varint_put(p, from_runs);
    p = varint_put(p, c->count);
    p = varint_put(p, to_runs);
    p = rollup_ends_put_runs(r->from_build, r->from, r->arc_count, p, &from_runs);
    p = rollup_ends_put_runs(c->build, c->address, c->count, p, &to_runs);
    p = rollup_ends_put_gaps(c->build, c->address, c->count, scratch, p);
    p = rollup_ends_put_gaps(r->from_build, r->from, r->arc_count, scratch, p);
    p = rollup_column_put(p, c->of, r->arc_count);
    p = encode_orders(r, scratch, p);
    return rollup_column_put(p, r->calls, r->arc_count);
}

static enum profd_status encode_arc_section(const struct rollup *r, uint8_t **out, size_t *raw_size, size_t *size,
                                            struct profd_error *e)
{
    struct arena *a = arena_new(0);
    struct rollup_ends callees;
    size_t capacity = 64 + 6 * rollup_column_bound(r->arc_count) + 2 * ROLLUP_RUN_MAX * (size_t)LIMIT_BUILDS;
    uint8_t *raw = malloc(capacity);
    uint64_t *scratch = a != NULL ? ARENA_ARRAY(a, r->arc_count, uint64_t) : NULL;
    enum profd_status status = PROFD_OK;
    if (raw == NULL || scratch == NULL || !rollup_ends_find(r->to_build, r->to, r->arc_count, a, &callees)) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode a sum of %u arcs", r->arc_count);
    } else {
        *raw_size = (size_t)(encode_arcs(r, &callees, scratch, raw) - raw);
        status = rollup_pack(raw, *raw_size, 0, out, size, e);
    }
    free(raw);
    arena_free(a);
    return status;
}

static uint8_t *encode_head(const struct rollup_histogram *h, uint8_t *p)
{
    p = counts_encode_geometry(&h->geometry, h->low, p);
    p = varint_put(p, h->used);
    p = varint_put(p, h->order.commit);
    return varint_put(p, h->order.rank);
}

static uint8_t *encode_histograms(const struct rollup *r, uint64_t *scratch, uint8_t *p)
{
    p = varint_put(p, r->histogram_count);
    p = varint_put(p, r->bin_count);
    for (uint32_t i = 0; i < r->histogram_count; i++) {
        const struct rollup_histogram *h = &r->histograms[i];
        uint32_t next = 0;
        p = encode_head(h, p);
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            scratch[k] = r->bin_index[k] - next;
            next = r->bin_index[k] + 1;
        }
    }
    p = rollup_column_put(p, scratch, r->bin_count);
    return rollup_column_put(p, r->bin_ticks, r->bin_count);
}

static enum profd_status encode_histogram_section(const struct rollup *r, uint8_t **out, size_t *raw_size, size_t *size,
                                                  struct profd_error *e)
{
    size_t capacity =
        2 * VARINT_MAX + ROLLUP_HEAD_MAX * (size_t)r->histogram_count + 2 * rollup_column_bound(r->bin_count);
    uint8_t *raw = malloc(capacity);
    uint64_t *scratch = calloc((size_t)r->bin_count + 1, sizeof *scratch);
    enum profd_status status = PROFD_OK;
    if (raw == NULL || scratch == NULL) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode a sum of %u bins", r->bin_count);
    } else {
        *raw_size = (size_t)(encode_histograms(r, scratch, raw) - raw);
        status = rollup_pack(raw, *raw_size, 0, out, size, e);
    }
    free(raw);
    free(scratch);
    return status;
}

/* A section on its way into an encoding. */
struct section {
    uint8_t *bytes;
    size_t raw, size;
};

/* All in one new block, behind the head. */
static enum profd_status join_sections(const uint8_t *head, size_t used, const struct section *sections, size_t n,
                                       uint8_t **out, size_t *out_size, struct profd_error *e)
{
    size_t size = used;
    for (size_t i = 0; i < n; i++) {
        size += sections[i].size;
    }
    uint8_t *block = malloc(size), *p = block;
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an encoded sum of %zu bytes", size);
    }
    memcpy(p, head, used);
    p += used;
    for (size_t i = 0; i < n; i++) {
        memcpy(p, sections[i].bytes, sections[i].size);
        p += sections[i].size;
    }
    *out = block;
    *out_size = size;
    return PROFD_OK;
}

enum profd_status rollup_encode(const struct rollup *r, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    const bool stacks = r->tree_count > 0;
    uint8_t head[1 + 5 * VARINT_MAX], *p = head;
    struct section s[3] = {{0}};
    enum profd_status status = encode_arc_section(r, &s[0].bytes, &s[0].raw, &s[0].size, e);
    if (status == PROFD_OK) {
        status = encode_histogram_section(r, &s[1].bytes, &s[1].raw, &s[1].size, e);
    }
    if (status == PROFD_OK && stacks) {
        status = rollup_encode_trees(r, &s[2].bytes, &s[2].raw, &s[2].size, e);
    }
    if (status == PROFD_OK) {
        *p++ = stacks ? ROLLUP_FORMAT_STACKS : ROLLUP_FORMAT;
        p = varint_put(p, s[0].raw);
        p = varint_put(p, s[0].size);
        p = varint_put(p, s[1].raw);
        if (stacks) {
            p = varint_put(p, s[1].size);
            p = varint_put(p, s[2].raw);
        }
        status = join_sections(head, (size_t)(p - head), s, stacks ? 3 : 2, out, out_size, e);
    }
    for (size_t i = 0; i < 3; i++) {
        free(s[i].bytes);
    }
    return status;
}
