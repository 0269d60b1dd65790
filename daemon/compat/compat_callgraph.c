#include "compat/compat_callgraph.h"

#include <inttypes.h>
#include <string.h>

#include "compat/compat_label.h"
#include "compat/compat_prose.h"
#include "compat/compat_sort.h"

enum rank { RANK_SELF, RANK_INSIDE, RANK_OTHER };

/* What an arc is sorted by. */
struct arc_key {
    double time;
    uint64_t calls;
    enum rank rank;
};

struct listing {
    const struct compat_run *run;
    struct compat_labels labels;
    struct arc_key *keys; /* by arc */
    uint32_t *list, *scratch; /* room for the longest list of arcs or members */
    double rate, print_time;
    int child_width; /* of the time of callees */
    struct buffer *out;
};

static void blanks(const struct listing *l, size_t n)
{
    buffer_add_repeat(l->out, ' ', n);
}

static void times(const struct listing *l, double self, double child)
{
    buffer_add_fixed(l->out, self / l->rate, 7, 2);
    buffer_add_char(l->out, ' ');
    buffer_add_fixed(l->out, child / l->rate, l->child_width, 2);
    buffer_add_char(l->out, ' ');
}

/* Calls from others, and "+" with the calls from itself where there are any. */
static void calls(const struct listing *l, uint64_t from_others, uint64_t from_itself)
{
    buffer_add_u64(l->out, from_others, 7);
    if (from_itself != 0) {
        buffer_add_char(l->out, '+');
        buffer_add_u64(l->out, from_itself, -7);
    } else {
        blanks(l, 8);
    }
}

/* Arcs inside a cycle and self arcs carry no time and stand apart. */
static enum rank arc_rank(const struct compat_run *r, uint32_t arc)
{
    uint32_t parent = r->arcs.parent[arc], child = r->arcs.child[arc], cycle = r->cycles.number[parent];
    if (parent == child)
        return RANK_SELF;
    return cycle != 0 && cycle == r->cycles.number[child] ? RANK_INSIDE : RANK_OTHER;
}

/* Least first: the self arc, arcs inside the cycle by calls, the others by time and calls. */
static int arc_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct arc_key *a = (const struct arc_key *)context + x, *b = (const struct arc_key *)context + y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->rank == RANK_OTHER && (a->time < b->time || a->time > b->time))
        return a->time < b->time ? -1 : 1;
    if (a->rank == RANK_SELF || a->calls == b->calls)
        return 0;
    return a->calls < b->calls ? -1 : 1;
}

static int arc_compare_down(const void *context, uint32_t x, uint32_t y)
{
    return arc_compare(context, y, x);
}

static void arc_print(const struct listing *l, uint32_t arc, uint32_t other)
{
    const struct compat_run *r = l->run;
    if (l->keys[arc].rank != RANK_OTHER) {
        blanks(l, 6 + 1 + 5 + 1 + 7 + 1 + (size_t)l->child_width + 1);
        buffer_add_u64(l->out, r->arcs.calls[arc], 7);
        blanks(l, 1 + 7 + 5);
    } else {
        uint32_t child = r->arcs.child[arc], cycle = r->cycles.number[child];
        blanks(l, 6 + 1 + 5 + 1);
        times(l, r->graph.arc_self[arc], r->graph.arc_child[arc]);
        buffer_add_u64(l->out, r->arcs.calls[arc], 7);
        buffer_add_char(l->out, '/');
        buffer_add_u64(l->out, r->graph.calls[cycle == 0 ? child : r->graph.symbols + cycle - 1], -7);
        blanks(l, 5);
    }
    compat_label_print(&l->labels, other, l->out);
    buffer_add_char(l->out, '\n');
}

/* Oldest arc first among equals, in both directions; the lists run newest first. */
static void arcs_print(const struct listing *l, const uint32_t *arcs, uint32_t n, const uint32_t *other,
                       compat_compare *compare)
{
    for (uint32_t i = 0; i < n; i++)
        l->list[i] = arcs[n - 1 - i];
    compat_sort(l->list, l->scratch, n, compare, l->keys);
    for (uint32_t i = 0; i < n; i++)
        arc_print(l, l->list[i], other[l->list[i]]);
}

static void parents_print(const struct listing *l, uint32_t v)
{
    const struct compat_arcs *arcs = &l->run->arcs;
    uint32_t first = arcs->parent_first[v], n = arcs->parent_first[v + 1] - first;
    if (n == 0) {
        blanks(l, 6 + 1 + 5 + 1 + 7 + 1 + (size_t)l->child_width + 1 + 7 + 1 + 7 + 5);
        buffer_add_text(l->out, "<spontaneous>\n");
        return;
    }
    arcs_print(l, arcs->parent_list + first, n, arcs->parent, arc_compare);
}

static void children_print(const struct listing *l, uint32_t v)
{
    const struct compat_arcs *arcs = &l->run->arcs;
    uint32_t first = arcs->child_first[v], n = arcs->child_first[v + 1] - first;
    arcs_print(l, arcs->child_list + first, n, arcs->child, arc_compare_down);
}

/* Index, percent and times, as functions and cycles have them. */
static void primary_print(const struct listing *l, uint32_t node)
{
    const struct compat_graph *g = &l->run->graph;
    char index[COMPAT_LABEL_INDEX];
    size_t n = compat_label_index(index, g->index[node], true);
    n = n < 6 ? n : 6; /* gprof cuts here: an index from 10000 loses its bracket */
    buffer_add(l->out, index, n);
    blanks(l, 6 - n + 1);
    buffer_add_fixed(l->out, 100 * (g->self_share[node] + g->child_share[node]) / l->print_time, 5, 1);
    buffer_add_char(l->out, ' ');
    times(l, g->self_share[node], g->child_share[node]);
}

