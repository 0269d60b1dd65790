#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "core/rollup_columns.h"
#include "core/rollup_ends.h"
#include "core/rollup_format.h"
#include "core/rollup_trees_format.h"
#include "core/sum.h"
#include "proto/counts.h"
#include "proto/limits.h"
#include "proto/varint.h"

struct arc_sizes {
    uint64_t arcs, from_runs, callees, to_runs;
};

static enum profd_status decode_arc_sizes(struct rollup_reader *r, struct arc_sizes *s, bool *saturated,
                                          struct profd_error *e)
{
    if (r->at == r->end || *r->at > ROLLUP_SATURATED) {
        return profd_error_set(e, PROFD_DAMAGED, "a sum with flags %u: only %u is known", r->at == r->end ? 0u : *r->at,
                               ROLLUP_SATURATED);
    }
    *saturated = *r->at++ == ROLLUP_SATURATED;
    if (!varint_get(&r->at, r->end, &s->arcs) || !varint_get(&r->at, r->end, &s->from_runs) ||
        !varint_get(&r->at, r->end, &s->callees) || !varint_get(&r->at, r->end, &s->to_runs)) {
        return rollup_decode_short("its sizes", e);
    }
    if (s->callees > s->arcs) {
        return profd_error_set(e, PROFD_DAMAGED, "%llu callees of %llu arcs", (unsigned long long)s->callees,
                               (unsigned long long)s->arcs);
    }
    return rollup_decode_judge_rows("arcs", s->arcs, r, e);
}

struct callees {
    uint32_t count;
    uint32_t *build;
    uint64_t *address;
};

