#include "core/report.h"

#include <string.h>

#include "core/report_graph.h"
#include "proto/sum.h"
#include "proto/sort.h"

static int names_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct object *o = context;
    return strcmp(object_name(o, o->symbols[x].name), object_name(o, o->symbols[y].name));
}

/* The other names at the owner's address, each once. */
static void names_aliases(struct arena *a, const struct symtab *t, const struct symtab_owner *owner,
                          struct report_function *f)
{
    if (owner->count <= 1) {
        return;
    }
    uint32_t *symbols = ARENA_ARRAY(a, (size_t)owner->count * 2, uint32_t);
    const char **aliases = ARENA_ARRAY(a, owner->count, const char *);
    memcpy(symbols, t->sorted + owner->first, owner->count * sizeof *symbols);
    sort_merge(symbols, symbols + owner->count, owner->count, names_compare, t->object);
    for (uint32_t i = 0; i < owner->count; i++) {
        const char *name = object_name(t->object, t->object->symbols[symbols[i]].name);
        bool known =
            strcmp(name, f->raw) == 0 || (f->alias_count > 0 && strcmp(name, aliases[f->alias_count - 1]) == 0);
        if (!known) {
            aliases[f->alias_count++] = name;
        }
    }
    f->aliases = aliases;
}

_Static_assert((int)REPORT_FUNCTION == SYMTAB_FUNCTION && (int)REPORT_PLT == SYMTAB_PLT &&
                   (int)REPORT_GAP == SYMTAB_GAP && (int)REPORT_ADDRESS == SYMTAB_ADDRESS &&
                   (int)REPORT_UNKNOWN == SYMTAB_UNKNOWN,
               "an owner's kind is that of its function");

/* Name of an owner that is not a symbol. */
static const char *names_invent(struct arena *a, const struct symtab *t, const struct symtab_owner *owner)
{
    switch ((enum symtab_kind)owner->kind) {
    case SYMTAB_PLT:
        return "[plt]";
    case SYMTAB_GAP:
        return "[gap]";
    case SYMTAB_UNKNOWN:
        return t->build_id == NULL ? "[outside]" : arena_format(a, "[unknown %s]", t->build_id);
    case SYMTAB_ADDRESS:
    case SYMTAB_FUNCTION:
        break;
    }
    return arena_format(a, "0x%llx", (unsigned long long)owner->address);
}

void report_names_describe(struct arena *a, const struct report_builds *b, uint32_t owner, struct report_function *f)
{
    f->file = "";
    if (owner == b->first[b->count + 1]) { /* "[incomplete]" */
        f->kind = REPORT_UNKNOWN;
        f->build = b->count;
        f->address = COUNTS_FRAME_INCOMPLETE;
        f->name = f->raw = "[incomplete]";
        return;
    }
    uint32_t build;
    const struct symtab_owner *o = report_builds_owner(b, owner, &build);
    const struct symtab *t = b->tables[build];
    f->kind = (enum report_kind)o->kind;
    f->build = build;
    f->address = o->address;
    f->size = o->size;
    if (o->symbol == SYMTAB_NONE) {
        f->name = f->raw = names_invent(a, t, o);
        return;
    }
    const struct object_symbol *s = &t->object->symbols[o->symbol];
    f->name = object_name(t->object, s->demangled);
    f->raw = object_name(t->object, s->name);
    f->file = object_name(t->object, s->file);
    f->line = s->line;
    f->code = s->code;
    names_aliases(a, t, o, f);
}

static double percent_of(double total, double seconds)
{
    return total > 0 ? 100 * seconds / total : 0;
}

/* A copy of rows with measured times; those without any keep theirs. */
static void shown_rows(struct arena *a, const struct report_arc **rows, uint32_t n)
{
    struct report_arc *copy = ARENA_ARRAY(a, n, struct report_arc);
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = (*rows)[i];
        if (copy[i].measured != NULL) {
            copy[i].self = copy[i].measured->self;
            copy[i].children = copy[i].measured->total - copy[i].measured->self;
        }
    }
    *rows = copy;
}

