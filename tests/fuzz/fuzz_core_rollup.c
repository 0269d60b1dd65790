/* Input: the arcs' section and the histograms' of a sum, divided by the first two bytes, which are compressed here, or
 * (third byte odd) the bytes as they are stored; the spread likewise behind them. Third byte 2 modulo 4: a fourth byte
 * is the size of the stacks' section, which is before the spread. Law: what decodes encodes again and
 * decodes to the same; its sum with itself doubles every number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "core/rollup_format.h"
#include "core/sum.h"
#include "proto/varint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BUILDS 3

struct bytes {
    uint8_t *at;
    size_t size;
};

static struct bytes pack(const uint8_t *data, size_t n)
{
    struct bytes b;
    if (rollup_pack(data, n, 0, &b.at, &b.size, NULL) != PROFD_OK) {
        abort();
    }
    return b;
}

/* Sections that are given plainly; without stacks none of that is there. */
struct plain {
    const uint8_t *arcs, *bins, *stacks;
    size_t arcs_size, bins_size, stacks_size;
};

static void append(struct bytes *to, const struct bytes *from)
{
    memcpy(to->at + to->size, from->at, from->size);
    to->size += from->size;
    free(from->at);
}

/* Their stored form. */
static struct bytes make_counts(const struct plain *x)
{
    struct bytes a = pack(x->arcs, x->arcs_size), b = pack(x->bins, x->bins_size), c = {NULL, 0}, out;
    if (x->stacks != NULL) {
        c = pack(x->stacks, x->stacks_size);
    }
    out.at = malloc(1 + 5 * VARINT_MAX + a.size + b.size + c.size);
    out.at[0] = x->stacks != NULL ? ROLLUP_FORMAT_STACKS : ROLLUP_FORMAT;
    uint8_t *p = varint_put(varint_put(varint_put(out.at + 1, x->arcs_size), a.size), x->bins_size);
    p = x->stacks != NULL ? varint_put(varint_put(p, b.size), x->stacks_size) : p;
    out.size = (size_t)(p - out.at);
    append(&out, &a);
    append(&out, &b);
    if (x->stacks != NULL) {
        append(&out, &c);
    }
    return out;
}

static struct bytes make_spread(bool stacks, const uint8_t *data, size_t n)
{
    struct bytes a = pack(data, n), out;
    out.at = malloc(11 + a.size);
    out.at[0] = stacks ? ROLLUP_FORMAT_STACKS_SPREAD : ROLLUP_FORMAT_SPREAD;
    uint8_t *p = varint_put(out.at + 1, n);
    memcpy(p, a.at, a.size);
    out.size = (size_t)(p - out.at) + a.size;
    free(a.at);
    return out;
}

static void check_again(struct arena *a, const struct rollup *r)
{
    struct rollup back;
    struct bytes first, second;
    if (rollup_encode(r, &first.at, &first.size, NULL) != PROFD_OK ||
        rollup_decode(a, first.at, first.size, BUILDS, false, &back, NULL) != PROFD_OK ||
        rollup_encode(&back, &second.at, &second.size, NULL) != PROFD_OK || first.size != second.size ||
        memcmp(first.at, second.at, first.size) != 0) {
        abort();
    }
    free(first.at);
    free(second.at);
}

static uint64_t twice(uint64_t n)
{
    return n > SUM_MAX / 2 ? SUM_MAX : 2 * n;
}

static void check_double(struct arena *a, const struct rollup *r, const struct rollup_spread *spread)
{
    struct rollup sum;
    struct rollup_spread shares;
    struct rollup_sum *s = rollup_sum_new(a);
    if (s == NULL || rollup_sum_add(s, r, spread, NULL) != PROFD_OK || rollup_sum_add(s, r, spread, NULL) != PROFD_OK ||
        rollup_sum_finish(s, &sum, &shares, NULL) != PROFD_OK) {
        return; /* no memory */
    }
    if (sum.arc_count != r->arc_count || sum.bin_count != r->bin_count || sum.histogram_count != r->histogram_count ||
        sum.tree_count != r->tree_count || sum.node_count != r->node_count) {
        abort();
    }
    for (uint32_t i = 0; i < r->node_count; i++) {
        if (sum.node_ticks[i] != twice(r->node_ticks[i]) || sum.node_address[i] != r->node_address[i]) {
            abort();
        }
    }
    for (uint32_t i = 0; i < r->arc_count; i++) {
        if (sum.calls[i] != twice(r->calls[i]) || sum.from[i] != r->from[i] || sum.to[i] != r->to[i]) {
            abort();
        }
    }
    for (uint32_t i = 0; i < r->bin_count; i++) {
        if (sum.bin_ticks[i] != twice(r->bin_ticks[i]) || sum.bin_index[i] != r->bin_index[i]) {
            abort();
        }
    }
    struct bytes first;
    struct rollup_spread back;
    if (rollup_encode_spread(&sum, &shares, &first.at, &first.size, NULL) != PROFD_OK ||
        rollup_decode_spread(a, &sum, first.at, first.size, &back, NULL) == PROFD_DAMAGED) {
        abort();
    }
    free(first.at);
}

static void look(const uint8_t *counts, size_t size, const uint8_t *shares, size_t shares_size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct rollup r = {0}, arcs;
    struct rollup_spread spread;
    struct profd_error e = {""};
    enum profd_status status = rollup_decode(a, counts, size, BUILDS, false, &r, &e);
    if (status == PROFD_OK) {
        check_again(a, &r);
        if (rollup_decode(a, counts, size, BUILDS, true, &arcs, NULL) != PROFD_OK || arcs.arc_count != r.arc_count) {
            abort();
        }
        status = rollup_decode_spread(a, &r, shares, shares_size, &spread, &e);
        if (status == PROFD_OK) {
            check_double(a, &r, &spread);
        }
    }
    if (status != PROFD_OK && ((status != PROFD_DAMAGED && status != PROFD_NO_MEMORY) || e.sentence[0] == '\0')) {
        abort();
    }
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) {
        return 0;
    }
    const bool stored = data[2] & 1, with_stacks = data[2] % 4 == 2;
    size_t arcs = data[0], bins = data[1];
    data += 3;
    size -= 3;
    arcs = arcs < size ? arcs : size;
    bins = bins < size - arcs ? bins : size - arcs;
    if (stored) {
        look(data, arcs + bins, data + arcs + bins, size - arcs - bins);
        return 0;
    }
    struct plain x = {data, data + arcs, NULL, arcs, bins, 0};
    data += arcs + bins;
    size -= arcs + bins;
    if (with_stacks && size > 0) {
        const size_t n = data[0] < size - 1 ? data[0] : size - 1;
        x.stacks = data + 1;
        x.stacks_size = n;
        data += 1 + n;
        size -= 1 + n;
    }
    struct bytes counts = make_counts(&x);
    struct bytes spread = make_spread(x.stacks != NULL, data, size);
    look(counts.at, counts.size, spread.at, spread.size);
    free(counts.at);
    free(spread.at);
    return 0;
}
