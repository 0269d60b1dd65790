#include "compat/compat_run.h"

#include <inttypes.h>
#include <string.h>

#include "compat/compat.h"
#include "core/buffer.h"
#include "proto/sort.h"

static void prose_flat(struct buffer *out)
{
    buffer_add_text(out, "\n"
                         "How to read the flat profile. A line stands for one function; the ones that took\n"
                         "most time come first, then those called most often, then by name.\n"
                         "\n"
                         " % time              share of all ticks that fell into the function itself\n"
                         " cumulative seconds  self seconds of this line and of all lines above\n"
                         " self seconds        time in the function itself, without what it called\n"
                         " calls               calls from other functions; blank where none was counted\n"
                         " self .../call       self time divided by calls, in the unit of the heading\n"
                         " total .../call      the same with the time of what it called\n"
                         " name                the function\n"
                         "\n"
                         "Calls were counted; times were sampled. A call's time is an average over all\n"
                         "callers, and a time of few ticks may be off by as much again.\n"
                         "(End of the flat profile's explanation.)\n");
}

static void prose_graph(struct buffer *out)
{
    buffer_add_text(out, "\n"
                         "How to read the call graph. Each entry, between two dashed lines, is about the\n"
                         "function of the line that begins with an index; entries with more time, their\n"
                         "own and that of what they called, come first.\n"
                         "\n"
                         " the entry's line    index; share of all time; own time; time of what it called;\n"
                         "                     calls from others, + calls by itself; name and index\n"
                         " lines above it      its callers: how much of its own time, and of that of what\n"
                         "                     it called, is charged to them; their calls / all calls\n"
                         " lines below it      what it called: the time that this charged to the entry;\n"
                         "                     calls from here / all calls\n"
                         " <spontaneous>       no caller was seen\n"
                         " <cycle N>           functions that call each other in a circle. They share one\n"
                         "                     entry \"as a whole\"; calls among them carry no time\n"
                         " [N], (N)            where the entry stands; round brackets: it is not printed\n"
                         "\n"
                         "Time is charged to callers in proportion to their calls, as if every call had\n"
                         "taken equally long.\n"
                         "(End of the call graph's explanation.)\n");
}

#define LABEL_INDEX 16
#define LABEL_EXTRA 32u /* " <cycle 4294967295> [4294967295]" */

/* Labels of all symbols. Built once, because most are printed many times. */
struct compat_labels {
    const char *text;
    size_t *first; /* label v: text[first[v] … first[v + 1]) */
};

static char *number_put(char *p, uint32_t value)
{
    char digits[10];
    unsigned n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
    } while ((value /= 10) != 0);
    while (n > 0) {
        *p++ = digits[--n];
    }
    return p;
}

static char *index_put(char *p, uint32_t index, bool shown)
{
    *p++ = shown ? '[' : '(';
    p = number_put(p, index);
    *p++ = shown ? ']' : ')';
    return p;
}

/* Writes "[3]" into text, or "(3)" for a node that is not shown. Returns its length. */
static size_t label_index(char text[LABEL_INDEX], uint32_t index, bool shown)
{
    char *end = index_put(text, index, shown);
    *end = '\0';
    return (size_t)(end - text);
}

/* Writes "f <cycle 1> [3]"; the index is in round brackets if the symbol has no entry. */
static char *label_put(char *p, const struct compat_run *r, uint32_t v)
{
    size_t n = strlen(r->symbols.name[v]);
    memcpy(p, r->symbols.name[v], n);
    p += n;
    if (r->cycles.number[v] != 0) {
        memcpy(p, " <cycle ", 8);
        p = number_put(p + 8, r->cycles.number[v]);
        *p++ = '>';
    }
    *p++ = ' ';
    return index_put(p, r->graph.node[v].index, r->graph.node[v].shown);
}

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

/* Room for the longest list. */
struct compat_rows {
    struct compat_row *rows; /* as the arcs stand */
    struct compat_row_key *keys, *scratch;
    uint32_t *list, *list_scratch;
};

#define RUN 16u /* up to this number, rows are sorted by insertion */