static void function_print(const struct listing *l, uint32_t v)
{
    const struct compat_graph *g = &l->run->graph;
    parents_print(l, v);
    primary_print(l, v);
    if (g->calls[v] + g->self_calls[v] != 0)
        calls(l, g->calls[v], g->self_calls[v]);
    else
        blanks(l, 7 + 1 + 7);
    buffer_add_char(l->out, ' ');
    compat_label_print(&l->labels, v, l->out);
    buffer_add_char(l->out, '\n');
    children_print(l, v);
}

static int member_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct compat_run *r = context;
    const struct compat_graph *g = &r->graph;
    double x_time = g->self_share[x] + g->child_share[x], y_time = g->self_share[y] + g->child_share[y];
    if (x_time < y_time || x_time > y_time)
        return x_time > y_time ? -1 : 1;
    uint64_t x_calls = g->calls[x] + g->self_calls[x], y_calls = g->calls[y] + g->self_calls[y];
    if (x_calls != y_calls)
        return x_calls > y_calls ? -1 : 1;
    return 0;
}

static void cycle_print(const struct listing *l, uint32_t node)
{
    const struct compat_run *r = l->run;
    const struct compat_graph *g = &r->graph;
    uint32_t cycle = node - g->symbols + 1, first = r->cycles.member_first[cycle - 1];
    uint32_t n = r->cycles.member_first[cycle] - first;
    primary_print(l, node);
    calls(l, g->calls[node], g->self_calls[node]);
    buffer_add_format(l->out, " <cycle %" PRIu32 " as a whole> [%" PRIu32 "]\n", cycle, g->index[node]);
    memcpy(l->list, r->cycles.members + first, n * sizeof *l->list);
    compat_sort(l->list, l->scratch, n, member_compare, r);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = l->list[i];
        blanks(l, 6 + 1 + 5 + 1);
        times(l, g->self_share[v], g->child_share[v]);
        calls(l, g->calls[v], g->self_calls[v]);
        blanks(l, 5);
        compat_label_print(&l->labels, v, l->out);
        buffer_add_char(l->out, '\n');
    }
}

static void headings_print_old(struct buffer *out)
{
    static const char *const outer[] = {"parents", "children"};
    for (unsigned i = 0; i < 2; i++) {
        buffer_add_format(out, "%6.6s %5.5s %7.7s %11.11s %7.7s/%-7.7s     %-8.8s\n", "", "", "", "", "called", "total", outer[i]);
        if (i == 0)
            buffer_add_format(out, "%-6.6s %5.5s %7.7s %11.11s %7.7s+%-7.7s %-8.8s\t%5.5s\n", "index", "%time", "self",
                              "descendants", "called", "self", "name", "index");
    }
    buffer_add_char(out, '\n');
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
    if (old)
        headings_print_old(l->out);
    else
        buffer_add_text(l->out, "index % time    self  children    called     name\n");
}

static uint32_t longest_list(const struct compat_run *r)
{
    uint32_t longest = 0;
    for (uint32_t v = 0; v < r->graph.symbols; v++) {
        uint32_t parents = r->arcs.parent_first[v + 1] - r->arcs.parent_first[v];
        uint32_t children = r->arcs.child_first[v + 1] - r->arcs.child_first[v];
        longest = parents > longest ? parents : longest;
        longest = children > longest ? children : longest;
    }
    return r->graph.symbols > longest ? r->graph.symbols : longest;
}

static enum profd_status listing_init(struct listing *l, struct arena *a, struct profd_error *e)
{
    const struct compat_run *r = l->run;
    uint32_t longest = longest_list(r);
    l->list = ARENA_ARRAY(a, longest, uint32_t);
    l->scratch = ARENA_ARRAY(a, longest, uint32_t);
    l->keys = ARENA_ARRAY(a, (size_t)r->arcs.count + 1, struct arc_key);
    if (l->list == NULL || l->scratch == NULL || l->keys == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a call graph of %u symbols", r->graph.symbols);
    for (uint32_t i = 0; i < r->arcs.count; i++)
        l->keys[i] = (struct arc_key){r->graph.arc_self[i] + r->graph.arc_child[i], r->arcs.calls[i], arc_rank(r, i)};
    return compat_labels_build(r, a, &l->labels, e);
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
    enum profd_status status = listing_init(&l, a, e);
    if (status != PROFD_OK)
        return status;
    heading_print(&l);
    for (uint32_t i = 0; i < g->nodes; i++) {
        uint32_t node = g->listing[i];
        bool idle = g->calls[node] == 0 && g->self_calls[node] == 0 && g->self_share[node] == 0.0 && g->child_share[node] == 0.0;
        if ((idle && !r->options.all_symbols) || !g->shown[node])
            continue;
        if (r->options.lines && (node >= g->symbols || (r->symbols.flags[node] & COMPAT_SYMBOL_FUNCTION) == 0))
            continue;
        if (node < g->symbols)
            function_print(&l, node);
        else
            cycle_print(&l, node);
        buffer_add_text(out, r->options.traditional ? "\n" : "");
        buffer_add_repeat(out, '-', 47);
        buffer_add_text(out, r->options.traditional ? "\n\n" : "\n");
    }
    if (!r->options.traditional && !r->options.brief)
        compat_prose_graph(out);
    return PROFD_OK;
}
