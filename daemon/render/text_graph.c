#include <inttypes.h>
#include <stdbool.h>

#include "proto/message.h"
#include "render/amount.h"
#include "render/text_internal.h"
#include "proto/noun.h"

#define DASHES 47 /* as gprof and the readers of its listing have them */
#define LABELS_BYTES_MAX ((size_t)4 << 30)

struct graph {
    const struct report *report;
    struct buffer *out;
    int index, self, children, count, of; /* widths of the columns */
    uint32_t rows;                        /* shown of each list; 0: all */
    bool ratio;                           /* a column with the calls per call of the caller */
    bool per_call;                        /* a column with the measured time of a call from this caller */
    const double *calls;                  /* of each function, those by itself included */
    struct buffer labels;
    const size_t *start; /* function_count + 1 offsets into labels */
};

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static uint64_t max_count(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void graph_measure(struct graph *g)
{
    const struct report *r = g->report;
    uint64_t most = 0;
    for (uint32_t i = 0; i < r->function_count; i++) {
        most = max_count(most, max_count(r->functions[i].calls, r->functions[i].calls_inside));
    }
    for (uint32_t i = 0; i < r->cycle_count; i++) {
        most = max_count(most, max_count(r->cycles[i].calls_outside, r->cycles[i].calls_inside));
    }
    g->index = max_int(6, amount_count_width(r->order_count) + 3);
    g->self = g->children = max_int(7, amount_width(r->total));
    g->count = g->of = max_int(7, amount_count_width(most));
}

/* "NAME <cycle N> [INDEX]" and the end of the line, made once a function: a label stands in many rows, and the
 * functions themselves do not fit a cache. So are their calls. "(0)" for one without an entry, as gprof puts what it
 * does not list in round brackets. */
static void graph_make_labels(struct graph *g, const struct name_list *names, size_t *start, double *calls)
{
    const struct report *r = g->report;
    struct buffer *labels = &g->labels;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        start[i] = labels->size;
        calls[i] = report_all_calls(f);
        buffer_add(labels, names->text[i], names->length[i]);
        if (f->cycle != 0) {
            buffer_add(labels, " <cycle ", 8);
            buffer_add_u64(labels, f->cycle, 0);
            buffer_add_char(labels, '>');
        }
        buffer_add(labels, f->index == 0 ? " (" : " [", 2);
        buffer_add_u64(labels, f->index, 0);
        buffer_add(labels, f->index == 0 ? ")\n" : "]\n", 2);
    }
    start[r->function_count] = labels->size;
    g->start = start;
    g->calls = calls;
}

#define GAP 5      /* blanks between the numbers of calls and the name */
#define RATIO 4    /* width of the column beyond these blanks, with the blanks around it */
#define PER_CALL 9 /* width of the column, with the blank behind it */

/* Calls of a caller, those by itself included; of a cycle, those from outside. */
static double caller_calls(const struct graph *g, uint32_t caller)
{
    return caller == REPORT_SPONTANEOUS ? 0
           : caller & REPORT_CYCLE      ? (double)g->report->cycles[caller & ~REPORT_CYCLE].calls_outside
                                        : g->calls[caller];
}

static void skip_ratio(const struct graph *g)
{
    buffer_add_repeat(g->out, ' ', g->ratio ? RATIO : 0);
}

/* The cell of a row; arc NULL: an empty one. */
static void add_per_call(const struct graph *g, const struct report_arc *arc)
{
    const struct report_measured *m = arc != NULL && !arc->inside ? arc->measured : NULL;
    if (g->per_call && m != NULL && arc->calls > 0 && m->total > 0) {
        amount_add_duration(g->out, m->total / (double)arc->calls,
                            amount_digits(report_samples(g->report, (double)m->samples)), PER_CALL - 1);
        buffer_add_char(g->out, ' ');
    } else if (g->per_call) {
        buffer_add_repeat(g->out, ' ', PER_CALL);
    }
}

/* Before a measured time: is that by numbers of calls outside its interval? */
static char differs_mark(const struct graph *g, const struct report_measured *m)
{
    return g->report->time_measured && m != NULL && m->differs ? '*' : ' ';
}