static bool key_less(const struct compat_row_key *x, const struct compat_row_key *y)
{
    return x->first < y->first || (x->first == y->first && x->second < y->second);
}

/* Stable sort, by insertion and then by merging. Returns the array that contains the sorted keys. */
static const struct compat_row_key *keys_sort(struct compat_row_key *keys, struct compat_row_key *scratch, size_t n)
{
    for (size_t low = 0; low < n; low += RUN) {
        const size_t high = n - low < RUN ? n : low + RUN;
        for (size_t i = low + 1; i < high; i++) {
            const struct compat_row_key key = keys[i];
            size_t j = i;
            for (; j > low && key_less(&key, &keys[j - 1]); j--) {
                keys[j] = keys[j - 1];
            }
            keys[j] = key;
        }
    }
    for (size_t run = RUN; run < n; run *= 2) {
        for (size_t low = 0; low < n; low += 2 * run) {
            size_t middle = n - low < run ? n : low + run, high = n - low < 2 * run ? n : low + 2 * run;
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

/* Lists the rows of v's callers: the self arc, then arcs inside the cycle by calls, then the others by time and calls,
 * least first; or its callees, in the reverse order. Equal rows are oldest first in both. Row i of the n is
 * rows[list[i]]. O(n log n). */
static uint32_t rows_list(struct compat_rows *r, const struct compat_run *run, uint32_t v, bool callers)
{
    const struct compat_arcs *arcs = &run->arcs;
    const uint32_t *firsts = callers ? arcs->parent_first : arcs->child_first, n = firsts[v + 1] - firsts[v];
    const uint32_t cycle = run->cycles.number[v];
    const uint64_t flip = callers ? 0 : UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = firsts[v] + i, other = callers ? arcs->parent[at] : arcs->child[at];
        struct compat_row *row = &r->rows[i];
        *row = (struct compat_row){.other = other,
                                   .calls = callers ? arcs->parent_calls[at] : arcs->calls[at],
                                   .rank = other == v                                         ? COMPAT_RANK_SELF
                                           : cycle != 0 && cycle == run->cycles.number[other] ? COMPAT_RANK_INSIDE
                                                                                              : COMPAT_RANK_OTHER};
        if (row->rank == COMPAT_RANK_OTHER) {
            row->flow = compat_graph_flow(&run->graph, callers ? other : v, callers ? v : other, row->calls);
        }
        /* The key ascends with the row; a list has at most one self arc. Times are not negative. */
        const uint64_t first = row->rank == COMPAT_RANK_OTHER ? sort_key_double(row->flow.self + row->flow.child + 0.0)
                                                              : (uint64_t)row->rank;
        r->keys[i] = (struct compat_row_key){first ^ flip, row->calls ^ flip, i, 0};
        r->list[i] = i;
    }
    if (!run->graph.orderly) {
        compat_sort(r->list, r->list_scratch, n, callers ? row_compare : row_compare_down, r->rows);
        return n;
    }
    const struct compat_row_key *sorted = keys_sort(r->keys, r->scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        r->list[i] = sorted[i].row;
    }
    return n;
}

/* Bytes of a row without its label: two times of any length, and fields of fixed width. */
#define ROW_MOST (2 * BUFFER_FIXED_MOST + 96)

struct graph_listing {
    const struct compat_run *run;
    struct compat_labels labels;
    struct compat_rows rows;
    uint32_t *members, *scratch;
    double rate, print_time;
    unsigned child_width; /* of the time of callees */
    struct buffer *out;
};

static size_t label_size(const struct graph_listing *l, uint32_t symbol)
{
    return l->labels.first[symbol + 1] - l->labels.first[symbol];
}

static char *put_blanks(char *p, size_t n)
{
    memset(p, ' ', n);
    return p + n;
}

static char *put_times(char *p, const struct graph_listing *l, double self, double child)
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

static char *put_label(char *p, const struct graph_listing *l, uint32_t symbol)
{
    const size_t n = label_size(l, symbol);
    memcpy(p, l->labels.text + l->labels.first[symbol], n);
    p[n] = '\n';
    return p + n + 1;
}

/* Reserves space for a row with the label of a symbol; NULL: none, and the buffer has failed. */
static char *row_open(const struct graph_listing *l, uint32_t symbol)
{
    return buffer_open(l->out, ROW_MOST + label_size(l, symbol));
}

/* total: all calls of the callee; the arc's calls are a part of them. */
static void row_print(const struct graph_listing *l, const struct compat_row *row, uint64_t total)
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

static uint64_t total_of(const struct graph_listing *l, uint32_t symbol)
{
    const struct compat_node *node = l->run->graph.node;
    return node[node[symbol].place].calls;
}

/* Index, percent and times of a function or a cycle. */
static char *put_primary(char *p, const struct graph_listing *l, uint32_t number)
{
    const struct compat_node *node = &l->run->graph.node[number];
    char index[LABEL_INDEX];
    size_t n = label_index(index, node->index, true);
    n = n < 6 ? n : 6; /* as in gprof, an index from 10000 on loses its bracket */
    memcpy(p, index, n);
    p = put_blanks(p + n, 6 - n + 1);
    p = buffer_put_fixed(p, 100 * (compat_node_share(node) + node->child_share) / l->print_time, 5, 1);
    *p++ = ' ';
    return put_times(p, l, compat_node_share(node), node->child_share);
}

static void function_print(struct graph_listing *l, uint32_t v)
{
    const struct compat_node *node = &l->run->graph.node[v];
    uint32_t n = rows_list(&l->rows, l->run, v, true);
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
    n = rows_list(&l->rows, l->run, v, false);
    for (uint32_t i = 0; i < n; i++) {
        const struct compat_row *row = &l->rows.rows[l->rows.list[i]];
        row_print(l, row, total_of(l, row->other));
    }
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

/* Prints the entry of a cycle as a whole: its members, most time first. */
static void cycle_print(const struct graph_listing *l, uint32_t number)
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
        const uint32_t v = l->members[i];
        node = &r->graph.node[v];
        p = row_open(l, v);
        if (p == NULL) {
            return;
        }
        p = put_blanks(p, 6 + 1 + 5 + 1);
        p = put_times(p, l, compat_node_share(node), node->child_share);
        p = put_calls(p, node->calls, node->self_calls);
        p = put_blanks(p, 5);
        buffer_close(l->out, put_label(p, l, v));
    }
}

static void heading_print(struct graph_listing *l)
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

/* Appends the call graph. Reaching the limit of the buffer is recorded in the buffer. O(symbols + arcs log arcs). */
static void callgraph_print(const struct compat_run *r, struct arena *a, struct buffer *out)
{
    const struct compat_graph *g = &r->graph;
    const bool old = r->options.traditional;
    struct graph_listing l = {.run = r,
                              .rate = compat_run_rate(r),
                              .print_time = g->print_time,
                              .child_width = old ? 11 : 7,
                              .members = ARENA_ARRAY(a, g->symbols, uint32_t),
                              .scratch = ARENA_ARRAY(a, g->symbols, uint32_t),
                              .out = out};
    size_t most = 0, bytes = 1;
    for (uint32_t v = 0; v < g->symbols; v++) {
        const uint32_t parents = r->arcs.parent_first[v + 1] - r->arcs.parent_first[v];
        const uint32_t children = r->arcs.child_first[v + 1] - r->arcs.child_first[v];
        most = parents > most ? parents : most;
        most = children > most ? children : most;
        bytes += strlen(r->symbols.name[v]) + LABEL_EXTRA;
    }
    l.rows = (struct compat_rows){ARENA_ARRAY(a, most, struct compat_row), ARENA_ARRAY(a, most, struct compat_row_key),
                                  ARENA_ARRAY(a, most, struct compat_row_key), ARENA_ARRAY(a, most, uint32_t),
                                  ARENA_ARRAY(a, most, uint32_t)};
    char *text = arena_take(a, bytes), *end = text;
    l.labels = (struct compat_labels){text, ARENA_ARRAY(a, (size_t)g->symbols + 1, size_t)};
    for (uint32_t v = 0; v < g->symbols; v++) {
        end = label_put(end, r, v);
        l.labels.first[v + 1] = (size_t)(end - text);
    }

    heading_print(&l);
    for (uint32_t i = 0; i < g->nodes && !out->failed; i++) {
        const uint32_t number = g->listing[i];
        const struct compat_node *node = &g->node[number];
        const bool idle =
            node->calls == 0 && node->self_calls == 0 && compat_node_share(node) == 0.0 && node->child_share == 0.0;
        if ((idle && !r->options.all_symbols) || !node->shown ||
            (r->options.lines && (number >= g->symbols || (r->symbols.flags[number] & COMPAT_SYMBOL_FUNCTION) == 0))) {
            continue;
        }
        if (number < g->symbols) {
            function_print(&l, number);
        } else {
            cycle_print(&l, number);
        }
        buffer_add_text(out, old ? "\n" : "");
        buffer_add_repeat(out, '-', 47);
        buffer_add_text(out, old ? "\n\n" : "\n");
    }
    if (!old && !r->options.brief) {
        prose_graph(out);
    }
}

/* -C: how often each function was called, by source file and line. */

/* Compares by file and line if both symbols have them, otherwise by address, as gprof does. This is no order: three
 * symbols can be each before the next. */
static int place_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct compat_symbols *s = &((const struct compat_run *)context)->symbols;
    if (s->file[x][0] != '\0' && s->file[y][0] != '\0') {
        int order = strcmp(s->file[x], s->file[y]);
        if (order != 0) {
            return order;
        }
        if (s->line[x] != s->line[y]) {
            return s->line[x] < s->line[y] ? -1 : 1;
        }
    }
    return s->address[x] < s->address[y] ? -1 : s->address[x] > s->address[y];
}

