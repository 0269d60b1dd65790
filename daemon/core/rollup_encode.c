#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "core/rollup_columns.h"
#include "core/rollup_format.h"
#include "core/sort.h"
#include "proto/deflate.h"
#include "proto/limits.h"
#include "proto/varint.h"

enum profd_status rollup_pack(const uint8_t *raw, size_t n, size_t skip, uint8_t **out, size_t *size,
                              struct profd_error *e)
{
    if (n > LIMIT_COUNTS_RAW) {
        return profd_error_set(e, PROFD_TOO_LARGE, "a sum of %zu bytes, at most %u", n, LIMIT_COUNTS_RAW);
    }
    size_t capacity = deflate_bound(n), packed = 0;
    uint8_t *block = malloc(skip + capacity);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to compress %zu bytes of a sum", n);
    }
    enum profd_status status = deflate_pack_checked(raw, n, block + skip, capacity, &packed, e);
    if (status != PROFD_OK) {
        free(block);
        return status;
    }
    *out = block;
    *size = packed;
    return PROFD_OK;
}

static uint64_t encode_end(uint32_t build)
{
    return build == COUNTS_NOWHERE ? 0 : (uint64_t)build + 1;
}

/* Runs of equal builds: how many, if p is NULL; else they are written. */
static uint8_t *encode_runs(const uint32_t *builds, const uint64_t *addresses, uint32_t n, uint8_t *p, uint32_t *runs)
{
    *runs = 0;
    for (uint32_t i = 0; i < n; ++*runs) {
        uint32_t start = i;
        while (i < n && builds[i] == builds[start]) {
            i++;
        }
        if (p == NULL) {
            continue;
        }
        p = varint_put(p, i - start);
        p = varint_put(p, encode_end(builds[start]));
        p = varint_put(p, addresses[start]);
    }
    return p;
}

/* Addresses ascend within a run of equal builds. */
static uint8_t *encode_gaps(const uint32_t *builds, const uint64_t *addresses, uint32_t n, uint64_t *scratch,
                            uint8_t *p)
{
    for (uint32_t i = 0; i < n; i++) {
        scratch[i] = i == 0 || builds[i] != builds[i - 1] ? 0 : addresses[i] - addresses[i - 1];
    }
    return rollup_column_put(p, scratch, n);
}

/* The distinct callees, ascending, and which of them each arc has. */
struct callees {
    uint32_t count;
    uint32_t *build;
    uint64_t *address, *of_arc;
};

static bool callees_find(const struct rollup *r, struct arena *a, struct callees *out)
{
    uint32_t n = r->arc_count, count = 0;
    struct sort_item *items = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    *out = (struct callees){0, ARENA_ARRAY(a, n, uint32_t), ARENA_ARRAY(a, n, uint64_t), ARENA_ARRAY(a, n, uint64_t)};
    if (items == NULL || out->build == NULL || out->address == NULL || out->of_arc == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct sort_item){r->to[i], i};
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i].key = r->to_build[items[i].value];
    }
    sort_radix(items, items + n, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t arc = items[i].value;
        if (count == 0 || r->to[arc] != out->address[count - 1] || r->to_build[arc] != out->build[count - 1]) {
            out->address[count] = r->to[arc];
            out->build[count++] = r->to_build[arc];
        }
        out->of_arc[arc] = count - 1;
    }
    out->count = count;
    return true;
}

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
static uint8_t *encode_arcs(const struct rollup *r, const struct callees *c, uint64_t *scratch, uint8_t *p)
{
    uint32_t from_runs, to_runs;
    encode_runs(r->from_build, r->from, r->arc_count, NULL, &from_runs);
    encode_runs(c->build, c->address, c->count, NULL, &to_runs);
    *p++ = r->saturated ? ROLLUP_SATURATED : 0;
    p = varint_put(p, r->arc_count);
    p = varint_put(p, from_runs);
    p = varint_put(p, c->count);
    p = varint_put(p, to_runs);
    p = encode_runs(r->from_build, r->from, r->arc_count, p, &from_runs);
    p = encode_runs(c->build, c->address, c->count, p, &to_runs);
    p = encode_gaps(c->build, c->address, c->count, scratch, p);
    p = encode_gaps(r->from_build, r->from, r->arc_count, scratch, p);
    p = rollup_column_put(p, c->of_arc, r->arc_count);
    p = encode_orders(r, scratch, p);
    return rollup_column_put(p, r->calls, r->arc_count);
}

static enum profd_status encode_arc_section(const struct rollup *r, size_t skip, uint8_t **out, size_t *raw_size,
                                            size_t *size, struct profd_error *e)
{
    struct arena *a = arena_new(0);
    struct callees callees;
    size_t capacity = 64 + 6 * rollup_column_bound(r->arc_count) + 2 * ROLLUP_RUN_MAX * (size_t)LIMIT_BUILDS;
    uint8_t *raw = malloc(capacity);
    uint64_t *scratch = a != NULL ? ARENA_ARRAY(a, r->arc_count, uint64_t) : NULL;
    enum profd_status status = PROFD_OK;
    if (raw == NULL || scratch == NULL || !callees_find(r, a, &callees)) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode a sum of %u arcs", r->arc_count);
    } else {
        *raw_size = (size_t)(encode_arcs(r, &callees, scratch, raw) - raw);
        status = rollup_pack(raw, *raw_size, skip, out, size, e);
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

enum profd_status rollup_encode(const struct rollup *r, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    uint8_t head[1 + 3 * VARINT_MAX], *p = head, *arcs = NULL, *histograms = NULL;
    size_t arcs_raw = 0, arcs_size = 0, raw = 0, size = 0;
    enum profd_status status = encode_arc_section(r, sizeof head, &arcs, &arcs_raw, &arcs_size, e);
    if (status == PROFD_OK) {
        status = encode_histogram_section(r, &histograms, &raw, &size, e);
    }
    if (status != PROFD_OK) {
        free(arcs);
        return status;
    }
    *p++ = ROLLUP_FORMAT;
    p = varint_put(p, arcs_raw);
    p = varint_put(p, arcs_size);
    p = varint_put(p, raw);
    size_t used = (size_t)(p - head);
    uint8_t *whole = realloc(arcs, sizeof head + arcs_size + size);
    if (whole == NULL) {
        free(arcs);
        free(histograms);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an encoded sum of %zu bytes", arcs_size + size);
    }
    memmove(whole + used, whole + sizeof head, arcs_size);
    memcpy(whole, head, used);
    memcpy(whole + used + arcs_size, histograms, size);
    free(histograms);
    *out = whole;
    *out_size = used + arcs_size + size;
    return PROFD_OK;
}