/* Sets shown: a copy if time_measured, else the report itself. In a copy self of a function stays what its samples
 * say; children is the measured time of what stands below it in stacks. O(report). */
static void report_shown_make(struct arena *a, struct report *r)
{
    r->shown = r;
    if (!r->time_measured) {
        return;
    }
    struct report *copy = ARENA_NEW(a, struct report);
    struct report_function *functions = ARENA_ARRAY(a, r->function_count, struct report_function);
    struct report_cycle *cycles = ARENA_ARRAY(a, r->cycle_count, struct report_cycle);
    memcpy(functions, r->functions, r->function_count * sizeof *functions);
    if (r->cycle_count > 0) {
        memcpy(cycles, r->cycles, r->cycle_count * sizeof *cycles);
    }
    *copy = *r;
    copy->functions = functions;
    copy->cycles = cycles;
    copy->shown = copy;
    r->shown = copy;
    for (uint32_t i = 0; i < copy->function_count; i++) {
        struct report_function *f = &functions[i];
        f->children = f->measured->total - f->measured->self;
        f->percent = percent_of(copy->total, f->self + f->children);
        shown_rows(a, &f->callers, f->caller_count);
        shown_rows(a, &f->callees, f->callee_count);
    }
    for (uint32_t i = 0; i < copy->cycle_count; i++) {
        struct report_cycle *c = &cycles[i];
        c->children = c->measured->total - c->measured->self;
        c->percent = percent_of(copy->total, c->self + c->children);
        struct report_arc *members = ARENA_ARRAY(a, c->member_count, struct report_arc);
        shown_rows(a, &c->callers, c->caller_count);
        shown_rows(a, &c->callees, c->callee_count);
        for (uint32_t k = 0; k < c->member_count; k++) {
            members[k] = c->members[k];
            members[k].self = functions[members[k].other].self;
            members[k].children = functions[members[k].other].children;
        }
        c->members = members;
    }
}

/* gprof's order of entries: time with descendants, largest first; of equals cycles, then names without a leading
 * underscore, then the most called, then strcmp of raw names, then (build, address). */

struct order_work {
    const struct report_function *functions;
    const struct report_cycle *cycles;
    bool measured;
};

static double order_time(const struct order_work *w, uint32_t item)
{
    if ((item & REPORT_CYCLE) != 0) {
        const struct report_cycle *c = &w->cycles[item & ~REPORT_CYCLE];
        return w->measured ? c->measured->total : c->self + c->children;
    }
    const struct report_function *f = &w->functions[item];
    return w->measured ? f->measured->total : f->self + f->children;
}

/* Keys that ascend in the wanted order, least important first. */
static uint64_t order_key(const void *context, uint32_t item, int key)
{
    const struct order_work *w = context;
    bool cycle = (item & REPORT_CYCLE) != 0;
    switch (key) {
    case 0:
        return cycle ? 0 : ~w->functions[item].calls;
    case 1:
        return cycle ? 0 : w->functions[item].raw[0] == '_' ? 2 : 1;
    default:
        return ~sort_key_double(order_time(w, item));
    }
}

/* Among equal keys: items are in order of position, and cycles of number. */
static int order_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct order_work *w = context;
    if (((x | y) & REPORT_CYCLE) != 0) {
        return 0;
    }
    return strcmp(w->functions[x].raw, w->functions[y].raw);
}

static bool order_same(const struct order_work *w, uint32_t x, uint32_t y)
{
    for (int key = 0; key < 3; key++) {
        if (order_key(w, x, key) != order_key(w, y, key)) {
            return false;
        }
    }
    return true;
}