static enum profd_status decode_callees(struct rollup_reader *r, const struct arc_sizes *sizes, uint32_t builds,
                                        uint64_t *firsts, struct callees *c, struct profd_error *e)
{
    enum profd_status status = rollup_ends_get_runs(r, sizes->to_runs, builds, "an arc", c->build, firsts, c->count, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (!rollup_column_get(&r->at, r->end, c->address, c->count)) {
        return rollup_decode_short("the list of callees", e);
    }
    if (!rollup_ends_add_gaps(c->build, firsts, c->address, c->count, true)) {
        return profd_error_set(e, PROFD_DAMAGED, "callees of a sum do not ascend");
    }
    return PROFD_OK;
}

/* Callees by position, which are in out->to for the moment; arcs must ascend. */
static enum profd_status decode_pairs(const struct callees *c, struct rollup *out, struct profd_error *e)
{
    bool beyond = false, disorder = false;
    for (uint32_t i = 0; i < out->arc_count; i++) {
        beyond |= out->to[i] >= c->count;
        disorder |= i > 0 && out->from[i] == out->from[i - 1] && out->from_build[i] == out->from_build[i - 1] &&
                    out->to[i] <= out->rank[i - 1];
        out->rank[i] = (uint32_t)out->to[i];
    }
    if (beyond || disorder) {
        return profd_error_set(e, PROFD_DAMAGED,
                               beyond ? "an arc's callee is not one of %u" : "arcs of a sum do not ascend", c->count);
    }
    for (uint32_t i = 0; i < out->arc_count; i++) {
        out->to_build[i] = c->build[out->rank[i]];
        out->to[i] = c->address[out->rank[i]];
    }
    return PROFD_OK;
}

/* calls has the ranks' differences for the moment, and is read last. */
static enum profd_status decode_orders(struct rollup_reader *r, struct rollup *out, struct profd_error *e)
{
    uint64_t lowest, rank = 0;
    if (!varint_get(&r->at, r->end, &lowest) || !rollup_column_get(&r->at, r->end, out->commit, out->arc_count) ||
        !rollup_column_get(&r->at, r->end, out->calls, out->arc_count)) {
        return rollup_decode_short("the order of arcs", e);
    }
    bool bad = false;
    for (uint32_t i = 0; i < out->arc_count; i++) {
        out->commit[i] += lowest;
        bad |= out->commit[i] < lowest;
        rank += varint_unzigzag(out->calls[i]);
        bad |= rank > UINT32_MAX;
        out->rank[i] = (uint32_t)rank;
    }
    if (!rollup_column_get(&r->at, r->end, out->calls, out->arc_count)) {
        return rollup_decode_short("the counts of arcs", e);
    }
    for (uint32_t i = 0; i < out->arc_count; i++) {
        bad |= out->calls[i] > SUM_MAX;
    }
    return bad ? profd_error_set(e, PROFD_DAMAGED, "a commit, rank or count of an arc is out of range") : PROFD_OK;
}

static enum profd_status decode_arc_columns(struct rollup_reader *r, const struct arc_sizes *sizes, uint32_t builds,
                                            struct arena *a, struct rollup *out, struct profd_error *e)
{
    struct callees c = {(uint32_t)sizes->callees, ARENA_ARRAY(a, sizes->callees, uint32_t),
                        ARENA_ARRAY(a, sizes->callees, uint64_t)};
    if (c.build == NULL || c.address == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u callees", c.count);
    }
    /* The runs' first addresses lie in columns that are filled later. */
    enum profd_status status =
        rollup_ends_get_runs(r, sizes->from_runs, builds, "an arc", out->from_build, out->calls, out->arc_count, e);
    if (status == PROFD_OK) {
        status = decode_callees(r, sizes, builds, out->commit, &c, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (!rollup_column_get(&r->at, r->end, out->from, out->arc_count) ||
        !rollup_column_get(&r->at, r->end, out->to, out->arc_count)) {
        return rollup_decode_short("the ends of arcs", e);
    }
    if (!rollup_ends_add_gaps(out->from_build, out->calls, out->from, out->arc_count, false)) {
        return profd_error_set(e, PROFD_DAMAGED, "callers of a sum do not ascend");
    }
    status = decode_pairs(&c, out, e);
    return status == PROFD_OK ? decode_orders(r, out, e) : status;
}

static enum profd_status decode_arcs(struct rollup_reader *r, uint32_t builds, struct arena *a, struct rollup *out,
                                     struct profd_error *e)
{
    struct arc_sizes sizes = {0};
    enum profd_status status = decode_arc_sizes(r, &sizes, &out->saturated, e);
    if (status != PROFD_OK) {
        return status;
    }
    out->arc_count = (uint32_t)sizes.arcs;
    out->from_build = ARENA_ARRAY(a, out->arc_count, uint32_t);
    out->to_build = ARENA_ARRAY(a, out->arc_count, uint32_t);
    out->rank = ARENA_ARRAY(a, out->arc_count, uint32_t);
    out->from = ARENA_ARRAY(a, out->arc_count, uint64_t);
    out->to = ARENA_ARRAY(a, out->arc_count, uint64_t);
    out->calls = ARENA_ARRAY(a, out->arc_count, uint64_t);
    out->commit = ARENA_ARRAY(a, out->arc_count, uint64_t);
    if (out->from_build == NULL || out->to_build == NULL || out->rank == NULL || out->from == NULL || out->to == NULL ||
        out->calls == NULL || out->commit == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u arcs", out->arc_count);
    }
    status = decode_arc_columns(r, &sizes, builds, a, out, e);
    if (status == PROFD_OK && r->at != r->end) {
        status = profd_error_set(e, PROFD_DAMAGED, "%zu bytes follow the arcs of a sum", (size_t)(r->end - r->at));
    }
    return status;
}

static enum profd_status decode_head(struct rollup_reader *r, uint32_t at, uint32_t builds, struct rollup_histogram *h,
                                     struct profd_error *e)
{
    uint64_t used, rank;
    bool wide;
    if (!counts_decode_geometry(&r->at, r->end, &h->geometry, &wide) || !varint_get(&r->at, r->end, &used) ||
        !varint_get(&r->at, r->end, &h->order.commit) || !varint_get(&r->at, r->end, &rank)) {
        return rollup_decode_short("a histogram", e);
    }
    if (wide || h->build >= builds || used > UINT32_MAX || rank > UINT32_MAX) {
        return profd_error_set(e, PROFD_DAMAGED,
                               "histogram %u: build %u is not one of %u, or a number needs more than 32 bits", at,
                               h->build, builds);
    }
    h->high += h->low;
    h->used = (uint32_t)used;
    h->order.rank = (uint32_t)rank;
    struct counts_histogram same = {.geometry = h->geometry, .used = h->used};
    return counts_judge_histogram(&same, at, e) == PROFD_OK ? PROFD_OK : profd_error_wrap(e, PROFD_DAMAGED, "a sum");
}

static enum profd_status decode_heads(struct rollup_reader *r, uint32_t builds, struct rollup *out,
                                      struct profd_error *e)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < out->histogram_count; i++) {
        struct rollup_histogram *h = &out->histograms[i];
        enum profd_status status = decode_head(r, i, builds, h, e);
        if (status != PROFD_OK) {
            return status;
        }
        if (i > 0 && counts_compare_geometry(&h[-1].geometry, &h->geometry) >= 0) {
            return profd_error_set(e, PROFD_DAMAGED, "histogram %u of a sum is out of order", i);
        }
        h->first = (uint32_t)first;
        first += h->used;
        if (first > out->bin_count) {
            break;
        }
    }
    if (first != out->bin_count) {
        return profd_error_set(e, PROFD_DAMAGED, "histograms of a sum have %llu non-zero bins where %u were stated",
                               (unsigned long long)first, out->bin_count);
    }
    return PROFD_OK;
}

/* gaps are in bin_ticks for the moment. */
static bool decode_indices(const struct rollup_histogram *h, struct rollup *out)
{
    uint64_t next = 0;
    for (uint32_t i = h->first; i < h->first + h->used; i++) {
        uint64_t gap = out->bin_ticks[i];
        if (gap >= h->bins - next) {
            return false;
        }
        out->bin_index[i] = (uint32_t)(next + gap);
        next += gap + 1;
    }
    return true;
}

static enum profd_status decode_bins(struct rollup_reader *r, struct rollup *out, struct profd_error *e)
{
    if (!rollup_column_get(&r->at, r->end, out->bin_ticks, out->bin_count)) {
        return rollup_decode_short("bins", e);
    }
    for (uint32_t i = 0; i < out->histogram_count; i++) {
        if (!decode_indices(&out->histograms[i], out)) {
            return profd_error_set(e, PROFD_DAMAGED, "histogram %u of a sum: a bin lies beyond the last of %u", i,
                                   out->histograms[i].bins);
        }
    }
    if (!rollup_column_get(&r->at, r->end, out->bin_ticks, out->bin_count)) {
        return rollup_decode_short("ticks", e);
    }
    bool bad = false;
    for (uint32_t i = 0; i < out->bin_count; i++) {
        bad |= out->bin_ticks[i] - 1 >= SUM_MAX;
    }
    if (bad) {
        return profd_error_set(e, PROFD_DAMAGED, "a bin of a sum with 0 ticks, or more than 2^63-1");
    }
    if (r->at != r->end) {
        return profd_error_set(e, PROFD_DAMAGED, "%zu bytes follow the histograms of a sum", (size_t)(r->end - r->at));
    }
    return PROFD_OK;
}

static enum profd_status decode_histograms(struct rollup_reader *r, uint32_t builds, struct arena *a,
                                           struct rollup *out, struct profd_error *e)
{
    uint64_t histograms, bins;
    if (!varint_get(&r->at, r->end, &histograms) || !varint_get(&r->at, r->end, &bins)) {
        return rollup_decode_short("its sizes", e);
    }
    enum profd_status status = rollup_decode_judge_rows("histograms", histograms, r, e);
    if (status == PROFD_OK) {
        status = rollup_decode_judge_rows("bins", bins, r, e);
    }
    if (status == PROFD_OK) {
        status = rollup_decode_judge_rows("bytes of histograms", histograms * ROLLUP_HEAD_MIN, r, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    out->histogram_count = (uint32_t)histograms;
    out->bin_count = (uint32_t)bins;
    out->histograms = ARENA_ARRAY(a, out->histogram_count, struct rollup_histogram);
    out->bin_index = ARENA_ARRAY(a, out->bin_count, uint32_t);
    out->bin_ticks = ARENA_ARRAY(a, out->bin_count, uint64_t);
    if (out->histograms == NULL || out->bin_index == NULL || out->bin_ticks == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u bins", out->bin_count);
    }
    status = decode_heads(r, builds, out, e);
    return status == PROFD_OK ? decode_bins(r, out, e) : status;
}

/* What precedes the sections. */
struct envelope {
    bool stacks;
    uint64_t arcs_raw, arcs_size, raw, size, stacks_raw;
};

static enum profd_status decode_envelope(struct rollup_reader *r, struct envelope *v, struct profd_error *e)
{
    if (r->at == r->end || (*r->at != ROLLUP_FORMAT && *r->at != ROLLUP_FORMAT_STACKS)) {
        return profd_error_set(e, PROFD_DAMAGED, "a sum of %zu bytes in format %u: only %d and %d are known",
                               (size_t)(r->end - r->at), r->at == r->end ? 0u : *r->at, ROLLUP_FORMAT,
                               ROLLUP_FORMAT_STACKS);
    }
    v->stacks = *r->at++ == ROLLUP_FORMAT_STACKS;
    if (!varint_get(&r->at, r->end, &v->arcs_raw) || !varint_get(&r->at, r->end, &v->arcs_size) ||
        !varint_get(&r->at, r->end, &v->raw) ||
        (v->stacks && (!varint_get(&r->at, r->end, &v->size) || !varint_get(&r->at, r->end, &v->stacks_raw)))) {
        return rollup_decode_short("its sizes", e);
    }
    const uint64_t left = (uint64_t)(r->end - r->at);
    if (v->arcs_size > left) {
        return profd_error_set(e, PROFD_DAMAGED, "%llu bytes of arcs in a sum that has %zu left",
                               (unsigned long long)v->arcs_size, (size_t)left);
    }
    if (!v->stacks) {
        v->size = left - v->arcs_size;
    }
    if (v->size > left - v->arcs_size) {
        return profd_error_set(e, PROFD_DAMAGED, "%llu bytes of histograms in a sum that has %zu left",
                               (unsigned long long)v->size, (size_t)(left - v->arcs_size));
    }
    return PROFD_OK;
}

typedef enum profd_status decode_section(struct rollup_reader *r, uint32_t builds, struct arena *a, struct rollup *out,
                                         struct profd_error *e);

/* Unpacks size bytes at *at, behind which it moves, and decodes them. */
static enum profd_status decode_packed(const uint8_t **at, size_t size, uint64_t raw_size, decode_section *decode,
                                       uint32_t builds, struct arena *a, struct rollup *out, struct profd_error *e)
{
    uint8_t *raw = NULL;
    enum profd_status status = rollup_unpack(*at, size, raw_size, &raw, e);
    if (status == PROFD_OK) {
        struct rollup_reader section = {raw, raw + raw_size};
        status = decode(&section, builds, a, out, e);
        free(raw);
    }
    *at += size;
    return status;
}

enum profd_status rollup_decode(struct arena *a, const uint8_t *in, size_t n, uint32_t builds, bool arcs_only,
                                struct rollup *out, struct profd_error *e)
{
    struct rollup_reader r = {in, n == 0 ? in : in + n};
    struct envelope v = {0};
    struct rollup result = {0};
    enum profd_status status = decode_envelope(&r, &v, e);
    if (status == PROFD_OK) {
        status = decode_packed(&r.at, (size_t)v.arcs_size, v.arcs_raw, decode_arcs, builds, a, &result, e);
    }
    if (status == PROFD_OK && !arcs_only) {
        status = decode_packed(&r.at, (size_t)v.size, v.raw, decode_histograms, builds, a, &result, e);
    }
    if (status == PROFD_OK && !arcs_only && v.stacks) {
        status = decode_packed(&r.at, (size_t)(r.end - r.at), v.stacks_raw, rollup_decode_trees, builds, a, &result, e);
    }
    if (status == PROFD_OK) {
        *out = result;
    }
    return status;
}
