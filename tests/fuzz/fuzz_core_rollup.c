/* Input: as of fuzz_proto_counts, of sorted counts of three builds; then, behind the length of that in two bytes, an
 * encoding of their shares. Law: what decodes encodes again and decodes to the same; its sum with itself doubles every
 * number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/sum.h"
#include "tests/fuzz/counts_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BUILDS 3

struct bytes {
    uint8_t *at;
    size_t size;
};

static void check_again(struct arena *a, const struct counts *r)
{
    struct counts back;
    struct bytes first, second;
    if (counts_encode(r, &first.at, &first.size, NULL) != PROFD_OK ||
        rollup_decode(a, first.at, first.size, BUILDS, false, &back, NULL) != PROFD_OK ||
        counts_encode(&back, &second.at, &second.size, NULL) != PROFD_OK || first.size != second.size ||
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

static void check_double(struct arena *a, const struct counts *r, const struct counts_shares *spread)
{
    struct counts sum;
    struct counts_shares shares;
    struct rollup_sum *s = rollup_sum_new(a, ROLLUP_ALL);
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
    struct counts_shares back;
    if (counts_encode_shares(&sum, &shares, &first.at, &first.size, NULL) != PROFD_OK ||
        rollup_decode_spread(a, &sum, first.at, first.size, &back, NULL) == PROFD_DAMAGED) {
        abort();
    }
    free(first.at);
}

static void look(const uint8_t *counts, size_t size, const uint8_t *shares, size_t shares_size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct counts r = {0}, arcs;
    struct counts_shares spread;
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
    size_t n = data[0] | (size_t)data[1] << 8;
    data += 2;
    size -= 2;
    n = n < size ? n : size;
    if (n > 0) {
        struct counts_input in = input_take(data, n, true);
        look(in.bytes, in.size, data + n, size - n);
        free(in.block);
    }
    return 0;
}
