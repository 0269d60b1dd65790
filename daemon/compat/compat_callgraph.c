#include "compat/compat_callgraph.h"

#include <inttypes.h>
#include <string.h>

#include "compat/compat_label.h"
#include "compat/compat_sort.h"
#include "core/buffer_number.h"
#include "proto/sort.h"

/* The rows of a symbol's callers or callees in the order of the call graph. */

/* Arcs inside a cycle and self arcs carry no time and are listed separately. */
enum compat_rank { COMPAT_RANK_SELF, COMPAT_RANK_INSIDE, COMPAT_RANK_OTHER };

struct compat_row {
    uint32_t other; /* symbol at the other end */
    enum compat_rank rank;
    uint64_t calls;
    struct compat_flow flow;
};

struct compat_row_key {
    uint64_t first, second;
    uint32_t row, spare;
};

/* Allocates capacity for the longest list. */
struct compat_rows {
    struct compat_row *rows; /* as the arcs stand */
    struct compat_row_key *keys, *scratch;
    uint32_t *list, *list_scratch;
};

#define RUN 16u /* up to this number, rows are sorted by insertion */

static enum profd_status compat_rows_init(struct compat_rows *r, const struct compat_run *run, struct arena *a)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < run->graph.symbols; v++) {
        uint32_t parents = run->arcs.parent_first[v + 1] - run->arcs.parent_first[v];
        uint32_t children = run->arcs.child_first[v + 1] - run->arcs.child_first[v];
        n = parents > n ? parents : n;
        n = children > n ? children : n;
    }
    *r = (struct compat_rows){ARENA_ARRAY(a, n, struct compat_row), ARENA_ARRAY(a, n, struct compat_row_key),
                              ARENA_ARRAY(a, n, struct compat_row_key), ARENA_ARRAY(a, n, uint32_t),
                              ARENA_ARRAY(a, n, uint32_t)};
    return r->rows == NULL || r->keys == NULL || r->scratch == NULL || r->list == NULL || r->list_scratch == NULL
               ? PROFD_NO_MEMORY
               : PROFD_OK;
}

static struct compat_row row_make(const struct compat_run *run, uint32_t parent, uint32_t child, uint64_t calls,
                                  uint32_t other)
{
    struct compat_row row = {.other = other, .calls = calls, .rank = COMPAT_RANK_OTHER};
    uint32_t cycle = run->cycles.number[parent];
    if (parent == child) {
        row.rank = COMPAT_RANK_SELF;
    } else if (cycle != 0 && cycle == run->cycles.number[child]) {
        row.rank = COMPAT_RANK_INSIDE;
    } else {
        row.flow = compat_graph_flow(&run->graph, parent, child, calls);
    }
    return row;
}

static bool key_less(const struct compat_row_key *x, const struct compat_row_key *y)
{
    return x->first < y->first || (x->first == y->first && x->second < y->second);
}

/* The sort key ascends with the row; a list has at most one self arc. Times are not negative. */
static struct compat_row_key key_make(const struct compat_row *row, uint32_t number)
{
    uint64_t first =
        row->rank == COMPAT_RANK_OTHER ? sort_key_double(row->flow.self + row->flow.child + 0.0) : (uint64_t)row->rank;
    return (struct compat_row_key){first, row->calls, number, 0};
}

static void keys_insert(struct compat_row_key *keys, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct compat_row_key key = keys[i];
        uint32_t j = i;
        for (; j > 0 && key_less(&key, &keys[j - 1]); j--) {
            keys[j] = keys[j - 1];
        }
        keys[j] = key;
    }
}

/* Stable sort. Returns the array that contains the sorted keys. */
static const struct compat_row_key *keys_sort(struct compat_row_key *keys, struct compat_row_key *scratch, size_t n)
{
    for (size_t low = 0; low < n; low += RUN) {
        keys_insert(keys + low, (uint32_t)(n - low < RUN ? n - low : RUN));
    }
    for (size_t run = RUN; run < n; run *= 2) {
        for (size_t low = 0; low < n; low += 2 * run) {
            size_t middle = n - low < run ? n : low + run, high = n - low < 2 * run ? n : low + 2 * run;
            /* Merges from[low, middle) and from[middle, high). */
            size_t i = low, j = middle;
            for (size_t k = low; k < high; k++) {
                scratch[k] = j == high || (i < middle && !key_less(&keys[j], &keys[i])) ? keys[i++] : keys[j++];
            }
        }
        struct compat_row_key *swap = keys;
        keys = scratch;
        scratch = swap;
    }
    return keys;
}

