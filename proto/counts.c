#include "proto/counts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/collector.h"
#include "proto/limits.h"
#include "proto/sort.h"
#include "proto/sum.h"

void collector_make_histogram(struct counts_histogram *h, uint32_t program)
{
    *h = (struct counts_histogram){.build = program,
                                   .bins = COLLECTOR_COUNTERS_MAX,
                                   .low = 0,
                                   .high = COLLECTOR_COUNTERS_MAX,
                                   .rate = 1,
                                   .dimension = COLLECTOR_DIMENSION,
                                   .abbreviation = 'c'};
}

/* The geometry that one of dimension "collector" must have (proto/collector.h). It is fixed; otherwise the
 * counters of two versions could not be added up. MALFORMED or OK. */
static enum profd_status counts_check_collector_histogram(const struct counts_histogram *h, uint32_t at,
                                                          struct profd_error *e)
{
    struct counts_histogram w;
    collector_make_histogram(&w, h->build);
    if (h->low == w.low && h->high == w.high && h->bins == w.bins && h->rate == w.rate &&
        h->abbreviation == w.abbreviation) {
        return PROFD_OK;
    }
    return profd_error_set(
        e, PROFD_MALFORMED,
        "histogram %u of dimension " COLLECTOR_DIMENSION ": 0x%llx-0x%llx, %u bins, rate %u, '%c'; it must be "
        "0x%llx-0x%llx, %u bins, rate %u, '%c'",
        at, (unsigned long long)h->low, (unsigned long long)h->high, h->bins, h->rate, h->abbreviation,
        (unsigned long long)w.low, (unsigned long long)w.high, w.bins, w.rate, w.abbreviation);
}

enum profd_status counts_check_collector(const struct counts *c, struct profd_error *e)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (!collector_is_dimension(c->histograms[i].dimension)) {
            continue;
        }
        FAIL_IF(found != UINT32_MAX, e, PROFD_MALFORMED,
                "histograms %u and %u are both of dimension " COLLECTOR_DIMENSION ": at most one is", found, i);
        found = i;
    }
    return PROFD_OK;
}

#define COLUMN(member, kind, sorted)                                                                                   \
    {                                                                                                                  \
        offsetof(struct counts, member), sizeof *((struct counts *)0)->member, kind, sorted                            \
    }
const struct counts_column counts_columns[COUNTS_COLUMNS] = {
    COLUMN(histograms, COUNTS_HISTOGRAM_ROWS, false),
    COLUMN(bin_ticks, COUNTS_BIN_ROWS, false),
    COLUMN(from, COUNTS_ARC_ROWS, false),
    COLUMN(to, COUNTS_ARC_ROWS, false),
    COLUMN(calls, COUNTS_ARC_ROWS, false),
    COLUMN(commit, COUNTS_ARC_ROWS, true),
    COLUMN(bin_index, COUNTS_BIN_ROWS, false),
    COLUMN(from_build, COUNTS_ARC_ROWS, false),
    COLUMN(to_build, COUNTS_ARC_ROWS, false),
    COLUMN(rank, COUNTS_ARC_ROWS, true),
    COLUMN(trees, COUNTS_TREE_ROWS, false),
    COLUMN(node_address, COUNTS_NODE_ROWS, false),
    COLUMN(node_ticks, COUNTS_NODE_ROWS, false),
    COLUMN(node_build, COUNTS_NODE_ROWS, false),
    COLUMN(node_depth, COUNTS_NODE_ROWS, false),
    COLUMN(node_kind, COUNTS_NODE_ROWS, false),
};

/* Points all arrays into the block, unless it is NULL. Returns its size. 64-bit sizes cannot overflow: there are at
 * most 2^32 × (64 + 12 + 44 + 32 + 22) bytes. */
static size_t block_fill(struct counts *c, const struct counts_sizes *n, char *block)
{
    const size_t rows[COUNTS_KINDS] = {n->histograms, n->bins, n->arcs, n->trees, n->nodes};
    size_t at = 0;
    for (const struct counts_column *k = counts_columns; k < counts_columns + COUNTS_COLUMNS; k++) {
        if (!k->sorted || n->sorted) {
            counts_column_set(c, k, block != NULL ? block + at : NULL);
            at += (rows[k->kind] * k->size + 15) & ~(size_t)15;
        }
    }
    return at + 16;
}

enum profd_status counts_take_block(struct counts *c, const struct counts_sizes *sizes,
                                    const struct counts_memory *memory, struct profd_error *e)
{
    struct counts result = {.histogram_count = sizes->histograms,
                            .bin_count = sizes->bins,
                            .arc_count = sizes->arcs,
                            .tree_count = sizes->trees,
                            .node_count = sizes->nodes,
                            .sorted = sizes->sorted};
    const size_t size = counts_weigh(sizes);
    char *block = memory != NULL ? memory->take(memory->context, size) : malloc(size);
    TRY(block != NULL ? PROFD_OK : profd_no_memory(e));
    block_fill(&result, sizes, block);
    result.block = memory != NULL ? NULL : block;
    *c = result;
    return PROFD_OK;
}