/* Appends a line for each function that was called; with -z, for every function. O(symbols log symbols). */
static void executions_print(const struct compat_run *r, struct arena *a, struct buffer *out)
{
    const struct compat_symbols *s = &r->symbols;
    uint32_t *list = ARENA_ARRAY(a, s->count, uint32_t), *scratch = ARENA_ARRAY(a, s->count, uint32_t);
    uint32_t n = 0;
    for (uint32_t v = 0; v < s->count; v++) {
        if (compat_filter_on(&r->filter, COMPAT_EXEC, v)) {
            list[n++] = v;
        }
    }
    compat_sort(list, scratch, n, place_compare, r);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = list[i];
        if (r->graph.node[v].calls == 0 && !r->options.all_symbols) {
            continue;
        }
        buffer_add_text(out, s->file[v][0] != '\0' ? s->file[v] : "<unknown>");
        buffer_add_char(out, ':');
        buffer_add_u64(out, s->line[v], 0);
        buffer_add_text(out, ": (");
        buffer_add_text(out, s->raw[v]);
        buffer_add_format(out, ":0x%" PRIx64 ") %" PRIu64 " executions\n", s->address[v], r->graph.node[v].calls);
    }
}

/* The index by function name. */

/* Writes "<cycle 1>" and a NUL; returns its length. */
static size_t cycle_name(char text[24], uint32_t number)
{
    memcpy(text, "<cycle ", 7);
    char *end = buffer_put_u64(text + 7, number, 0);
    memcpy(end, ">", 2);
    return (size_t)(end + 1 - text);
}