/* gprof's comparison, used if times are NaN. */
static int row_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct compat_row *a = (const struct compat_row *)context + x, *b = (const struct compat_row *)context + y;
    double a_time = a->flow.self + a->flow.child, b_time = b->flow.self + b->flow.child;
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    if (a->rank == COMPAT_RANK_OTHER && (a_time < b_time || a_time > b_time)) {
        return a_time < b_time ? -1 : 1;
    }
    if (a->rank == COMPAT_RANK_SELF || a->calls == b->calls) {
        return 0;
    }
    return a->calls < b->calls ? -1 : 1;
}

static int row_compare_down(const void *context, uint32_t x, uint32_t y)
{
    return row_compare(context, y, x);
}

static void rows_order(struct compat_rows *r, bool orderly, uint32_t n, bool down)
{
    if (!orderly) {
        for (uint32_t i = 0; i < n; i++) {
            r->list[i] = i;
        }
        compat_sort(r->list, r->list_scratch, n, down ? row_compare_down : row_compare, r->rows);
        return;
    }
    uint64_t flip = down ? UINT64_MAX : 0;
    for (uint32_t i = 0; i < n; i++) {
        r->keys[i] = key_make(&r->rows[i], i);
        r->keys[i].first ^= flip;
        r->keys[i].second ^= flip;
    }
    const struct compat_row_key *sorted = keys_sort(r->keys, r->scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        r->list[i] = sorted[i].row;
    }
}

/* Lists the rows of v's callers: the self arc, then arcs inside the cycle by calls, then the others by time and calls,
 * least first. Its callees are listed in the reverse order. Equal rows are oldest first in both. Row i of the n is
 * rows[list[i]]. O(n log n). */
static uint32_t compat_rows_parents(struct compat_rows *r, const struct compat_run *run, uint32_t v)
{
    const struct compat_arcs *arcs = &run->arcs;
    uint32_t first = arcs->parent_first[v], n = arcs->parent_first[v + 1] - first;
    for (uint32_t i = 0; i < n; i++) {
        r->rows[i] = row_make(run, arcs->parent[first + i], v, arcs->parent_calls[first + i], arcs->parent[first + i]);
    }
    rows_order(r, run->graph.orderly, n, false);
    return n;
}

static uint32_t compat_rows_children(struct compat_rows *r, const struct compat_run *run, uint32_t v)
{
    const struct compat_arcs *arcs = &run->arcs;
    uint32_t first = arcs->child_first[v], n = arcs->child_first[v + 1] - first;
    for (uint32_t i = 0; i < n; i++) {
        r->rows[i] = row_make(run, v, arcs->child[first + i], arcs->calls[first + i], arcs->child[first + i]);
    }
    rows_order(r, run->graph.orderly, n, true);
    return n;
}

/* Bytes of a row without its label: two times of any length, and fields of fixed width. */
#define ROW_MOST (2 * BUFFER_FIXED_MOST + 96)

struct listing {
    const struct compat_run *run;
    struct compat_labels labels;
    struct compat_rows rows;
    uint32_t *members, *scratch;
    double rate, print_time;
    unsigned child_width; /* of the time of callees */
    struct buffer *out;
};

static char *put_blanks(char *p, size_t n)
{
    memset(p, ' ', n);
    return p + n;
}

static char *put_times(char *p, const struct listing *l, double self, double child)
{
    p = buffer_put_fixed(p, self / l->rate, 7, 2);
    *p++ = ' ';
    p = buffer_put_fixed(p, child / l->rate, l->child_width, 2);
    *p++ = ' ';
    return p;
}

/* Left-aligned in seven bytes. */
static char *put_left(char *p, uint64_t value)
{
    char *end = buffer_put_u64(p, value, 0);
    while (end < p + 7) {
        *end++ = ' ';
    }
    return end;
}

/* Calls from others, followed by "+" and its own calls if it has any. */
static char *put_calls(char *p, uint64_t from_others, uint64_t from_itself)
{
    p = buffer_put_u64(p, from_others, 7);
    if (from_itself == 0) {
        return put_blanks(p, 8);
    }
    *p++ = '+';
    return put_left(p, from_itself);
}

static char *put_label(char *p, const struct listing *l, uint32_t symbol)
{
    size_t n = compat_label_size(&l->labels, symbol);
    memcpy(p, compat_label_text(&l->labels, symbol), n);
    p[n] = '\n';
    return p + n + 1;
}