static void add_label(const struct graph *g, uint32_t other)
{
    if (other & REPORT_CYCLE) {
        const struct report_cycle *c = &g->report->cycles[other & ~REPORT_CYCLE];
        buffer_add_format(g->out, "<cycle %u as a whole> [%u]\n", c->number, c->index);
        return;
    }
    buffer_add(g->out, g->labels.data + g->start[other], g->start[other + 1] - g->start[other]);
}

static void add_spontaneous(const struct graph *g)
{
    buffer_add_repeat(g->out, ' ', (size_t)(g->index + 6 + g->self + g->children + g->count + g->of + 9));
    skip_ratio(g);
    add_per_call(g, NULL);
    buffer_add_text(g->out, "<spontaneous>\n");
}

/* What a row says beside the arc. */
struct row {
    bool timed, counted;
    uint64_t of;     /* calls of the callee among which the time is shared */
    uint32_t caller; /* that makes these calls */
};

/* A row above or below an entry. */
static void add_row(const struct graph *g, const struct report_arc *arc, const struct row *row)
{
    struct buffer *out = g->out;
    if (arc->other == REPORT_SPONTANEOUS) {
        add_spontaneous(g);
        return;
    }
    if (row->timed) {
        buffer_add_repeat(out, ' ', (size_t)(g->index + 6));
        buffer_add_char(out, differs_mark(g, arc->measured));
        amount_add(out, arc->self, g->self);
        buffer_add_char(out, ' ');
        amount_add(out, arc->children, g->children);
    } else {
        buffer_add_repeat(out, ' ', (size_t)(g->index + g->self + g->children + 8));
    }
    buffer_add_char(out, arc->jumped ? '^' : ' ');
    if (arc->calls == 0 && arc->measured != NULL) { /* stacks alone show it */
        buffer_add_repeat(out, ' ', (size_t)(g->count + g->of + 6));
        skip_ratio(g);
        add_per_call(g, NULL);
        add_label(g, arc->other);
        return;
    }
    buffer_add_u64(out, arc->calls, g->count);
    if (row->counted) {
        buffer_add_char(out, '/');
        buffer_add_u64(out, row->of, -g->of);
    } else {
        buffer_add_repeat(out, ' ', (size_t)(g->of + 1));
    }
    /* The cell of a row, and the blanks before the name. */
    const double of = g->ratio && arc->calls > 0 ? caller_calls(g, row->caller) : 0;
    if (of > 0) {
        buffer_add_char(g->out, ' ');
        amount_add_ratio(g->out, (double)arc->calls / of, GAP + RATIO - 2);
        buffer_add_char(g->out, ' ');
    } else {
        buffer_add_repeat(g->out, ' ', GAP + (g->ratio ? RATIO : 0));
    }
    add_per_call(g, row->counted ? arc : NULL);
    add_label(g, arc->other);
}

/* Calls of the callee as a reader of the fraction expects them, where no time flows and the report has no divisor. */
static uint64_t callee_calls(const struct report *r, uint32_t callee)
{
    if (callee == REPORT_SPONTANEOUS) {
        return 0;
    }
    if (callee & REPORT_CYCLE) {
        return r->cycles[callee & ~REPORT_CYCLE].calls_outside;
    }
    const struct report_function *f = &r->functions[callee];
    return f->cycle != 0 ? r->cycles[f->cycle - 1].calls_outside : f->calls;
}

/* "(callers: 312 more, with 31000 calls and 0.02 seconds)" behind the columns of index and percent. */
static void add_left_out(const struct graph *g, const struct row_cut *cut, const char *what)
{
    if (cut->left > 0) {
        buffer_add_repeat(g->out, ' ', (size_t)(g->index + 9));
        buffer_add_format(g->out, "(%s: %" PRIu32 " more, with %" PRIu64 " %s and ", what, cut->left, cut->calls,
                          noun_for(cut->calls, "call", "calls"));
        amount_add(g->out, cut->seconds, 0);
        buffer_add_format(g->out, " %s)\n", g->report->in_seconds ? "seconds" : "units");
    }
}

