#include "core/report_arcs.h"

#include <string.h>

#include "core/compare.h"
#include "core/runtime_names.h"
#include "core/sum.h"

struct arcs_work {
    struct arena *arena;
    const struct report_request *request;
    const struct report_builds *builds;
    struct report_imports *imports;
    struct report_arcs *out;
    uint8_t *jumps; /* of each owner: the following; NULL: no code has tail calls */
};

/* In the machine code. */
#define ARCS_JUMPS 1u  /* it jumps to another function at its end */
#define ARCS_JUMPED 2u /* another function does so to it */

void report_arcs_reserve(struct arena *a, struct report_arcs *out, uint32_t n)
{
    if (out->capacity - out->count >= n) {
        return;
    }
    size_t more = (size_t)out->capacity * 2 + n;
    struct callgraph_arc *rows = more > UINT32_MAX ? arena_fail(a) : ARENA_ARRAY(a, more, struct callgraph_arc);
    if (out->count > 0) {
        memcpy(rows, out->rows, out->count * sizeof *rows);
    }
    out->rows = rows;
    out->capacity = (uint32_t)more;
}

/* Calls of a class of addresses shape no cycle: it is no function (report.h). */
static uint8_t arcs_shape(const struct symtab *t, uint32_t caller)
{
    enum symtab_kind kind = t->owners[caller].kind;
    return kind == SYMTAB_FUNCTION || kind == SYMTAB_ADDRESS ? CALLGRAPH_SHAPES : 0;
}

static void arcs_add(struct arcs_work *w, uint32_t from, uint32_t to, uint64_t calls, uint8_t flags)
{
    bool saturated = false; /* the graph's own sums say so */
    w->out->rows[w->out->count++] = (struct callgraph_arc){.calls = calls, .from = from, .to = to, .flags = flags};
    sum_add(&w->out->calls[to], calls, &saturated);
    uint8_t seen = calls > 0 ? REPORT_SEEN | REPORT_ENTRY : REPORT_SEEN;
    w->out->seen[from] |= seen;
    w->out->seen[to] |= seen;
}

/* Owner of a callee; what goes to a PLT slot is passed on to the function of that name, if it is known. */
static uint32_t arcs_callee(struct arcs_work *w, uint32_t build, uint64_t address, uint32_t *span)
{
    const struct symtab *t = w->builds->tables[build];
    uint32_t local = symtab_find_next(t, address, span), target = SYMTAB_NONE;
    if (t->owners[local].kind == SYMTAB_PLT) {
        const char *name = symtab_import(t, address);
        target = name != NULL ? report_imports_find(w->imports, name) : SYMTAB_NONE;
    }
    return target != SYMTAB_NONE ? target : w->builds->first[build] + local;
}

/* Owner of a caller. A function may end with a call that does not return: its return address is the first one of what
 * follows the function. O(1) expected, O(log arcs) at such an address. */
static uint32_t arcs_caller(const struct symtab *t, uint64_t from, uint32_t *span)
{
    const struct object_arc *call;
    const uint32_t owner = symtab_find_next(t, from, span);
    if (t->object == NULL || !t->object->knows_returns || t->span_low[*span] != from) {
        return owner;
    }
    const enum object_call before = object_find_call(t->object, from, &call);
    return before == OBJECT_CALL_DIRECT || before == OBJECT_CALL_POSSIBLE ? symtab_find(t, from - 1) : owner;
}

static void arcs_find_jumps(struct arcs_work *w)
{
    const struct report_builds *b = w->builds;
    for (uint32_t build = 0; build < b->count; build++) {
        const struct object *o = b->tables[build]->object;
        uint32_t from_span = 0, to_span = 0;
        bool by_name;
        for (uint32_t i = 0; o != NULL && i < o->arc_count; i++) {
            if (o->arcs[i].kind != OBJECT_ARC_TAIL) {
                continue;
            }
            if (w->jumps == NULL) {
                w->jumps = ARENA_ARRAY(w->arena, b->first[b->count + 1], uint8_t);
            }
            const uint32_t to = report_imports_callee(w->imports, build, &o->arcs[i], &to_span, &by_name);
            if (to != SYMTAB_NONE) {
                w->jumps[b->first[build] + symtab_find_next(b->tables[build], o->arcs[i].from, &from_span)] |=
                    ARCS_JUMPS;
                w->jumps[to] |= ARCS_JUMPED;
            }
        }
    }
}

/* The function's code has a jump to `to`. O(log arcs + arcs of it). */
static bool arcs_jumps_to(struct arcs_work *w, uint32_t owner, uint32_t to)
{
    const uint32_t build = report_builds_of(w->builds, owner);
    const struct object *o = w->builds->tables[build]->object;
    const struct symtab_owner *f = &w->builds->tables[build]->owners[owner - w->builds->first[build]];
    uint32_t span = 0, i = o != NULL ? compare_find_first(o->arcs, o->arc_count, sizeof *o->arcs, f->address) : 0;
    bool by_name;
    for (; o != NULL && i < o->arc_count && o->arcs[i].from - f->address < f->size; i++) {
        if (o->arcs[i].kind == OBJECT_ARC_TAIL &&
            report_imports_callee(w->imports, build, &o->arcs[i], &span, &by_name) == to) {
            return true;
        }
    }
    return false;
}

