/* Tables for people: format=text in the layout that users of gprof know, and format=gprof, which is GNU gprof's own. */
#include <inttypes.h>
#include <string.h>

#include "compat/compat.h"
#include "proto/message.h"
#include "proto/noun.h"
#include "render/render_internal.h"

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

struct flat_layout {
    int cumulative, self, calls, per_call;
    int recursion; /* width of "+182104"; 0 if no function calls itself */
    const char *dimension, *mark;
    bool timed; /* seconds divided by calls are the time of a call */
};

/* Of a time that is part of the report's total. */
static int flat_digits(const struct report *r, double seconds)
{
    return amount_digits(report_samples(r, (double)r->ticks) * seconds / r->total);
}

/* The time of a call has a unit in each cell: calls of one program last from nanoseconds to hours. A call takes time,
 * also if no tick found it, so that 0 means that it is not known. What else is sampled has its own unit and may be 0.
 */
static void flat_add_per_call(const struct text_parts *t, const struct flat_layout *l, double all, double calls)
{
    const double each = all / calls;
    buffer_add_char(t->out, ' ');
    if (!t->in->report->in_seconds) {
        amount_add(t->out, each, l->per_call);
    } else if (each > 0) {
        amount_add_duration(t->out, each, flat_digits(t->in->report, all), l->per_call);
    } else {
        buffer_add_repeat(t->out, ' ', (size_t)l->per_call);
    }
}

/* Seconds that the calls of a function caused: of a class of addresses no more than its own (report.h). */
static double flat_caused(const struct report_function *f)
{
    return f->self + (report_kind_is_class(f->kind) ? 0 : f->children);
}

static void flat_add_line(const struct text_parts *t, const struct flat_layout *l, uint32_t position, double cumulative)
{
    const struct report_function *f = &t->in->report->functions[position];
    double total = t->in->report->total;
    struct buffer *out = t->out;
    amount_add(out, total > 0 ? 100 * f->self / total : 0, 6);
    buffer_add_char(out, ' ');
    amount_add(out, cumulative, l->cumulative);
    /* "~0.46" where it is an estimate: in its column and the blank before it. */
    size_t width = (size_t)l->self + 1, size = (size_t)amount_width(f->self) + (f->self_estimated ? 1 : 0);
    buffer_add_repeat(out, ' ', width > size ? width - size : 0);
    buffer_add_text(out, f->self_estimated ? "~" : "");
    amount_add(out, f->self, 0);
    if (f->calls > 0 || f->self_calls > 0) {
        double calls = (double)f->calls;
        buffer_add_char(out, ' ');
        /* "1+182104": calls from others, and calls of itself, as the graph has them. */
        buffer_add_u64(out, f->calls, l->calls);
        if (f->self_calls > 0) {
            buffer_add_char(out, '+');
            buffer_add_u64(out, f->self_calls, 1 - l->recursion);
        } else {
            buffer_add_repeat(out, ' ', (size_t)l->recursion);
        }
        if (l->mark[0] != '\0' || !l->timed || f->calls == 0) { /* time per sampled call would mean nothing */
            buffer_add_repeat(out, ' ', (size_t)(2 * l->per_call + 2));
        } else {
            flat_add_per_call(t, l, f->self, calls);
            flat_add_per_call(t, l, flat_caused(f), calls);
        }
    } else {
        buffer_add_repeat(out, ' ', (size_t)(l->calls + l->recursion + 2 * l->per_call + 3));
    }
    buffer_add(out, "  ", 2);
    buffer_add(out, t->names->text[position], t->names->length[position]);
    buffer_add_char(out, '\n');
}