/* The heaviest rows, and a line about the others; entry is their callee if they are callers, else their caller. */
static void add_rows(const struct graph *g, const struct report_arc *arcs, uint32_t count, uint32_t entry, bool callers,
                     const char *what)
{
    struct row_cut cut = row_cut_make(arcs, count, g->rows, callers);
    if (callers) {
        add_left_out(g, &cut, what);
    }
    for (uint32_t i = cut.first; i < cut.first + cut.count; i++) {
        const struct report_arc *arc = &arcs[i];
        uint64_t of = arc->of_calls;
        if (of == 0 && !arc->inside) {
            of = callee_calls(g->report, callers ? entry : arc->other);
        }
        add_row(g, arc, &(struct row){!arc->inside, !arc->inside, of, callers ? arc->other : entry});
    }
    if (!callers) {
        add_left_out(g, &cut, what);
    }
}

/* The line of the entry itself, up to its name. */
static void add_primary(const struct graph *g, uint32_t index, double percent, double self, double children,
                        const struct report_measured *measured)
{
    struct buffer *out = g->out;
    int used = amount_count_width(index) + 2;
    buffer_add_char(out, '[');
    buffer_add_u64(out, index, 0);
    buffer_add_char(out, ']');
    buffer_add_repeat(out, ' ', (size_t)(g->index > used ? g->index - used : 1));
    amount_add(out, percent, 6);
    buffer_add_char(out, differs_mark(g, measured));
    amount_add(out, self, g->self);
    buffer_add_char(out, ' ');
    amount_add(out, children, g->children);
    buffer_add_char(out, ' ');
}

static void add_called(const struct graph *g, uint64_t outside, uint64_t inside, bool plus)
{
    if (outside == 0 && inside == 0) {
        buffer_add_repeat(g->out, ' ', (size_t)(g->count + g->of + 2));
        return;
    }
    buffer_add_u64(g->out, outside, g->count);
    if (plus) {
        buffer_add_char(g->out, '+');
        buffer_add_u64(g->out, inside, -g->of);
        buffer_add_char(g->out, ' ');
    } else {
        buffer_add_repeat(g->out, ' ', (size_t)(g->of + 2));
    }
}

static bool has_spontaneous(const struct report_function *f)
{
    for (uint32_t i = 0; i < f->caller_count; i++) {
        if (f->callers[i].other == REPORT_SPONTANEOUS) {
            return true;
        }
    }
    return false;
}

static void add_function(const struct graph *g, uint32_t position)
{
    const struct report_function *f = &g->report->functions[position];
    if (f->spontaneous && !has_spontaneous(f)) {
        add_spontaneous(g);
    }
    add_rows(g, f->static_callers, f->static_caller_count, position, true, "callers in the machine code");
    add_rows(g, f->callers, f->caller_count, position, true, "callers");
    add_primary(g, f->index, f->percent, f->self, f->children, f->measured);
    add_called(g, f->calls_outside, f->calls_inside, f->cycle != 0 || f->calls_inside > 0);
    skip_ratio(g);
    add_per_call(g, NULL);
    add_label(g, position);
    add_rows(g, f->callees, f->callee_count, position, false, "callees");
    add_rows(g, f->static_callees, f->static_callee_count, position, false, "callees in the machine code");
}

/* gprof's entry for a cycle shows members only; this one has callers above and callees outside below, as gprof's manual
 * describes. */
static void add_cycle(const struct graph *g, uint32_t position)
{
    const struct report_cycle *c = &g->report->cycles[position];
    if (c->caller_count == 0) {
        add_spontaneous(g);
    }
    add_rows(g, c->callers, c->caller_count, REPORT_CYCLE | position, true, "callers");
    add_primary(g, c->index, c->percent, c->self, c->children, c->measured);
    add_called(g, c->calls_outside, c->calls_inside, true);
    skip_ratio(g);
    add_per_call(g, NULL);
    add_label(g, REPORT_CYCLE | position);
    struct row_cut cut = row_cut_make(c->members, c->member_count, g->rows, false);
    for (uint32_t i = 0; i < cut.count; i++) {
        add_row(g, &c->members[i], &(struct row){true, false, 0, REPORT_SPONTANEOUS});
    }
    add_left_out(g, &cut, "members");
    add_rows(g, c->callees, c->callee_count, REPORT_CYCLE | position, false, "callees");
}