/* As in gprof, the width of a column does not include the blanks around the index. */
static size_t item_print(const struct compat_run *r, uint32_t node, size_t column, size_t start, struct buffer *out)
{
    char text[LABEL_INDEX];
    if (r->options.traditional) {
        /* Two fields of fixed width; longer names are cut. */
        char index[LABEL_INDEX];
        (void)label_index(index, r->graph.node[node].index, r->graph.node[node].shown);
        if (node >= r->graph.symbols) {
            char cycle[24];
            (void)cycle_name(cycle, node - r->graph.symbols + 1);
            buffer_add_format(out, "%6.6s %-19.19s", index, cycle);
        } else {
            buffer_add_format(out, "%6.6s %-19.19s", index, r->symbols.raw[node]);
        }
        return 0;
    }
    column += label_index(text, r->graph.node[node].index, r->graph.node[node].shown);
    for (; column < start + 5; column++) {
        buffer_add_char(out, ' ');
    }
    buffer_add_char(out, ' ');
    buffer_add_text(out, text);
    buffer_add_char(out, ' ');
    if (node >= r->graph.symbols) {
        char cycle[24];
        size_t n = cycle_name(cycle, node - r->graph.symbols + 1);
        buffer_add(out, cycle, n);
        return column + n;
    }
    buffer_add_text(out, r->symbols.name[node]);
    column += strlen(r->symbols.name[node]);
    const char *file = r->symbols.file[node];
    if ((r->symbols.flags[node] & COMPAT_SYMBOL_STATIC) == 0 || file[0] == '\0' || r->options.lines) {
        return column;
    }
    if (!r->options.full_paths) {
        file = compat_symbols_file(file);
    }
    buffer_add_text(out, " (");
    buffer_add_text(out, file);
    buffer_add_char(out, ')');
    return column + strlen(file) + 3;
}

