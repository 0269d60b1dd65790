#include <string.h>

#include "clickhouse/segment.h"
#include "core/rollup_columns.h"
#include "proto/limits.h"
#include "store/incoming.h"

bool segment_row_read_key(struct row_reader *r, struct arena *a, struct segment_row *out)
{
    *out = (struct segment_row){.program = rows_copy(r, a)};
    out->sent = rows_u32(r) / 3600;
    rows_fixed(r, out->epoch, sizeof out->epoch);
    out->sequence = rows_u64(r);
    out->group = rows_u8(r);
    out->number = rows_u64(r);
    rows_fixed(r, out->digest, sizeof out->digest);
    out->group_rows = rows_u8(r);
    out->head = rows_u8(r) == 1;
    rows_fixed(r, out->series, sizeof out->series);
    out->hour = rows_u32(r);
    out->uid = rows_u32(r);
    out->generation = rows_u32(r);
    out->host = rows_u32(r);
    r->cut |= out->group >= SEGMENT_GROUPS;
    return out->program && !r->cut;
}

bool segment_row_read_sums(struct row_reader *r, struct arena *a, struct segment_row *out)
{
    size_t n[3];
    out->first = rows_i64(r);
    out->last = rows_i64(r);
    out->ended = rows_i64(r);
    out->inexact = rows_u32(r);
    out->uploads = rows_u64(r);
    const size_t groups = rows_length(r, sizeof *out->processes);
    for (size_t i = 0; i < groups; i++) {
        const uint64_t processes = rows_u64(r);
        out->processes[i < SEGMENT_GROUPS ? i : 0] = processes;
    }
    out->ticks = rows_u64(r);
    out->calls = rows_u64(r);
    out->stack_ticks = rows_u64(r);
    out->nanoseconds = rows_array_u64(r, a, &n[0]);
    out->into = rows_array_u64(r, a, &n[1]);
    out->touching = rows_array_u64(r, a, &n[2]);
    r->cut |= n[0] != n[1] || n[0] != n[2];
    out->build_count = n[0];
    return out->nanoseconds && out->into && out->touching && !r->cut;
}

/* What of a row is being read. */
struct reading {
    struct row_reader *r;
    struct arena *a;
    struct profile_order at; /* of the segment's first row */
    uint32_t builds;
    bool full, broken; /* out of memory; a rule is broken */
};

/* Reads an array that must have n elements; NULL: it cannot be had. */
#define GET_ARRAY(bits)                                                                                                \
    static uint##bits##_t *get_u##bits(struct reading *x, size_t n)                                                    \
    {                                                                                                                  \
        size_t have;                                                                                                   \
        uint##bits##_t *array = rows_array_u##bits(x->r, x->a, &have);                                                 \
        x->full |= !array && !x->r->cut;                                                                               \
        x->broken |= array && have != n;                                                                               \
        return x->full || x->broken || x->r->cut ? NULL : array;                                                       \
    }
GET_ARRAY(8)
GET_ARRAY(32)
GET_ARRAY(64)

/* The same of the first array of several, of which all must have *n elements. */
#define GET_FIRST(bits)                                                                                                \
    static uint##bits##_t *get_first_u##bits(struct reading *x, uint32_t *n)                                           \
    {                                                                                                                  \
        size_t have;                                                                                                   \
        uint##bits##_t *array = rows_array_u##bits(x->r, x->a, &have);                                                 \
        x->full |= !array && !x->r->cut;                                                                               \
        *n = (uint32_t)have;                                                                                           \
        return array;                                                                                                  \
    }
GET_FIRST(16)
GET_FIRST(32)

static bool failed(const struct reading *x)
{
    return x->full || x->broken || x->r->cut;
}

/* Reads a column of n numbers; NULL: it cannot be had. */
static uint64_t *get_column(struct reading *x, uint32_t n)
{
    size_t size;
    const uint8_t *at = (const uint8_t *)rows_string(x->r, &size), *end = at + size;
    uint64_t *numbers = failed(x) ? NULL : ARENA_ARRAY(x->a, (size_t)n + 1, uint64_t);
    x->full |= !numbers && !failed(x);
    x->broken |= numbers && (!rollup_column_get(&at, end, numbers, n) || at != end);
    return failed(x) ? NULL : numbers;
}

/* The same of numbers up to `most` < 2^32. */
static uint32_t *get_column_u32(struct reading *x, uint32_t n, uint32_t most)
{
    const uint64_t *from = get_column(x, n);
    uint32_t *to = from ? ARENA_ARRAY(x->a, (size_t)n + 1, uint32_t) : NULL;
    x->full |= from && !to;
    for (uint32_t i = 0; to && i < n; i++) {
        x->broken |= from[i] > most;
        to[i] = (uint32_t)from[i];
    }
    return failed(x) ? NULL : to;
}

static uint8_t *get_column_u8(struct reading *x, uint32_t n)
{
    const uint32_t *from = get_column_u32(x, n, UINT8_MAX);
    uint8_t *to = from ? ARENA_ARRAY(x->a, (size_t)n + 1, uint8_t) : NULL;
    x->full |= from && !to;
    for (uint32_t i = 0; to && i < n; i++) {
        to[i] = (uint8_t)from[i];
    }
    return to;
}