static void text_add_flat(const struct text_parts *t)
{
    const struct report *r = t->in->report;
    const struct selection *s = t->flat_shown;
    uint32_t *list = ARENA_ARRAY(t->arena, (size_t)s->function_count + 1, uint32_t), n = 0;
    for (uint32_t i = 0; i < s->entry_count; i++) {
        if (!(s->entries[i] & REPORT_CYCLE)) {
            list[n++] = s->entries[i];
        }
    }

    struct flat_layout l = {.per_call = 9,
                            .mark = text_calls_mark(t->in),
                            .timed = !r->in_seconds || !t->in->coverage || coverage_without_ticks(t->in->coverage) == 0,
                            .dimension = name_make_safe(t->arena, r->dimension)};
    const int seconds = max_int(amount_width(r->total), (int)strlen(l.dimension));
    l.cumulative = max_int(9, seconds);
    l.self = max_int(8, seconds);
    l.calls = 8;
    for (uint32_t i = 0; i < n; i++) {
        const struct report_function *f = &r->functions[list[i]];
        const double caused = flat_caused(f), calls = (double)f->calls;
        l.calls = max_int(l.calls, amount_count_width(f->calls));
        if (f->self_calls > 0) { /* at least of "+self" */
            l.recursion = max_int(l.recursion, f->self_calls < 10000 ? 5 : 1 + amount_count_width(f->self_calls));
        }
        if (f->calls > 0 && !r->in_seconds) {
            l.per_call = max_int(l.per_call, amount_width(caused / calls));
        } else if (f->calls > 0 && caused > 0) {
            l.per_call = max_int(l.per_call, amount_duration_width(caused / calls, flat_digits(r, caused)));
        }
    }

    buffer_add_text(t->out, "\nFlat profile:\n\n");
    if (!(r->total > 0)) {
        buffer_add_format(t->out, " no %s accumulated\n\n", r->in_seconds ? "time" : l.dimension);
    }
    buffer_add_format(t->out, "%5s %*s %*s %*s %*s %*s\n", "%  ", l.cumulative + 1, "cumulative", l.self, "self  ",
                      l.calls + l.recursion, "", l.per_call, "self  ", l.per_call - 1,
                      "total"); /* each over its column, none ends in blanks */
    buffer_add_format(t->out, "%5s %*s  %*s %*s%s%-*s %*s %*s  name\n", "time", l.cumulative, l.dimension, l.self,
                      l.dimension, l.calls - 5, l.mark, "calls", l.recursion, l.recursion > 0 ? "+self" : "",
                      l.per_call, "per call", l.per_call, "per call");
    double cumulative = 0;
    for (uint32_t i = 0; i < n && !t->out->failed; i++) {
        cumulative += r->functions[list[i]].self;
        flat_add_line(t, &l, list[i], cumulative);
    }
    text_add_inside(t, 8 + l.cumulative, l.self);
}

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