/* Appends the index in three columns, without the form feed before it. Reaching the limit of the buffer is recorded in
 * the buffer. O(symbols log symbols). */
static void index_print(const struct compat_run *r, struct arena *a, struct buffer *out)
{
    const struct compat_graph *g = &r->graph;
    uint32_t *list = ARENA_ARRAY(a, g->nodes, uint32_t);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->symbols; i++) {
        uint32_t v = g->by_name[i];
        if (r->options.all_symbols || g->node[v].calls != 0 || g->node[v].time != 0.0) {
            list[n++] = v;
        }
    }
    for (uint32_t node = g->symbols; node < g->nodes; node++) {
        list[n++] = node;
    }

    buffer_add_text(out, "Index by function name\n\n");
    size_t width = ((r->options.width == 0 ? 80u : (size_t)r->options.width) - 1) / 3;
    uint32_t rows = n / 3 + (n % 3 != 0);
    for (uint32_t row = 0; row < rows; row++) {
        size_t column = 0, start = 0;
        for (uint64_t i = row; i < n; i += rows, start += width) {
            column = item_print(r, list[i], column, start, out);
        }
        buffer_add_char(out, '\n');
    }
}

/* The flat profile. */

/* Bytes of a line without its name. */
#define LINE_MOST (5 * BUFFER_FIXED_MOST + 64)

struct unit {
    char prefix;
    double scale;
};

static const struct unit units[] = {{'T', 1e-12}, {'G', 1e-9}, {'M', 1e-6}, {'K', 1e-3}, {' ', 1},   {'m', 1e3},
                                    {'u', 1e6},   {'n', 1e9},  {'p', 1e12}, {'f', 1e15}, {'a', 1e18}};

/* The unit in which the most expensive call has one to three digits before the point; the first unit if there is none.
 */
static const struct unit *unit_choose(const struct compat_run *r)
{
    const struct compat_graph *g = &r->graph;
    if (r->options.traditional) {
        return &units[5];
    }
    double top = 0.0;
    for (uint32_t v = 0; v < g->symbols; v++) {
        const struct compat_node *node = &g->node[v];
        if (node->calls == 0) {
            continue;
        }
        double time = (node->time + node->child) / (double)node->calls;
        top = time > top ? time : top;
    }
    if (top <= 0.0) {
        return &units[0];
    }
    top /= compat_run_rate(r);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].scale * top >= 1.0 && units[i].scale * top < 1000.0) {
            return &units[i];
        }
    }
    return &units[0];
}

