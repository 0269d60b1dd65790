#include "clickhouse/segment.h"

#include <string.h>

#include "core/rollup_columns.h"

_Static_assert(LIMIT_BUILDS <= UINT16_MAX, "numbers of builds fit");

uint32_t segment_row_sent(const struct segment *s)
{
    const int64_t most = UINT32_MAX / 3600;
    return (uint32_t)(s->hour < 0 ? 0 : s->hour > most ? most : s->hour);
}

/* Indices of rows of the segment. */
struct rows {
    uint32_t *at, n;
};

/* What one group has of a segment. */
struct part {
    const struct segment_counts *counts;
    const uint32_t *shares; /* of each row: the index of its first share */
    unsigned group;
    bool head;
    struct rows histograms, bins, arcs, nodes;
    uint32_t *h_used, *t_used; /* of the histograms above, and of all trees */
    uint8_t *kept;             /* of each node: is it in the part? */
    uint64_t *numbers;         /* of a column that is being put, and */
    uint8_t *packed;           /* its bytes */
};

static uint64_t share_of(const struct part *p, uint32_t row)
{
    const unsigned groups = p->counts->groups[row];
    return groups >> p->group & 1
               ? p->counts->shares[p->shares[row] + (unsigned)__builtin_popcount(groups & ((1u << p->group) - 1))]
               : 0;
}

static bool has_share(const struct part *p, uint32_t row)
{
    return p->counts->groups[row] >> p->group & 1;
}

/* Histograms with bins of the group; those without any bins are the head's. */
static void pick_histograms(struct part *p)
{
    const struct segment_counts *c = p->counts;
    p->histograms.n = p->bins.n = 0;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        const uint32_t before = p->bins.n;
        for (uint32_t k = h->first; k < h->first + h->used; k++) {
            p->bins.at[p->bins.n] = k;
            p->bins.n += has_share(p, k);
        }
        if (p->bins.n > before || (p->head && h->used == 0)) {
            p->h_used[p->histograms.n] = p->bins.n - before;
            p->histograms.at[p->histograms.n++] = i;
        }
    }
}

/* Arcs that nothing went along are the head's. */
static void pick_arcs(struct part *p)
{
    const struct segment_counts *c = p->counts;
    p->arcs.n = 0;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        p->arcs.at[p->arcs.n] = i;
        p->arcs.n += has_share(p, c->bin_count + i) || (p->head && c->groups[c->bin_count + i] == 0);
    }
}

/* Nodes with ticks of the group, and those above them. */
static void pick_nodes(struct part *p)
{
    const struct segment_counts *c = p->counts;
    bool below[LIMIT_STACK_DEPTH + 1] = {false}; /* a child is kept of the next node of this depth − 1 to the left */
    for (uint32_t i = c->node_count; i-- > 0;) {
        const unsigned depth = c->node_depth[i];
        p->kept[i] = has_share(p, c->bin_count + c->arc_count + i) || below[depth + 1];
        below[depth + 1] = false;
        below[depth] |= p->kept[i];
    }
    p->nodes.n = 0;
    for (uint32_t t = 0; t < c->tree_count; t++) {
        const uint32_t before = p->nodes.n, end = c->trees[t].first + c->trees[t].used;
        for (uint32_t i = c->trees[t].first; i < end; i++) {
            p->nodes.at[p->nodes.n] = i;
            p->nodes.n += p->kept[i];
        }
        p->t_used[t] = p->nodes.n - before;
    }
}

/* Appends an array of the values of the rows i of a list. */
#define PUT_ARRAY(type, list, value)                                                                                   \
    do {                                                                                                               \
        rows_put_count(b, (list)->n);                                                                                  \
        char *to = (list)->n > 0 ? buffer_extend(b, (list)->n * sizeof(type)) : NULL;                                  \
        for (uint32_t k = 0; to && k < (list)->n; k++, to += sizeof(type)) {                                           \
            const uint32_t i = (list)->at[k];                                                                          \
            const type number = (type)(value);                                                                         \
            memcpy(to, &number, sizeof number);                                                                        \
        }                                                                                                              \
    } while (0)

/* Appends n of p->numbers as a column of planes of bytes: the server compresses these better than an array. */
static void put_numbers(const struct part *p, uint32_t n, struct buffer *b)
{
    rows_put_bytes(b, p->packed, (size_t)(rollup_column_put(p->packed, p->numbers, n) - p->packed));
}

