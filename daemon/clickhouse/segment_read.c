#include <string.h>

#include "clickhouse/segment.h"
#include "store/incoming.h"

#define NOWHERE UINT16_MAX

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
GET_ARRAY(16)
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
GET_FIRST(8)
GET_FIRST(16)
GET_FIRST(32)

static bool failed(const struct reading *x)
{
    return x->full || x->broken || x->r->cut;
}

/* Numbers of builds as a sum has them. outside: they may be COUNTS_NOWHERE. */
static uint32_t *widen(struct reading *x, const uint16_t *from, uint32_t n, bool outside)
{
    uint32_t *to = from ? ARENA_ARRAY(x->a, n, uint32_t) : NULL;
    x->full |= from && !to;
    for (uint32_t i = 0; to && i < n; i++) {
        to[i] = from[i] == NOWHERE ? COUNTS_NOWHERE : from[i];
        x->broken |= to[i] == COUNTS_NOWHERE ? !outside : to[i] >= x->builds;
    }
    return to;
}

static uint32_t *get_builds(struct reading *x, uint32_t n)
{
    return widen(x, get_u16(x, n), n, true);
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

static void read_histograms(struct reading *x, struct rollup *out)
{
    uint32_t n, first = 0;
    const uint16_t *narrow = get_first_u16(x, &n);
    const uint32_t *build = widen(x, narrow, n, false);
    const uint64_t *low = get_u64(x, n), *high = get_u64(x, n);
    const uint32_t *bins = get_u32(x, n), *rate = get_u32(x, n);
    const struct name *dimension = get_dimensions(x, n);
    const uint8_t *abbreviation = get_u8(x, n);
    const uint32_t *rank = get_u32(x, n), *used = get_u32(x, n);
    out->bin_index = get_first_u32(x, &out->bin_count);
    out->bin_ticks = get_u64(x, out->bin_count);
    out->histograms = ARENA_ARRAY(x->a, n, struct rollup_histogram);
    x->full |= !out->histograms;
    if (failed(x) || add_up(used, n) != out->bin_count) {
        x->broken |= !failed(x);
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

static void read_arcs(struct reading *x, struct rollup *out)
{
    const uint16_t *narrow = get_first_u16(x, &out->arc_count);
    const uint32_t n = out->arc_count;
    out->from_build = widen(x, narrow, n, true);
    out->from = get_u64(x, n);
    out->to_build = get_builds(x, n);
    out->to = get_u64(x, n);
    out->rank = get_u32(x, n);
    out->calls = get_u64(x, n);
    out->commit = ARENA_ARRAY(x->a, n, uint64_t);
    x->full |= !out->commit;
    for (uint32_t i = 0; i < n && !failed(x); i++) {
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
    out->node_depth = get_first_u8(x, &out->node_count);
    out->node_kind = get_u8(x, out->node_count);
    out->node_build = get_builds(x, out->node_count);
    out->node_address = get_u64(x, out->node_count);
    out->node_ticks = get_u64(x, out->node_count);
    out->trees = ARENA_ARRAY(x->a, n, struct counts_tree);
    x->full |= !out->trees;
    if (failed(x) || add_up(used, n) != out->node_count || n > LIMIT_STACK_TREES) {
        x->broken |= !failed(x);
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
void segment_row_skip_counts(struct row_reader *r)
{
    static const uint8_t sizes[] = {2, 8, 8, 4, 4, 0, 1, 4, 4, 4, 8, 2, 8, 2, 8, 4, 8, 4, 0, 1, 4, 1, 1, 2, 8, 8};
    for (size_t i = 0; i < sizeof sizes; i++) {
        const size_t n = rows_length(r, sizes[i]);
        r->at += n * sizes[i];
        for (size_t k = 0, size; sizes[i] == 0 && k < n; k++) {
            (void)rows_string(r, &size);
        }
    }
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