static void order_sort(struct arena *a, const struct order_work *w, uint32_t *items, uint32_t n)
{
    struct sort_item *sorted = ARENA_ARRAY(a, (size_t)n * 2, struct sort_item);
    uint32_t *scratch = ARENA_ARRAY(a, n, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        sorted[i].value = items[i];
    }
    sort_keys(sorted, sorted + n, n, 3, order_key, w);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = sorted[i].value;
    }
    for (uint32_t low = 0, high; low < n; low = high) {
        for (high = low + 1; high < n && order_same(w, items[low], items[high]); high++) {
            continue;
        }
        sort_merge(items + low, scratch, high - low, order_compare, w);
    }
}

/* Puts entries and cycles in order and writes their indexes (1 …) into functions and cycles. O(n log n). */
static void report_order_entries(struct arena *a, const struct report_graph *g, struct report_function *functions,
                                 struct report_cycle *cycles, const uint32_t **order, uint32_t *count)
{
    struct order_work w = {functions, cycles, g->time_measured};
    uint32_t *items = ARENA_ARRAY(a, (size_t)g->function_count + g->cycle_count, uint32_t), n = 0;
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        items[n++] = REPORT_CYCLE | i;
    }
    for (uint32_t i = 0; i < g->function_count; i++) {
        if (g->entry[g->node_of[i]]) {
            items[n++] = i;
        }
    }
    order_sort(a, &w, items, n);
    for (uint32_t i = 0; i < n; i++) {
        if ((items[i] & REPORT_CYCLE) != 0) {
            cycles[items[i] & ~REPORT_CYCLE].index = i + 1;
        } else {
            functions[items[i]].index = i + 1;
        }
    }
    *order = items;
    *count = n;
}

#define ESTIMATED 0.1 /* of a self time: what may be wrong without a mark */

/* The builds in the report's order, with one more entry for what lies outside them. */
static void report_list_builds(struct arena *a, const struct report_request *request, const struct report_graph *g,
                               struct report *r)
{
    uint32_t n = g->builds.count;
    const char **ids = ARENA_ARRAY(a, (size_t)n + 1, const char *),
               **names = ARENA_ARRAY(a, (size_t)n + 1, const char *);
    bool *shown = ARENA_ARRAY(a, (size_t)n + 1, bool);
    for (uint32_t i = 0; i < n; i++) {
        const char *name = request->names == NULL ? NULL : request->names[g->builds.origin[i]];
        ids[i] = request->profile->builds[g->builds.origin[i]];
        names[i] = name == NULL ? "" : name;
    }
    ids[n] = names[n] = "";
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (r->functions[i].index != 0) {
            shown[r->functions[i].build] = true;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        r->unnamed_builds += shown[i] && !g->builds.tables[i]->named;
    }
    r->build_count = n;
    r->builds = ids;
    r->build_names = names;
}

static void report_fill_functions(struct arena *a, const struct report_graph *g, struct report_function *functions)
{
    const struct propagate *flow = g->flow;
    for (uint32_t i = 0; i < g->function_count; i++) {
        struct report_function *f = &functions[i];
        uint32_t node = g->node_of[i];
        bool saturated = false;
        report_names_describe(a, &g->builds, g->owner[node], f);
        f->ticks_total = g->node_ticks[node];
        f->self = g->node_seconds[node];
        f->children = flow->node_children[node];
        f->measured = g->measures == NULL ? NULL : &g->measures->nodes[node];
        f->percent = percent_of(g->total, f->self + f->children);
        /* The last bits of sums of shares are rounded: a bound is never beyond self for that. */
        double least = f->self - g->node_given[node];
        f->self_least = f->self_most = f->self;
        if (g->node_sharing[node] > 0) {
            f->self_least = least > 0 ? least : 0;
            f->self_most = f->self_least + g->node_sharing[node];
            f->self_most = f->self_most > f->self ? f->self_most : f->self;
            f->self_estimated =
                f->self - f->self_least > ESTIMATED * f->self || f->self_most - f->self > ESTIMATED * f->self;
        }
        f->calls = f->calls_outside = flow->node_outside[node];
        sum_add(&f->calls, flow->node_inside[node], &saturated);
        f->calls_inside = f->self_calls = flow->node_self[node];
        sum_add(&f->calls_inside, flow->node_inside[node], &saturated);
        f->cycle = g->cycle[g->scc->component[node]];
    }
    report_rows_functions(a, g, functions);
}