/* The same of the values of the rows i of a list. */
#define PUT_COLUMN(list, value)                                                                                        \
    do {                                                                                                               \
        for (uint32_t k = 0; k < (list)->n; k++) {                                                                     \
            const uint32_t i = (list)->at[k];                                                                          \
            p->numbers[k] = (value);                                                                                   \
        }                                                                                                              \
        put_numbers(p, (list)->n, b);                                                                                  \
    } while (0)

/* A build and one more; 0: outside every known one. */
static uint64_t put_build(uint32_t build)
{
    return build == COUNTS_NOWHERE ? 0 : (uint64_t)build + 1;
}

/* Positions of bins ascend in each histogram: differences. */
static void put_bin_places(const struct part *p, struct buffer *b)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->histograms.n; i++) {
        uint64_t before = 0;
        for (uint32_t k = 0; k < p->h_used[i]; k++, at++) {
            const uint64_t index = p->counts->bin_index[p->bins.at[at]];
            p->numbers[at] = index - before;
            before = index;
        }
    }
    put_numbers(p, at, b);
}

/* Callers' addresses ascend in each build: differences. */
static void put_callers(const struct part *p, struct buffer *b)
{
    const struct segment_counts *c = p->counts;
    uint64_t before = 0;
    for (uint32_t k = 0; k < p->arcs.n; k++) {
        const uint32_t i = p->arcs.at[k];
        const bool same = k > 0 && c->from_build[p->arcs.at[k - 1]] == c->from_build[i];
        p->numbers[k] = c->from[i] - (same ? before : 0);
        before = c->from[i];
    }
    put_numbers(p, p->arcs.n, b);
}

static void put_histograms(const struct part *p, struct buffer *b)
{
    const struct rows *list = &p->histograms;
    const struct counts_histogram *h = p->counts->histograms;
    PUT_ARRAY(uint16_t, list, h[i].build);
    PUT_ARRAY(uint64_t, list, h[i].low);
    PUT_ARRAY(uint64_t, list, h[i].high);
    PUT_ARRAY(uint32_t, list, h[i].bins);
    PUT_ARRAY(uint32_t, list, h[i].rate);
    rows_put_count(b, list->n);
    for (uint32_t k = 0; k < list->n; k++) {
        rows_put_text(b, h[list->at[k]].dimension);
    }
    PUT_ARRAY(uint8_t, list, h[i].abbreviation);
    PUT_ARRAY(uint32_t, list, p->counts->histogram_rank[i]);
    rows_put_array_u32(b, p->h_used, list->n);
    put_bin_places(p, b);
    PUT_COLUMN(&p->bins, share_of(p, i));
}

static void put_arcs(const struct part *p, struct buffer *b)
{
    const struct segment_counts *c = p->counts;
    const struct rows *list = &p->arcs;
    rows_put_u32(b, list->n);
    PUT_COLUMN(list, put_build(c->from_build[i]));
    put_callers(p, b);
    PUT_COLUMN(list, put_build(c->to_build[i]));
    PUT_COLUMN(list, c->to[i]);
    PUT_COLUMN(list, c->rank[i]);
    PUT_COLUMN(list, share_of(p, c->bin_count + i));
}

static void put_stacks(const struct part *p, struct buffer *b)
{
    const struct segment_counts *c = p->counts;
    uint32_t at[LIMIT_STACK_TREES];
    struct rows trees = {at, 0};
    for (uint32_t t = 0; t < c->tree_count; t++) {
        at[trees.n] = t;
        trees.n += p->t_used[t] > 0;
    }
    PUT_ARRAY(uint32_t, &trees, c->trees[i].rate);
    rows_put_count(b, trees.n);
    for (uint32_t k = 0; k < trees.n; k++) {
        rows_put_text(b, c->trees[at[k]].dimension);
    }
    PUT_ARRAY(uint8_t, &trees, c->trees[i].abbreviation);
    PUT_ARRAY(uint32_t, &trees, p->t_used[i]);
    PUT_COLUMN(&p->nodes, c->node_depth[i]);
    PUT_COLUMN(&p->nodes, c->node_kind[i]);
    PUT_COLUMN(&p->nodes, put_build(c->node_build[i]));
    PUT_COLUMN(&p->nodes, c->node_address[i]);
    PUT_COLUMN(&p->nodes, share_of(p, c->bin_count + c->arc_count + i));
}