/* Builds, of which 0 is outside and 1 the first. */
static uint32_t *get_builds(struct reading *x, uint32_t n)
{
    uint32_t *builds = get_column_u32(x, n, x->builds);
    for (uint32_t i = 0; builds && i < n; i++) {
        builds[i]--; /* COUNTS_NOWHERE is the greatest number */
    }
    return builds;
}

/* Numbers of builds as a sum has them. */
static uint32_t *widen(struct reading *x, const uint16_t *from, uint32_t n)
{
    uint32_t *to = from ? ARENA_ARRAY(x->a, n, uint32_t) : NULL;
    x->full |= from && !to;
    for (uint32_t i = 0; to && i < n; i++) {
        to[i] = from[i];
        x->broken |= to[i] >= x->builds;
    }
    return to;
}

struct name {
    char text[16];
};

static struct name *get_dimensions(struct reading *x, uint32_t n)
{
    const size_t have = rows_length(x->r, 1);
    struct name *names = ARENA_ARRAY(x->a, n, struct name);
    x->full |= !names;
    x->broken |= have != n;
    for (size_t i = 0; i < have && !failed(x); i++) {
        size_t size;
        const char *text = rows_string(x->r, &size);
        x->broken |= size >= sizeof names->text;
        if (!failed(x)) {
            memcpy(names[i].text, text, size);
        }
    }
    return names;
}

/* Ranges of `used` elements behind each other: their sum. */
static uint64_t add_up(const uint32_t *used, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += used[i];
    }
    return sum;
}

/* Reads the bins of histograms, of which `used` says how many each has. */
static void read_bins(struct reading *x, const uint32_t *used, uint32_t n, struct rollup *out)
{
    const uint64_t bins = failed(x) ? 0 : add_up(used, n);
    x->broken |= bins > LIMIT_BINS;
    out->bin_count = failed(x) ? 0 : (uint32_t)bins;
    out->bin_index = get_column_u32(x, out->bin_count, UINT32_MAX);
    out->bin_ticks = get_column(x, out->bin_count);
    for (uint32_t i = 0, at = 0; i < n && !failed(x); i++) {
        uint64_t index = 0;
        for (uint32_t k = 0; k < used[i]; k++, at++) {
            index += out->bin_index[at];
            x->broken |= index > UINT32_MAX;
            out->bin_index[at] = (uint32_t)index;
        }
    }
}

static void read_histograms(struct reading *x, struct rollup *out)
{
    uint32_t n, first = 0;
    const uint16_t *narrow = get_first_u16(x, &n);
    const uint32_t *build = widen(x, narrow, n);
    const uint64_t *low = get_u64(x, n), *high = get_u64(x, n);
    const uint32_t *bins = get_u32(x, n), *rate = get_u32(x, n);
    const struct name *dimension = get_dimensions(x, n);
    const uint8_t *abbreviation = get_u8(x, n);
    const uint32_t *rank = get_u32(x, n), *used = get_u32(x, n);
    read_bins(x, used, n, out);
    out->histograms = ARENA_ARRAY(x->a, n, struct rollup_histogram);
    x->full |= !out->histograms;
    if (failed(x)) {
        return;
    }
    out->histogram_count = n;
    for (uint32_t i = 0; i < n; first += used[i++]) {
        struct rollup_histogram *h = &out->histograms[i];
        *h = (struct rollup_histogram){.build = build[i],
                                       .bins = bins[i],
                                       .low = low[i],
                                       .high = high[i],
                                       .rate = rate[i],
                                       .abbreviation = (char)abbreviation[i],
                                       .first = first,
                                       .used = used[i],
                                       .order = {x->at.commit, x->at.rank + rank[i]}};
        memcpy(h->dimension, dimension[i].text, sizeof h->dimension);
        x->broken |= h->low >= h->high || h->rate == 0;
        for (uint32_t k = first; k < first + used[i]; k++) {
            x->broken |= out->bin_index[k] >= h->bins || (k > first && out->bin_index[k] <= out->bin_index[k - 1]);
        }
    }
}

/* Differences of callers' addresses become these. */
static void add_callers(struct rollup *out)
{
    for (uint32_t i = 1; i < out->arc_count; i++) {
        out->from[i] += out->from_build[i] == out->from_build[i - 1] ? out->from[i - 1] : 0;
    }
}

static void read_arcs(struct reading *x, struct rollup *out)
{
    const uint32_t n = rows_u32(x->r);
    x->broken |= n > LIMIT_ARCS;
    out->from_build = get_builds(x, n);
    out->from = get_column(x, n);
    out->to_build = get_builds(x, n);
    out->to = get_column(x, n);
    out->rank = get_column_u32(x, n, UINT32_MAX);
    out->calls = get_column(x, n);
    out->commit = failed(x) ? NULL : ARENA_ARRAY(x->a, n, uint64_t);
    x->full |= !out->commit && !failed(x);
    if (failed(x)) {
        return;
    }
    out->arc_count = n;
    add_callers(out);
    for (uint32_t i = 0; i < n; i++) {
        out->commit[i] = x->at.commit;
        out->rank[i] += x->at.rank;
    }
}