static uint64_t max_count(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#define GAP 5      /* blanks between the numbers of calls and the name */
#define RATIO 4    /* width of the column beyond these blanks, with the blanks around it */
#define PER_CALL 9 /* width of the column, with the blank behind it */

static void skip_ratio(const struct graph *g)
{
    buffer_add_repeat(g->out, ' ', g->ratio ? RATIO : 0);
}

/* The cell of a row; arc NULL: an empty one. */
static void add_per_call(const struct graph *g, const struct report_arc *arc)
{
    const struct report_measured *m = arc && !arc->inside ? arc->measured : NULL;
    if (g->per_call && m && arc->calls > 0 && m->total > 0) {
        amount_add_duration(g->out, m->total / (double)arc->calls,
                            amount_digits(report_samples(g->report, (double)m->samples)), PER_CALL - 1);
        buffer_add_char(g->out, ' ');
    } else if (g->per_call) {
        buffer_add_repeat(g->out, ' ', PER_CALL);
    }
}

/* The mark before a measured time: '*' if the time by numbers of calls is outside its interval. */
static char differs_mark(const struct graph *g, const struct report_measured *m)
{
    return g->report->time_measured && m && m->differs ? '*' : ' ';
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
    if (arc->calls == 0 && arc->measured) { /* stacks alone show it */
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

    double of = 0; /* calls of the caller, those by itself included; of a cycle, those from outside */
    if (g->ratio && arc->calls > 0 && row->caller != REPORT_SPONTANEOUS) {
        of = row->caller & REPORT_CYCLE ? (double)g->report->cycles[row->caller & ~REPORT_CYCLE].calls_outside
                                        : g->calls[row->caller];
    }
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
        const uint32_t callee = callers ? entry : arc->other;
        /* Where no time flows, the report has no divisor: the calls of the callee, as a reader of the fraction expects
         * them. */
        if (of == 0 && !arc->inside && callee != REPORT_SPONTANEOUS) {
            const bool cycle = (callee & REPORT_CYCLE) != 0;
            const uint32_t number = cycle ? (callee & ~REPORT_CYCLE) + 1 : g->report->functions[callee].cycle;
            of = number != 0 ? g->report->cycles[number - 1].calls_outside : g->report->functions[callee].calls;
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

static void add_function(const struct graph *g, uint32_t position)
{
    const struct report_function *f = &g->report->functions[position];
    bool alone = f->spontaneous; /* it has no row for that */
    for (uint32_t i = 0; alone && i < f->caller_count; i++) {
        alone = f->callers[i].other != REPORT_SPONTANEOUS;
    }
    if (alone) {
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

static void text_add_graph(const struct text_parts *t)
{
    const struct report *r = t->in->report;
    struct graph g = {.report = r, .out = t->out, .rows = t->in->show.rows};
    g.per_call = r->time_measured && r->in_seconds && r->calls > 0 && (t->in->provenance->inexact & INEXACT_CALLS) == 0;
    g.ratio = r->calls > 0 && (t->in->provenance->inexact & INEXACT_SAMPLED) == 0;

    /* "NAME <cycle N> [INDEX]" and the end of the line, made once a function: a label stands in many rows, and the
     * functions themselves do not fit a cache. So are their calls. "(0)" for one without an entry, as gprof puts what
     * it does not list in round brackets. */
    size_t *start = ARENA_ARRAY(t->arena, (size_t)r->function_count + 1, size_t);
    double *calls = ARENA_ARRAY(t->arena, (size_t)r->function_count + 1, double);
    struct arena_deferred deferred;
    struct buffer *labels = &g.labels;
    uint64_t most = 0;
    buffer_init(labels, LABELS_BYTES_MAX);
    arena_defer(t->arena, &deferred, buffer_release, labels);
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        start[i] = labels->size;
        calls[i] = report_all_calls(f);
        most = max_count(most, max_count(f->calls, f->calls_inside));
        buffer_add(labels, t->names->text[i], t->names->length[i]);
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
    g.start = start;
    g.calls = calls;
    if (labels->failed) {
        arena_fail(t->arena);
    }
    for (uint32_t i = 0; i < r->cycle_count; i++) {
        most = max_count(most, max_count(r->cycles[i].calls_outside, r->cycles[i].calls_inside));
    }
    g.index = max_int(6, amount_count_width(r->order_count) + 3);
    g.self = g.children = max_int(7, amount_width(r->total));
    g.count = g.of = max_int(7, amount_count_width(most));

    /* Columns that gprof does not have have their titles in a line above: programs that read gprof's listing find its
     * header below. */
    buffer_add_text(g.out, t->in->show.view == RENDER_VIEW_GRAPH ? "\n" : "\f\n");
    buffer_add_text(g.out, "\t\t\tCall graph\n\n");
    if (g.ratio) {
        const int end = g.index + g.self + g.children + g.count + g.of + 10 + GAP + RATIO - 1;
        buffer_add_format(g.out, "%*s", end, "calls/call");
        buffer_add_format(g.out, g.per_call ? "%*s\n" : "\n", PER_CALL, "per call");
    }
    buffer_add_format(g.out, "index%*s%*s  %*s%*s%s", g.index + 1, "% time", g.self + 1, "self", g.children + 1,
                      "children", g.count - 3, text_calls_mark(t->in), "called");
    buffer_add_format(g.out, "%*s\n", g.of + 2 + (g.ratio ? GAP + RATIO - 1 + (g.per_call ? PER_CALL : 0) : 0), "name");

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

/* The functions of the line "Not called", cut by focus and limit as in JSON. */
static void add_not_called(const struct render_input *in, struct arena *a, struct buffer *out)
{
    struct report idle = *in->report;
    struct name_list names;
    uint32_t shown = 0, left = 0;
    idle.functions = idle.not_called;
    idle.function_count = idle.not_called_count;
    name_list_make(&idle, in->show.short_names, a, &names);
    if (in->report->counted_functions == 0) {
        buffer_add_text(out, "\nNot called: unknown, because no function counts its calls (gcc -pg)\n");
        return;
    }
    buffer_add_text(out, "\nNot called:\n\n");
    for (uint32_t i = 0; i < idle.function_count; i++) {
        if (in->show.focus && !render_has_focus(&idle.functions[i], in->show.focus)) {
            continue;
        }
        if (in->show.limit != 0 && shown == in->show.limit) {
            left++;
            continue;
        }
        shown++;
        buffer_add(out, names.text[i], names.length[i]);
        if (idle.build_count > 1) {
            buffer_add_text(out, "  in ");
            name_add_safe(out, name_find_base(idle.build_names[idle.functions[i].build]));
        }
        buffer_add_char(out, '\n');
    }
    if (left > 0) {
        buffer_add_format(out, "(%" PRIu32 " more)\n", left);
    }
}

enum profd_status text_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    struct selection shown, flat_shown;
    struct name_list names;
    struct render_input flat = *in; /* limit cuts the flat profile by its own order, and the graph by the index */
    flat.show.sort = in->show.sort == RENDER_SORT_INDEX ? RENDER_SORT_SELF : in->show.sort;
    selection_make(in, a, &shown);
    selection_make(&flat, a, &flat_shown);
    name_list_make(in->report, in->show.short_names, a, &names);
    struct text_parts t = {in, &shown, &flat_shown, &names, a, out};
    text_add_heading(&t);
    if (in->provenance->uploads == 0) {
        return PROFD_OK;
    }
    if (in->show.view == RENDER_VIEW_NOT_CALLED) {
        add_not_called(in, a, out);
        return PROFD_OK;
    }
    if (in->show.view != RENDER_VIEW_GRAPH) {
        text_add_flat(&t);
    }
    if (in->show.view != RENDER_VIEW_FLAT) {
        text_add_graph(&t);
    }
    return PROFD_OK;
}

/* format=gprof: what `gprof -b EXE gmon.out…` prints on the same counts. */
enum profd_status gprof_render(const struct render_input *in, struct arena *a, struct buffer *out,
                               struct profd_error *e)
{
    struct compat_options options = {
        .brief = true,
        .no_flat = in->show.view == RENDER_VIEW_GRAPH,
        .no_graph = in->show.view == RENDER_VIEW_FLAT,
    };
    return compat_print(&options, in->object, in->counts, a, out, e);
}