static void put_key(const struct segment_row *x, struct buffer *b)
{
    rows_put_text(b, x->program);
    rows_put_u32(b, x->sent * 3600);
    rows_put_fixed(b, x->epoch, sizeof x->epoch);
    rows_put_u64(b, x->sequence);
    rows_put_u8(b, x->group);
    rows_put_u64(b, x->number);
    rows_put_fixed(b, x->digest, sizeof x->digest);
    rows_put_u8(b, x->group_rows);
    rows_put_u8(b, x->head);
    rows_put_fixed(b, x->series, sizeof x->series);
    rows_put_u32(b, x->hour);
    rows_put_u32(b, x->uid);
    rows_put_u32(b, x->generation);
    rows_put_u32(b, x->host);
}

static void put_sums(const struct segment_row *x, struct buffer *b)
{
    rows_put_i64(b, x->first);
    rows_put_i64(b, x->last);
    rows_put_i64(b, x->ended);
    rows_put_u32(b, x->inexact);
    rows_put_u64(b, x->uploads);
    rows_put_array_u64(b, x->processes, x->head ? SEGMENT_GROUPS : 0);
    rows_put_u64(b, x->ticks);
    rows_put_u64(b, x->calls);
    rows_put_u64(b, x->stack_ticks);
    rows_put_array_u64(b, x->nanoseconds, x->build_count);
    rows_put_array_u64(b, x->into, x->build_count);
    rows_put_array_u64(b, x->touching, x->build_count);
}

/* The key alone of a row that is no head. */
static void leave_key(struct segment_row *x)
{
    x->head = false;
    x->first = x->last = x->ended = 0;
    x->inexact = 0;
    x->uploads = x->ticks = x->calls = x->stack_ticks = 0;
    x->build_count = 0;
}

static bool part_init(struct part *p, const struct segment_counts *c, struct arena *a, unsigned *groups)
{
    const uint32_t rows = c->bin_count + c->arc_count + c->node_count;
    uint32_t *shares = ARENA_ARRAY(a, rows, uint32_t), next = 0;
    *p = (struct part){.counts = c,
                       .shares = shares,
                       .histograms = {ARENA_ARRAY(a, c->histogram_count, uint32_t), 0},
                       .bins = {ARENA_ARRAY(a, c->bin_count + 1, uint32_t), 0},
                       .arcs = {ARENA_ARRAY(a, c->arc_count + 1, uint32_t), 0},
                       .nodes = {ARENA_ARRAY(a, c->node_count + 1, uint32_t), 0},
                       .h_used = ARENA_ARRAY(a, c->histogram_count, uint32_t),
                       .t_used = ARENA_ARRAY(a, c->tree_count, uint32_t),
                       .kept = ARENA_ARRAY(a, c->node_count, uint8_t),
                       .numbers = ARENA_ARRAY(a, rows + 1, uint64_t),
                       .packed = ARENA_ARRAY(a, rollup_column_bound(rows) + 1, uint8_t)};
    *groups = 0;
    for (uint32_t i = 0; shares && i < rows; i++) {
        shares[i] = next;
        next += (uint32_t)__builtin_popcount(c->groups[i]);
        *groups |= c->groups[i];
    }
    return shares && p->histograms.at && p->bins.at && p->arcs.at && p->nodes.at && p->h_used && p->t_used && p->kept &&
           p->numbers && p->packed;
}

enum profd_status segment_row_put(const struct segment_row *head, const struct segment *s, struct arena *a,
                                  struct buffer *rows, uint32_t *count, struct profd_error *e)
{
    struct part p;
    struct segment_row x = *head;
    unsigned groups;
    if (!part_init(&p, &s->counts, a, &groups)) {
        return profd_no_memory(e);
    }
    groups |= groups == 0; /* a segment without counts has one row, of no process */
    *count = (uint32_t)__builtin_popcount(groups);
    x.group_rows = (uint8_t)*count;
    x.head = true;
    for (; groups != 0; groups &= groups - 1) {
        p.group = (unsigned)__builtin_ctz(groups);
        p.head = x.head;
        x.group = (uint8_t)p.group;
        pick_histograms(&p);
        pick_arcs(&p);
        pick_nodes(&p);
        put_key(&x, rows);
        put_sums(&x, rows);
        put_histograms(&p, rows);
        put_arcs(&p, rows);
        put_stacks(&p, rows);
        leave_key(&x);
    }
    return PROFD_OK;
}