/* Reserves space for a row with the label of a symbol; NULL: none, and the buffer has failed. */
static char *row_open(const struct listing *l, uint32_t symbol)
{
    return buffer_open(l->out, ROW_MOST + compat_label_size(&l->labels, symbol));
}

/* total: the calls of which the arc's calls are a part. */
static void row_print(const struct listing *l, const struct compat_row *row, uint64_t total)
{
    char *p = row_open(l, row->other);
    if (p == NULL) {
        return;
    }
    if (row->rank != COMPAT_RANK_OTHER) {
        p = put_blanks(p, 6 + 1 + 5 + 1 + 7 + 1 + (size_t)l->child_width + 1);
        p = buffer_put_u64(p, row->calls, 7);
        p = put_blanks(p, 1 + 7 + 5);
    } else {
        p = put_blanks(p, 6 + 1 + 5 + 1);
        p = put_times(p, l, row->flow.self, row->flow.child);
        p = buffer_put_u64(p, row->calls, 7);
        *p++ = '/';
        p = put_left(p, total);
        p = put_blanks(p, 5);
    }
    buffer_close(l->out, put_label(p, l, row->other));
}

static uint64_t total_of(const struct listing *l, uint32_t symbol)
{
    const struct compat_node *node = l->run->graph.node;
    return node[node[symbol].place].calls;
}

static void children_print(struct listing *l, uint32_t v)
{
    uint32_t n = compat_rows_children(&l->rows, l->run, v);
    for (uint32_t i = 0; i < n; i++) {
        const struct compat_row *row = &l->rows.rows[l->rows.list[i]];
        row_print(l, row, total_of(l, row->other));
    }
}

/* Index, percent and times of a function or a cycle. */
static char *put_primary(char *p, const struct listing *l, uint32_t number)
{
    const struct compat_node *node = &l->run->graph.node[number];
    char index[COMPAT_LABEL_INDEX];
    size_t n = compat_label_index(index, node->index, true);
    n = n < 6 ? n : 6; /* as in gprof, an index from 10000 on loses its bracket */
    memcpy(p, index, n);
    p = put_blanks(p + n, 6 - n + 1);
    p = buffer_put_fixed(p, 100 * (compat_node_share(node) + node->child_share) / l->print_time, 5, 1);
    *p++ = ' ';
    return put_times(p, l, compat_node_share(node), node->child_share);
}

static void function_print(struct listing *l, uint32_t v)
{
    const struct compat_node *node = &l->run->graph.node[v];
    uint32_t n = compat_rows_parents(&l->rows, l->run, v);
    uint64_t total = total_of(l, v);
    for (uint32_t i = 0; i < n; i++) {
        row_print(l, &l->rows.rows[l->rows.list[i]], total);
    }
    if (n == 0) {
        buffer_add_repeat(l->out, ' ', 6 + 1 + 5 + 1 + 7 + 1 + (size_t)l->child_width + 1 + 7 + 1 + 7 + 5);
        buffer_add_text(l->out, "<spontaneous>\n");
    }
    char *p = row_open(l, v);
    if (p == NULL) {
        return;
    }
    p = put_primary(p, l, v);
    if (node->calls + node->self_calls != 0) {
        p = put_calls(p, node->calls, node->self_calls);
    } else {
        p = put_blanks(p, 7 + 1 + 7);
    }
    *p++ = ' ';
    buffer_close(l->out, put_label(p, l, v));
    children_print(l, v);
}

static int member_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct compat_run *r = context;
    const struct compat_node *a = &r->graph.node[x], *b = &r->graph.node[y];
    double x_time = compat_node_share(a) + a->child_share, y_time = compat_node_share(b) + b->child_share;
    if (x_time < y_time || x_time > y_time) {
        return x_time > y_time ? -1 : 1;
    }
    uint64_t x_calls = a->calls + a->self_calls, y_calls = b->calls + b->self_calls;
    if (x_calls != y_calls) {
        return x_calls > y_calls ? -1 : 1;
    }
    return 0;
}

static void member_print(const struct listing *l, uint32_t v)
{
    const struct compat_node *node = &l->run->graph.node[v];
    char *p = row_open(l, v);
    if (p == NULL) {
        return;
    }
    p = put_blanks(p, 6 + 1 + 5 + 1);
    p = put_times(p, l, compat_node_share(node), node->child_share);
    p = put_calls(p, node->calls, node->self_calls);
    p = put_blanks(p, 5);
    buffer_close(l->out, put_label(p, l, v));
}