size_t counts_weigh(const struct counts_sizes *sizes)
{
    return block_fill(&(struct counts){0}, sizes, NULL);
}

enum profd_status counts_init_sizes(struct counts *c, const struct counts_sizes *sizes, struct profd_error *e)
{
    TRY(counts_take_block(c, sizes, NULL, e));
    memset(c->block, 0, counts_weigh(sizes));
    return PROFD_OK;
}

enum profd_status counts_init(struct counts *c, uint32_t histograms, uint32_t bins, uint32_t arcs,
                              struct profd_error *e)
{
    return counts_init_sizes(c, &(struct counts_sizes){.histograms = histograms, .bins = bins, .arcs = arcs}, e);
}

void counts_done(struct counts *c)
{
    free(c->block);
    *c = (struct counts){0};
}

void counts_totals(const struct counts *c, uint64_t *ticks, uint64_t *calls)
{
    *ticks = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (!collector_is_dimension(c->histograms[i].dimension)) {
            sum_saturate(ticks, sum_all(c->bin_ticks + c->histograms[i].first, c->histograms[i].used));
        }
    }
    *calls = sum_all(c->calls, c->arc_count);
}

enum profd_status counts_judge_sizes(uint64_t histograms, uint64_t bins, uint64_t arcs, struct profd_error *e)
{
    FAIL_IF(histograms > LIMIT_HISTOGRAMS, e, PROFD_TOO_LARGE, "%llu histograms, at most %u",
            (unsigned long long)histograms, LIMIT_HISTOGRAMS);
    FAIL_IF(bins > LIMIT_BINS, e, PROFD_TOO_LARGE, "%llu non-zero bins, at most %u", (unsigned long long)bins,
            LIMIT_BINS);
    FAIL_IF(arcs > LIMIT_ARCS, e, PROFD_TOO_LARGE, "%llu arcs, at most %u", (unsigned long long)arcs, LIMIT_ARCS);
    return PROFD_OK;
}

int counts_compare_geometry(const struct counts_geometry *a, const struct counts_geometry *b)
{
    const int dimension = strncmp(a->dimension, b->dimension, sizeof a->dimension);
    return a->build != b->build || a->low != b->low   ? compare_pairs(a->build, b->build, a->low, b->low)
           : a->high != b->high || a->bins != b->bins ? compare_pairs(a->high, b->high, a->bins, b->bins)
           : a->rate != b->rate                       ? compare_u64(a->rate, b->rate)
           : dimension != 0                           ? dimension
                                                      : a->abbreviation - b->abbreviation;
}

bool counts_dimension_valid(const char dimension[16], char abbreviation)
{
    size_t n = strnlen(dimension, 16);
    if (n >= 16) {
        return false;
    }
    for (size_t i = 0; i < 16; i++) {
        if (i < n ? dimension[i] < ' ' || dimension[i] > '~' : dimension[i] != '\0') {
            return false;
        }
    }
    return abbreviation >= ' ' && abbreviation <= '~';
}

enum profd_status counts_judge_histogram(const struct counts_histogram *h, uint32_t at, struct profd_error *e)
{
    FAIL_IF(h->low >= h->high, e, PROFD_MALFORMED, "histogram %u: low 0x%llx is not below high 0x%llx", at,
            (unsigned long long)h->low, (unsigned long long)h->high);
    FAIL_IF(h->bins < 1, e, PROFD_MALFORMED, "histogram %u has no bins", at);
    FAIL_IF(h->bins > LIMIT_HISTOGRAM_BINS, e, PROFD_TOO_LARGE, "histogram %u of %u bins, at most %u", at, h->bins,
            LIMIT_HISTOGRAM_BINS);
    FAIL_IF(h->rate < 1 || h->rate > LIMIT_RATE, e, PROFD_MALFORMED,
            "histogram %u: rate of %u ticks per second; it must be 1 to %u", at, h->rate, LIMIT_RATE);
    FAIL_IF(!counts_dimension_valid(h->dimension, h->abbreviation), e, PROFD_MALFORMED,
            "histogram %u: the dimension must be up to 15 printable ASCII characters", at);
    FAIL_IF(h->used > h->bins, e, PROFD_MALFORMED, "histogram %u: %u non-zero bins of %u", at, h->used, h->bins);
    return collector_is_dimension(h->dimension) ? counts_check_collector_histogram(h, at, e) : PROFD_OK;
}