static void report_fill_cycles(struct arena *a, const struct report_graph *g, const struct report_function *functions,
                               struct report_cycle *cycles)
{
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        uint32_t component = g->cycle_component[i];
        struct report_cycle *cycle = &cycles[i];
        cycle->number = i + 1;
        cycle->self = g->component_seconds[component];
        cycle->children = g->flow->component_children[component];
        cycle->measured = g->measures == NULL ? NULL : &g->measures->components[component];
        cycle->percent = percent_of(g->total, cycle->self + cycle->children);
        cycle->calls_outside = g->flow->component_outside[component];
        cycle->calls_inside = g->flow->component_inside[component];
        cycle->closed = g->cycle_closed[i];
    }
    report_rows_cycles(a, g, functions, cycles);
}

static void report_fill_not_called(struct arena *a, const struct report_graph *g, struct report *r)
{
    struct report_function *functions = ARENA_ARRAY(a, g->uncalled.count, struct report_function);
    for (uint32_t i = 0; i < g->uncalled.count; i++) {
        report_names_describe(a, &g->builds, g->uncalled.owners[i], &functions[i]);
    }
    r->counted_functions = g->uncalled.counted;
    r->counted_of = g->uncalled.counted_of;
    r->not_called = functions;
    r->not_called_count = g->uncalled.count;
}

static void report_fill(struct arena *a, const struct report_request *request, const struct report_graph *g,
                        struct report *r)
{
    struct report_function *functions = ARENA_ARRAY(a, g->function_count, struct report_function);
    struct report_cycle *cycles = ARENA_ARRAY(a, g->cycle_count, struct report_cycle);
    report_fill_functions(a, g, functions);
    report_fill_cycles(a, g, functions, cycles);
    report_fill_not_called(a, g, r);
    report_order_entries(a, g, functions, cycles, &r->order, &r->order_count);
    r->functions = functions;
    r->function_count = g->function_count;
    for (uint32_t i = 0; i < g->function_count; i++) {
        bool jumped = false;
        for (uint32_t k = 0; k < functions[i].caller_count; k++) {
            jumped = jumped || functions[i].callers[k].jumped;
        }
        r->jumped_functions += jumped;
        r->estimated |= functions[i].index != 0 && functions[i].self_estimated;
    }
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        r->open_cycles += !cycles[i].closed;
    }
    r->cycles = cycles;
    r->cycle_count = g->cycle_count;
    r->total = g->total;
    r->ticks = g->ticks.ticks;
    r->per_tick = g->ticks.per_tick;
    r->calls = request->profile->calls;
    r->rates = g->ticks.rates;
    r->rate_count = g->ticks.ticks == 0 && g->total > 0 ? 0 : g->ticks.rate_count; /* all outside: it is not known */
    r->dimension = g->ticks.dimension;
    r->in_seconds = report_dimension_is_time(r->dimension);
    r->other_dimensions = g->ticks.others;
    r->other_dimension_count = g->ticks.other_count;
    r->static_arcs = request->static_arcs;
    r->saturated = request->profile->saturated || g->graph->saturated || g->flow->saturated || g->stacks.saturated ||
                   (g->measures != NULL && g->measures->saturated);
    r->shown = r;
    report_list_builds(a, request, g, r);
    report_frames_make(a, g, r);
    report_shown_make(a, r);
}

enum profd_status report_build(struct arena *a, const struct report_request *request, struct report **out,
                               struct profd_error *e)
{
    struct report_graph *g = ARENA_NEW(a, struct report_graph);
    struct report *r = ARENA_NEW(a, struct report);
    TRY(report_graph_make(a, request, g, e));
    report_fill(a, request, g, r);
    *out = r;
    return PROFD_OK;
}
