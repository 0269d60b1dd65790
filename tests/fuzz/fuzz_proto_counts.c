/* Input: sections, which are compressed here, or (first byte odd) the encoding as it travels. From 128 on the rows are
 * sorted.
 * Law: what decodes encodes again, and that decodes to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/counts.h"
#include "tests/fuzz/counts_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum profd_status decode(const uint8_t *data, size_t size, struct counts *c)
{
    struct counts_input in = input_take(data, size, data[0] >= 128);
    enum profd_status status = counts_decode(in.bytes, in.size, data[0] % 128 / 2, c, NULL);
    free(in.block);
    return status;
}

static int differs(const struct counts *a, const struct counts *b)
{
    return a->histogram_count != b->histogram_count || a->bin_count != b->bin_count || a->arc_count != b->arc_count ||
           memcmp(a->bin_index, b->bin_index, a->bin_count * sizeof *a->bin_index) != 0 ||
           memcmp(a->bin_ticks, b->bin_ticks, a->bin_count * sizeof *a->bin_ticks) != 0 ||
           memcmp(a->from_build, b->from_build, a->arc_count * sizeof *a->from_build) != 0 ||
           memcmp(a->to_build, b->to_build, a->arc_count * sizeof *a->to_build) != 0 ||
           memcmp(a->from, b->from, a->arc_count * sizeof *a->from) != 0 ||
           memcmp(a->to, b->to, a->arc_count * sizeof *a->to) != 0 ||
           memcmp(a->calls, b->calls, a->arc_count * sizeof *a->calls) != 0 || a->sorted != b->sorted ||
           (a->sorted && (memcmp(a->commit, b->commit, a->arc_count * sizeof *a->commit) != 0 ||
                          memcmp(a->rank, b->rank, a->arc_count * sizeof *a->rank) != 0));
}

static int trees_differ(const struct counts *a, const struct counts *b)
{
    size_t n = a->node_count;
    for (uint32_t i = 0; i < a->tree_count && a->tree_count == b->tree_count; i++) {
        const struct counts_tree *x = &a->trees[i], *y = &b->trees[i];
        if (x->rate != y->rate || x->abbreviation != y->abbreviation || x->first != y->first || x->used != y->used ||
            memcmp(x->dimension, y->dimension, sizeof x->dimension) != 0) {
            return 1;
        }
    }
    return a->tree_count != b->tree_count || n != b->node_count || memcmp(a->node_depth, b->node_depth, n) != 0 ||
           memcmp(a->node_kind, b->node_kind, n) != 0 ||
           memcmp(a->node_build, b->node_build, n * sizeof *a->node_build) != 0 ||
           memcmp(a->node_address, b->node_address, n * sizeof *a->node_address) != 0 ||
           memcmp(a->node_ticks, b->node_ticks, n * sizeof *a->node_ticks) != 0;
}

/* Field by field: the struct has padding. */
static int histograms_differ(const struct counts *a, const struct counts *b)
{
    for (uint32_t i = 0; i < a->histogram_count; i++) {
        const struct counts_histogram *h = &a->histograms[i], *k = &b->histograms[i];
        if (h->build != k->build || h->bins != k->bins || h->low != k->low || h->high != k->high ||
            h->rate != k->rate || h->abbreviation != k->abbreviation || h->first != k->first || h->used != k->used ||
            memcmp(h->dimension, k->dimension, sizeof h->dimension) != 0) {
            return 1;
        }
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct counts c, again;
    struct profd_error e;
    uint8_t *out;
    size_t n;
    if (size < 1 || size > 1 << 20 || decode(data, size, &c) != PROFD_OK) {
        return 0;
    }
    if (counts_encode(&c, &out, &n, &e) != PROFD_OK ||
        counts_decode(out, n, data[0] % 128 / 2, &again, &e) != PROFD_OK || differs(&c, &again) ||
        histograms_differ(&c, &again) || trees_differ(&c, &again)) {
        abort();
    }
    free(out);
    counts_done(&c);
    counts_done(&again);
    return 0;
}