static void cycle_print(const struct listing *l, uint32_t number)
{
    const struct compat_run *r = l->run;
    const struct compat_node *node = &r->graph.node[number];
    uint32_t cycle = number - r->graph.symbols + 1, first = r->cycles.member_first[cycle - 1];
    uint32_t n = r->cycles.member_first[cycle] - first;
    char *p = buffer_open(l->out, ROW_MOST);
    if (p == NULL) {
        return;
    }
    p = put_primary(p, l, number);
    buffer_close(l->out, put_calls(p, node->calls, node->self_calls));
    buffer_add_format(l->out, " <cycle %" PRIu32 " as a whole> [%" PRIu32 "]\n", cycle, node->index);
    memcpy(l->members, r->cycles.members + first, n * sizeof *l->members);
    compat_sort(l->members, l->scratch, n, member_compare, r);
    for (uint32_t i = 0; i < n; i++) {
        member_print(l, l->members[i]);
    }
}

static void heading_print(struct listing *l)
{
    bool old = l->run->options.traditional, brief = l->run->options.brief;
    if (!old) {
        buffer_add_text(l->out, brief ? "\t\t\tCall graph\n\n" : "\t\t     Call graph (explanation follows)\n\n");
    }
    buffer_add_format(l->out, "\ngranularity: each sample hit covers %" PRId64 " byte(s)",
                      compat_run_granularity(l->run));
    if (l->print_time > 0.0) {
        buffer_add_format(l->out, " for %.2f%% of %.2f seconds\n\n", 100.0 / l->print_time, l->print_time / l->rate);
    } else {
        buffer_add_text(l->out, " no time propagated\n\n");
        l->print_time = 1.0;
    }
    if (old) {
        static const char *const outer[] = {"parents", "children"};
        for (unsigned i = 0; i < 2; i++) {
            buffer_add_format(l->out, "%6.6s %5.5s %7.7s %11.11s %7.7s/%-7.7s     %-8.8s\n", "", "", "", "", "called",
                              "total", outer[i]);
            if (i == 0) {
                buffer_add_format(l->out, "%-6.6s %5.5s %7.7s %11.11s %7.7s+%-7.7s %-8.8s\t%5.5s\n", "index", "%time",
                                  "self", "descendants", "called", "self", "name", "index");
            }
        }
        buffer_add_char(l->out, '\n');
    } else {
        buffer_add_text(l->out, "index % time    self  children    called     name\n");
    }
}

static enum profd_status listing_init(struct listing *l, struct arena *a, struct profd_error *e)
{
    const struct compat_run *r = l->run;
    l->members = ARENA_ARRAY(a, r->graph.symbols, uint32_t);
    l->scratch = ARENA_ARRAY(a, r->graph.symbols, uint32_t);
    if (l->members == NULL || l->scratch == NULL || compat_rows_init(&l->rows, r, a) != PROFD_OK) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a call graph of %u symbols", r->graph.symbols);
    }
    return compat_labels_build(r, a, &l->labels, e);
}

static bool node_listed(const struct compat_run *r, uint32_t number)
{
    const struct compat_node *node = &r->graph.node[number];
    bool idle = node->calls == 0 && node->self_calls == 0 && compat_node_share(node) == 0.0 && node->child_share == 0.0;
    if ((idle && !r->options.all_symbols) || !node->shown) {
        return false;
    }
    return !r->options.lines || (number < r->graph.symbols && (r->symbols.flags[number] & COMPAT_SYMBOL_FUNCTION) != 0);
}

enum profd_status compat_callgraph_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                         struct profd_error *e)
{
    const struct compat_graph *g = &r->graph;
    struct listing l = {.run = r,
                        .rate = compat_run_rate(r),
                        .print_time = g->print_time,
                        .child_width = r->options.traditional ? 11 : 7,
                        .out = out};
    TRY(listing_init(&l, a, e));
    heading_print(&l);
    for (uint32_t i = 0; i < g->nodes && !out->failed; i++) {
        uint32_t number = g->listing[i];
        if (!node_listed(r, number)) {
            continue;
        }
        if (number < g->symbols) {
            function_print(&l, number);
        } else {
            cycle_print(&l, number);
        }
        buffer_add_text(out, r->options.traditional ? "\n" : "");
        buffer_add_repeat(out, '-', 47);
        buffer_add_text(out, r->options.traditional ? "\n\n" : "\n");
    }
    if (!r->options.traditional && !r->options.brief) {
        compat_prose_graph(out);
    }
    return PROFD_OK;
}
