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

void report_names_describe(struct arena *a, const struct report_builds *b, uint32_t owner, struct report_function *f)
{
    f->file = "";
    if (owner == b->first[b->count + 1]) {
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
    if (o->symbol != SYMTAB_NONE) {
        const struct object_symbol *s = &t->object->symbols[o->symbol];
        f->name = object_name(t->object, s->demangled);
        f->raw = object_name(t->object, s->name);
        f->file = object_name(t->object, s->file);
        f->line = s->line;
        f->code = s->code;
        names_aliases(a, t, o, f);
    } else if (o->kind == SYMTAB_PLT || o->kind == SYMTAB_GAP) {
        f->name = f->raw = o->kind == SYMTAB_PLT ? "[plt]" : "[gap]";
    } else if (o->kind == SYMTAB_UNKNOWN) {
        f->name = f->raw = t->build_id == NULL ? "[outside]" : arena_format(a, "[unknown %s]", t->build_id);
    } else {
        f->name = f->raw = arena_format(a, "0x%llx", (unsigned long long)o->address);
    }
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
static void report_shown_make(struct arena *a, bool stacks_only, struct report *r)
{
    r->shown = r;
    if (!r->time_measured || stacks_only) {
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

/* Keys that ascend in the wanted order, least important first. */
static uint64_t order_key(const void *context, uint32_t item, int key)
{
    const struct order_work *w = context;
    if ((item & REPORT_CYCLE) != 0) {
        const struct report_cycle *c = &w->cycles[item & ~REPORT_CYCLE];
        return key < 2 ? 0 : ~sort_key_double(w->measured ? c->measured->total : c->self + c->children);
    }
    const struct report_function *f = &w->functions[item];
    if (key == 0) {
        return ~f->calls;
    }
    if (key == 1) {
        return f->raw[0] == '_' ? 2 : 1;
    }
    return ~sort_key_double(w->measured ? f->measured->total : f->self + f->children);
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

/* Puts entries and cycles in order and writes their indexes (1 …) into functions and cycles. O(n log n). */
static void report_order_entries(struct arena *a, const struct report_graph *g, struct report_function *functions,
                                 struct report_cycle *cycles, const uint32_t **order, uint32_t *count)
{
    const struct order_work w = {functions, cycles, g->time_measured};
    const size_t most = (size_t)g->function_count + g->cycle_count;
    struct sort_item *sorted = ARENA_ARRAY(a, most * 2, struct sort_item);
    uint32_t *items = ARENA_ARRAY(a, most, uint32_t), *scratch = ARENA_ARRAY(a, most, uint32_t), n = 0;
    for (uint32_t i = 0; i < g->cycle_count; i++) {
        sorted[n++].value = REPORT_CYCLE | i;
    }
    for (uint32_t i = 0; i < g->function_count; i++) {
        if (g->entry[g->node_of[i]]) {
            sorted[n++].value = i;
        }
    }
    sort_keys(sorted, sorted + most, n, 3, order_key, &w);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = sorted[i].value;
    }
    for (uint32_t low = 0, high; low < n; low = high) {
        bool same = true;
        for (high = low + 1; high < n; high++) {
            for (int key = 0; key < 3 && same; key++) {
                same = order_key(&w, items[low], key) == order_key(&w, items[high], key);
            }
            if (!same) {
                break;
            }
        }
        sort_merge(items + low, scratch, high - low, order_compare, &w);
    }
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
}

enum profd_status report_build(struct arena *a, const struct report_request *request, struct report **out,
                               struct profd_error *e)
{
    struct report_graph *g = ARENA_NEW(a, struct report_graph);
    struct report *r = ARENA_NEW(a, struct report);
    TRY(report_graph_make(a, request, g, e));
    struct report_function *functions = ARENA_ARRAY(a, g->function_count, struct report_function);
    struct report_cycle *cycles = ARENA_ARRAY(a, g->cycle_count, struct report_cycle);
    report_fill_functions(a, g, functions);
    r->uncalled = report_rows_functions(a, g, request->stacks_only, functions);
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
        r->open_cycles += !cycle->closed;
    }
    if (!request->stacks_only || !g->time_measured) {
        report_rows_cycles(a, g, functions, cycles);
        report_order_entries(a, g, functions, cycles, &r->order, &r->order_count);
    }
    r->functions = functions;
    r->function_count = g->function_count;
    r->cycles = cycles;
    r->cycle_count = g->cycle_count;

    struct report_function *not_called = ARENA_ARRAY(a, g->uncalled.count, struct report_function);
    for (uint32_t i = 0; i < g->uncalled.count; i++) {
        report_names_describe(a, &g->builds, g->uncalled.owners[i], &not_called[i]);
    }
    r->counted_functions = g->uncalled.counted;
    r->counted_of = g->uncalled.counted_of;
    r->not_called = not_called;
    r->not_called_count = g->uncalled.count;

    r->build_count = g->builds.count;
    report_builds_list(a, request, &g->builds, &r->builds, &r->build_names);
    bool *shown = ARENA_ARRAY(a, (size_t)r->build_count + 1, bool);
    for (uint32_t i = 0; i < g->function_count; i++) {
        bool jumped = false;
        for (uint32_t k = 0; k < functions[i].caller_count; k++) {
            jumped = jumped || functions[i].callers[k].jumped;
        }
        r->jumped_functions += jumped;
        r->estimated |= g->entry[g->node_of[i]] && functions[i].self_estimated;
        shown[functions[i].build] |= g->entry[g->node_of[i]];
    }
    for (uint32_t i = 0; i < r->build_count; i++) {
        r->unnamed_builds += shown[i] && !g->builds.tables[i]->named;
    }

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
    r->saturated = request->profile->counts.saturated || g->graph->saturated || g->flow->saturated ||
                   g->stacks.saturated || (g->measures != NULL && g->measures->saturated);
    report_frames_make(a, g, r);
    report_shown_make(a, request->stacks_only, r);
    *out = r;
    return PROFD_OK;
}
