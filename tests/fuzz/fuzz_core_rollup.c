/* Input: the arcs' section and the histograms' of a sum, divided by the first two bytes, which are compressed here, or
 * (third byte odd) the bytes as they are stored; the spread likewise behind them. Law: what decodes encodes again and
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

/* The stored form of sections that are given plainly. */
static struct bytes make_counts(const uint8_t *arcs, size_t arcs_size, const uint8_t *bins, size_t bins_size)
{
    struct bytes a = pack(arcs, arcs_size), b = pack(bins, bins_size), out;
    out.at = malloc(31 + a.size + b.size);
    out.at[0] = ROLLUP_FORMAT;
    uint8_t *p = varint_put(varint_put(varint_put(out.at + 1, arcs_size), a.size), bins_size);
    memcpy(p, a.at, a.size);
    memcpy(p + a.size, b.at, b.size);
    out.size = (size_t)(p - out.at) + a.size + b.size;
    free(a.at);
    free(b.at);
    return out;
}

static struct bytes make_spread(const uint8_t *data, size_t n)
{
    struct bytes a = pack(data, n), out;
    out.at = malloc(11 + a.size);
    out.at[0] = ROLLUP_FORMAT_SPREAD;
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
    if (sum.arc_count != r->arc_count || sum.bin_count != r->bin_count || sum.histogram_count != r->histogram_count) {
        abort();
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
    bool stored = data[2] & 1;
    size_t arcs = data[0], bins = data[1];
    data += 3;
    size -= 3;
    arcs = arcs < size ? arcs : size;
    bins = bins < size - arcs ? bins : size - arcs;
    if (stored) {
        look(data, arcs + bins, data + arcs + bins, size - arcs - bins);
        return 0;
    }
    struct bytes counts = make_counts(data, arcs, data + arcs, bins);
    struct bytes spread = make_spread(data + arcs + bins, size - arcs - bins);
    look(counts.at, counts.size, spread.at, spread.size);
    free(counts.at);
    free(spread.at);
    return 0;
}