static void line_print(const struct compat_run *r, uint32_t v, const struct unit *u, double total, double sum,
                       struct buffer *out)
{
    const struct compat_node *node = &r->graph.node[v];
    double rate = compat_run_rate(r), time = node->time;
    bool old = r->options.traditional;
    char *p = buffer_open(out, LINE_MOST);
    if (p == NULL) {
        return;
    }
    p = buffer_put_fixed(p, total > 0.0 ? 100 * time / total : 0.0, old ? 5 : 6, old ? 1 : 2);
    *p++ = ' ';
    p = buffer_put_fixed(p, sum / rate, old ? 10 : 9, 2);
    *p++ = ' ';
    p = buffer_put_fixed(p, time / rate, 8, 2);
    *p++ = ' ';
    if (node->calls != 0) {
        double calls = (double)node->calls;
        p = buffer_put_u64(p, node->calls, 8);
        *p++ = ' ';
        p = buffer_put_fixed(p, u->scale * time / rate / calls, 8, 2);
        *p++ = ' ';
        p = buffer_put_fixed(p, u->scale * (time + node->child) / rate / calls, 8, 2);
    } else {
        memset(p, ' ', 8 + 1 + 8 + 1 + 8);
        p += 8 + 1 + 8 + 1 + 8;
    }
    *p++ = ' ';
    *p++ = ' ';
    buffer_close(out, p);
    p = old && r->has_arcs ? buffer_open(out, strlen(r->symbols.name[v]) + LABEL_EXTRA) : NULL;
    if (p != NULL) {
        buffer_close(out, label_put(p, r, v));
    } else {
        buffer_add_text(out, r->symbols.name[v]);
    }
    buffer_add_char(out, '\n');
}

/* Appends the flat profile. Reaching the limit of the buffer is recorded in the buffer. O(symbols log symbols). */
static void flat_print(const struct compat_run *r, struct arena *a, struct buffer *out)
{
    const struct compat_graph *g = &r->graph;
    uint32_t *list = ARENA_ARRAY(a, g->symbols, uint32_t), n = 0;
    for (uint32_t v = 0; v < g->symbols; v++) {
        if ((r->options.all_symbols || g->node[v].calls != 0 || g->node[v].time != 0.0) &&
            compat_filter_on(&r->filter, COMPAT_FLAT, v)) {
            list[n++] = v;
        }
    }
    compat_order_flat(g, &r->symbols, list, n, a);

    const bool old = r->options.traditional, prose = !r->options.brief;
    const char *dimension = r->hist.dimension;
    double total = r->hist.total, rate = compat_run_rate(r), sum = 0.0;
    if (old && prose) {
        buffer_add_text(out, "\n\n\nflat profile:\n");
        prose_flat(out);
    }
    if (old) {
        buffer_add_format(out, "\ngranularity: each sample hit covers %" PRId64 " byte(s)", compat_run_granularity(r));
    } else {
        buffer_add_format(out, "Flat profile:\n\nEach sample counts as %g %s.\n", 1.0 / rate, dimension);
    }
    if (total <= 0.0) {
        buffer_add_text(out, " no time accumulated\n\n");
        total = 1.0;
    } else if (old) {
        buffer_add_format(out, " for %.2f%% of %.2f %s\n\n", 100.0 / total, total / rate, dimension);
    }

    const struct unit *u = unit_choose(r);
    char unit[8] = {u->prefix, r->hist.abbreviation, '/', 'c', 'a', 'l', 'l', '\0'};
    buffer_add_format(out, "%5.5s %10.10s %8.8s %8.8s %8.8s %8.8s  %-8.8s\n", "%  ", "cumulative", "self  ", "",
                      "self  ", "total ", "");
    buffer_add_format(out, "%5.5s %9.9s  %8.8s %8.8s %8.8s %8.8s  %-8.8s\n", "time", dimension, dimension, "calls",
                      unit, unit, "name");
    for (uint32_t i = 0; i < n && !out->failed; i++) {
        sum += g->node[list[i]].time;
        line_print(r, list[i], u, total, sum, out);
    }
    if (!old && prose) {
        prose_flat(out);
    }
}

enum profd_status compat_run_open(struct compat_run *r, const struct compat_options *options,
                                  const struct object *object, struct arena *a, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct compat_run run = {.options = *options, .object = object};
    TRY(compat_symbols_choose(object, options, a, &run.symbols, e));
    compat_filter_init(options->specs, options->spec_count, &run.symbols, a, &run.filter);
    compat_symbols_name(&run.symbols, options, a);
    *r = run;
    return PROFD_OK;
}