/* Depths of a tree's nodes: the first has 0, each at most one more than the one before. */
static bool depths_fit(const uint8_t *depth, uint32_t n)
{
    unsigned most = 0;
    bool fit = n > 0;
    for (uint32_t i = 0; i < n; i++) {
        fit &= depth[i] <= most && depth[i] < LIMIT_STACK_DEPTH;
        most = depth[i] + 1u;
    }
    return fit;
}

static void read_stacks(struct reading *x, struct rollup *out)
{
    uint32_t n, first = 0;
    const uint32_t *rate = get_first_u32(x, &n);
    const struct name *dimension = get_dimensions(x, n);
    const uint8_t *abbreviation = get_u8(x, n);
    const uint32_t *used = get_u32(x, n);
    const uint64_t nodes = failed(x) ? 0 : add_up(used, n);
    x->broken |= nodes > LIMIT_STACK_NODES || n > LIMIT_STACK_TREES;
    out->node_count = failed(x) ? 0 : (uint32_t)nodes;
    out->node_depth = get_column_u8(x, out->node_count);
    out->node_kind = get_column_u8(x, out->node_count);
    out->node_build = get_builds(x, out->node_count);
    out->node_address = get_column(x, out->node_count);
    out->node_ticks = get_column(x, out->node_count);
    out->trees = ARENA_ARRAY(x->a, n, struct counts_tree);
    x->full |= !out->trees;
    if (failed(x)) {
        return;
    }
    out->tree_count = n;
    for (uint32_t i = 0; i < n; first += used[i++]) {
        out->trees[i] = (struct counts_tree){
            .rate = rate[i], .abbreviation = (char)abbreviation[i], .first = first, .used = used[i]};
        memcpy(out->trees[i].dimension, dimension[i].text, sizeof out->trees[i].dimension);
        x->broken |= rate[i] == 0 || !depths_fit(out->node_depth + first, used[i]);
    }
}

enum profd_status segment_row_read_counts(struct row_reader *r, struct arena *a, const struct segment_row *row,
                                          uint32_t builds, struct rollup *out, struct profd_error *e)
{
    struct reading x = {.r = r, .a = a, .at = incoming_order(row->hour, row->epoch, row->sequence), .builds = builds};
    *out = (struct rollup){.saturated = row->head && (row->inexact & (uint32_t)INEXACT_SATURATED) != 0};
    read_histograms(&x, out);
    read_arcs(&x, out);
    read_stacks(&x, out);
    if (r->cut) {
        return profd_error_set(e, PROFD_BUSY, "store: the reply of ClickHouse to a query for segments is cut off");
    }
    return x.full     ? profd_no_memory(e)
           : x.broken ? profd_error_set(e, PROFD_DAMAGED, "table segment_group: a row of program %s breaks a rule",
                                        row->program)
                      : PROFD_OK;
}

/* Skips arrays of elements of these sizes; 0: of texts. */
static void skip_arrays(struct row_reader *r, const uint8_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t n = rows_length(r, sizes[i]);
        r->at += n * sizes[i];
        for (size_t k = 0, size; sizes[i] == 0 && k < n; k++) {
            (void)rows_string(r, &size);
        }
    }
}

static void skip_columns(struct row_reader *r, unsigned n)
{
    size_t size;
    for (unsigned i = 0; i < n; i++) {
        (void)rows_string(r, &size);
    }
}

void segment_row_skip_counts(struct row_reader *r)
{
    static const uint8_t histograms[] = {2, 8, 8, 4, 4, 0, 1, 4, 4}, trees[] = {4, 0, 1, 4};
    skip_arrays(r, histograms, sizeof histograms);
    skip_columns(r, 2);
    (void)rows_u32(r);
    skip_columns(r, 6);
    skip_arrays(r, trees, sizeof trees);
    skip_columns(r, 5);
}

static uint64_t *spread_of(const uint64_t *counts, uint32_t n, uint32_t group, struct arena *a)
{
    uint64_t *spread = ARENA_ARRAY(a, (size_t)n * ROLLUP_GROUPS, uint64_t);
    for (uint32_t i = 0; spread && i < n; i++) {
        spread[(size_t)i * ROLLUP_GROUPS + group] = counts[i];
    }
    return spread;
}

enum profd_status segment_row_spread(const struct rollup *r, uint32_t group, struct arena *a, struct rollup_spread *out,
                                     struct profd_error *e)
{
    *out = (struct rollup_spread){.bins = spread_of(r->bin_ticks, r->bin_count, group, a),
                                  .arcs = spread_of(r->calls, r->arc_count, group, a),
                                  .nodes = spread_of(r->node_ticks, r->node_count, group, a)};
    return out->bins && out->arcs && out->nodes ? PROFD_OK : profd_no_memory(e);
}