/* Columns that gprof does not have have their titles in a line above: programs that read gprof's listing find its
 * header below. */
static void add_header(const struct graph *g, const struct render_input *in)
{
    const char *mark = text_calls_mark(in);
    const int beyond = g->ratio ? GAP + RATIO - 1 + (g->per_call ? PER_CALL : 0) : 0;
    buffer_add_text(g->out, in->show.view == RENDER_VIEW_GRAPH ? "\n" : "\f\n");
    buffer_add_text(g->out, "\t\t\tCall graph\n\n");
    if (g->ratio) {
        const int end = g->index + g->self + g->children + g->count + g->of + 10 + GAP + RATIO - 1;
        buffer_add_format(g->out, "%*s", end, "calls/call");
        buffer_add_format(g->out, g->per_call ? "%*s\n" : "\n", PER_CALL, "per call");
    }
    buffer_add_format(g->out, "index%*s%*s  %*s%*s%s", g->index + 1, "% time", g->self + 1, "self", g->children + 1,
                      "children", g->count - 3, mark, "called");
    buffer_add_format(g->out, "%*s\n", g->of + 2 + beyond, "name");
}

void text_add_graph(const struct text_parts *t)
{
    struct graph g = {.report = t->in->report, .out = t->out, .rows = t->in->show.rows};
    g.per_call = g.report->time_measured && g.report->in_seconds && g.report->calls > 0 &&
                 (t->in->provenance->inexact & INEXACT_CALLS) == 0;
    g.ratio = g.report->calls > 0 && (t->in->provenance->inexact & INEXACT_SAMPLED) == 0;
    size_t *start = ARENA_ARRAY(t->arena, (size_t)g.report->function_count + 1, size_t);
    double *calls = ARENA_ARRAY(t->arena, (size_t)g.report->function_count + 1, double);
    struct arena_deferred deferred;
    buffer_init(&g.labels, LABELS_BYTES_MAX);
    arena_defer(t->arena, &deferred, buffer_release, &g.labels);
    graph_make_labels(&g, t->names, start, calls);
    if (g.labels.failed) {
        arena_fail(t->arena);
    }
    graph_measure(&g);
    add_header(&g, t->in);
    for (uint32_t i = 0; i < t->shown->entry_count && !g.out->failed; i++) {
        uint32_t entry = t->shown->entries[i];
        if (entry & REPORT_CYCLE) {
            add_cycle(&g, entry & ~REPORT_CYCLE);
        } else {
            add_function(&g, entry);
        }
        buffer_add_repeat(g.out, '-', DASHES);
        buffer_add_char(g.out, '\n');
    }
    buffer_add_text(g.out, "\f\n"); /* readers of gprof's listing take this for the end of the graph */
    arena_undefer(t->arena, &deferred);
}

void text_add_graph_notes(const struct text_parts *t)
{
    const struct report *r = t->in->report;
    if (t->in->show.view != RENDER_VIEW_BOTH && t->in->show.view != RENDER_VIEW_GRAPH) {
        return;
    }
    if (r->jumped_functions > 0) {
        buffer_add_format(t->out,
                          "^calls    %" PRIu32
                          " %s also entered by jumps at the end of others, and may count as called by "
                          "the callers of these\n",
                          r->jumped_functions, noun_for(r->jumped_functions, "function is", "functions are"));
    }
    if (r->open_cycles > 0) {
        buffer_add_format(t->out,
                          "Cycles    are those of all stored time: the calls of this report alone do not close %" PRIu32
                          " of %" PRIu32 "\n",
                          r->open_cycles, r->cycle_count);
    }
}