enum profd_status compat_run_count(struct compat_run *r, const struct counts *counts, struct arena *a,
                                   struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct compat_calls calls = {0};
    r->has_histogram = r->has_histogram || counts->histogram_count > 0;
    r->has_arcs = r->has_arcs || counts->arc_count > 0;
    TRY(compat_hist_assign(counts, &r->symbols, &r->filter, a, &r->hist, e));
    if (r->options.static_calls && r->has_arcs) {
        calls = compat_calls_find(r->object, &r->symbols, &r->hist, a);
    }
    TRY(compat_arcs_tally(counts, &r->symbols, &r->filter, &calls, a, &r->arcs, e));
    r->cycles = compat_cycles_find(&r->arcs, r->symbols.count, a);
    compat_graph_build(&r->symbols, &r->filter, &r->hist, &r->arcs, &r->cycles, a, &r->graph);
    return PROFD_OK;
}

typedef void print_part(const struct compat_run *r, struct arena *a, struct buffer *out);

/* Prints everything that was asked for, page after page. NO_MEMORY or OK. */
static enum profd_status parts_print(const struct compat_run *r, unsigned styles, struct arena *a, struct buffer *out,
                                     struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    const bool old = r->options.traditional;
    const struct {
        unsigned style;
        print_part *print;
    } parts[] = {{old ? COMPAT_STYLE_GRAPH : 0, callgraph_print},
                 {COMPAT_STYLE_FLAT, flat_print},
                 {old ? 0 : COMPAT_STYLE_GRAPH, callgraph_print},
                 {COMPAT_STYLE_GRAPH, index_print},
                 {COMPAT_STYLE_COUNTS, executions_print}};
    bool follows = r->options.follows;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
        if ((styles & parts[i].style) == 0) {
            continue;
        }
        if (old && !r->options.brief && parts[i].print == callgraph_print) {
            buffer_add_text(out, "\n\n\ncall graph profile:\n");
            prose_graph(out);
        }
        if (follows) {
            buffer_add_text(out, "\f\n");
        }
        follows = true;
        parts[i].print(r, a, out);
    }
    return PROFD_OK;
}

enum profd_status compat_run_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                   struct profd_error *e)
{
    const struct compat_options *o = &r->options;
    unsigned styles = o->styles;
    if (styles == 0) { /* the counts decide */
        styles = (r->has_histogram || r->has_arcs ? 0 : COMPAT_STYLE_COUNTS) |
                 (r->has_histogram ? COMPAT_STYLE_FLAT : 0) | (r->has_arcs ? COMPAT_STYLE_GRAPH : 0);
        styles &= ~((o->no_flat ? COMPAT_STYLE_FLAT : 0) | (o->no_graph ? COMPAT_STYLE_GRAPH : 0) |
                    (o->no_counts ? COMPAT_STYLE_COUNTS : 0));
    }
    FAIL_IF((styles & COMPAT_STYLE_FLAT) != 0 && !r->has_histogram, e, PROFD_REFUSED,
            "gmon.out file is missing histogram");
    FAIL_IF((styles & COMPAT_STYLE_GRAPH) != 0 && !r->has_arcs, e, PROFD_REFUSED,
            "gmon.out file is missing call-graph data");
    const size_t before = out->size;
    const uint64_t drained = out->drained;
    enum profd_status status = parts_print(r, styles, a, out, e);
    if (!status && out->failed && out->drain == NULL) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "the listing does not fit into %zu bytes", out->limit);
    }
    if (status && out->drained == drained) {
        out->size = before;
    }
    return status;
}

enum profd_status compat_print(const struct compat_options *options, const struct object *object,
                               const struct counts *counts, struct arena *a, struct buffer *out, struct profd_error *e)
{
    struct compat_run r;
    TRY(compat_run_open(&r, options, object, a, e));
    TRY(compat_run_count(&r, counts, a, e));
    return compat_run_print(&r, a, out, e);
}