/* A function that is entered by a jump finds the return address of the one that jumped: its arc leads from the caller
 * of that one. If the call instruction names a function that jumps to the callee, that function is the caller, and the
 * arc is moved to it. If it names the callee, nothing jumped, unless jumps can lead from the callee back to it. All
 * else is not known: CALLGRAPH_JUMP. */
static void arcs_find_caller(struct arcs_work *w, uint32_t build, uint64_t from, uint32_t callee, uint32_t *caller,
                             uint8_t *flags)
{
    const struct object *o = w->builds->tables[build]->object;
    const struct object_arc *call = NULL;
    uint32_t span = 0, named = SYMTAB_NONE;
    bool by_name;
    if (w->jumps == NULL || (w->jumps[callee] & ARCS_JUMPED) == 0) {
        return;
    }
    if (o != NULL && object_find_call(o, from, &call) == OBJECT_CALL_DIRECT) {
        named = report_imports_callee(w->imports, build, call, &span, &by_name);
    }
    const bool jumped = named != SYMTAB_NONE && named != callee && arcs_jumps_to(w, named, callee);
    *caller = jumped ? named : *caller;
    if (!jumped && (named != callee || (w->jumps[callee] & ARCS_JUMPS) != 0)) {
        *flags |= CALLGRAPH_JUMP;
    }
}

/* Arcs of a profile; those of `ever` bring no calls and only shape the cycles. */
static void arcs_add_profile(struct arcs_work *w, const struct profile *p, bool ever)
{
    const struct report_builds *b = w->builds;
    uint32_t from_span = 0, to_span = 0, from_build = UINT32_MAX, to_build = UINT32_MAX;
    report_arcs_reserve(w->arena, w->out, p->arc_count);
    for (uint32_t i = 0; i < p->arc_count; i++) {
        const struct profile_arc *arc = &p->arcs[i];
        uint32_t from = ever ? report_builds_ever_rank(b, arc->from_build) : report_builds_rank(b, arc->from_build);
        uint32_t to = ever ? report_builds_ever_rank(b, arc->to_build) : report_builds_rank(b, arc->to_build);
        if (from == REPORT_BUILDS_ABSENT || to == REPORT_BUILDS_ABSENT) {
            continue;
        }
        from_span = from == from_build ? from_span : 0;
        to_span = to == to_build ? to_span : 0;
        from_build = from;
        to_build = to;
        const uint32_t owner = arcs_callee(w, to, arc->to, &to_span);
        uint32_t local = arcs_caller(b->tables[from], arc->from, &from_span), caller = b->first[from] + local;
        uint8_t flags = arcs_shape(b->tables[from], local);
        arcs_find_caller(w, from, arc->from, owner, &caller, &flags);
        if (!ever && arc->calls == 0 && w->request->static_arcs) {
            flags |= CALLGRAPH_STATIC | CALLGRAPH_EXACT;
        }
        arcs_add(w, caller, owner, ever ? 0 : arc->calls, flags);
    }
}

/* True for the compiler's and the linker's own functions. Calls to them say nothing about the program. */
static bool arcs_is_runtime(const struct arcs_work *w, uint32_t owner)
{
    uint32_t build = report_builds_of(w->builds, owner);
    const struct symtab *t = w->builds->tables[build];
    const struct symtab_owner *o = &t->owners[owner - w->builds->first[build]];
    if (o->kind != SYMTAB_FUNCTION) {
        return false;
    }
    const char *name = object_name(t->object, t->object->symbols[o->symbol].name);
    return runtime_is_counter(name) || runtime_is_startup(name);
}

/* Adds the calls found in the machine code. They shape the graph and have no calls. */
static void arcs_add_static(struct arcs_work *w, uint32_t build)
{
    const struct symtab *t = w->builds->tables[build];
    uint32_t from_span = 0, to_span = 0;
    for (uint32_t i = 0; t->object != NULL && i < t->object->arc_count; i++) {
        const struct object_arc *arc = &t->object->arcs[i];
        bool by_name;
        uint32_t from = w->builds->first[build] + symtab_find_next(t, arc->from, &from_span);
        const uint32_t to = report_imports_callee(w->imports, build, arc, &to_span, &by_name);
        const uint8_t flags = by_name ? CALLGRAPH_STATIC : CALLGRAPH_STATIC | CALLGRAPH_EXACT;
        if (to == SYMTAB_NONE || to == from || arcs_is_runtime(w, from) || arcs_is_runtime(w, to)) {
            continue;
        }
        report_arcs_reserve(w->arena, w->out, 1);
        arcs_add(w, from, to, 0, flags | arcs_shape(t, from - w->builds->first[build]));
    }
}

void report_arcs_collect(struct arena *a, const struct report_request *request, const struct report_builds *b,
                         struct report_imports *imports, struct report_arcs *out)
{
    struct arcs_work w = {.arena = a, .request = request, .builds = b, .imports = imports, .out = out};
    arcs_find_jumps(&w);
    arcs_add_profile(&w, request->profile, false);
    if (request->ever != NULL && request->ever != request->profile) {
        arcs_add_profile(&w, request->ever, true);
    }
    for (uint32_t i = 0; request->static_arcs && i < b->count; i++) {
        arcs_add_static(&w, i);
    }
}
