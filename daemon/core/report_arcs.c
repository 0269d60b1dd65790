#include "core/report_arcs.h"

#include <string.h>

#include "core/runtime_names.h"
#include "core/sum.h"
#include "core/table.h"

/* Which function an imported name means: the first build in load order that exports it. */

struct report_imports {
    struct table table;
    const char **names;
    uint32_t *owners; /* as report_builds numbers them */
};

static uint64_t imports_hash(const void *context, uint32_t i)
{
    const struct report_imports *imports = context;
    return table_hash_text(imports->names[i], '@', 0);
}

static bool imports_same(const char *a, const char *b)
{
    while (*a != '\0' && *a != '@' && *a == *b) {
        a++;
        b++;
    }
    return (*a == '\0' || *a == '@') && (*b == '\0' || *b == '@');
}

/* Visible to other builds, in its default version ("name" or "name@@VERSION"). */
static bool imports_exported(const struct object *o, const struct object_symbol *s)
{
    const char *version = strchr(object_name(o, s->name), '@');
    return s->bind != OBJECT_BIND_LOCAL && s->type != OBJECT_TYPE_NONE && (version == NULL || version[1] == '@');
}

static uint32_t *imports_slot(const struct report_imports *imports, const char *name)
{
    const struct table *t = &imports->table;
    uint32_t at = table_slot(t, table_hash_text(name, '@', 0));
    while (t->slots[at] != 0 && !imports_same(imports->names[t->slots[at] - 1], name)) {
        at = (at + 1) & t->mask;
    }
    return &t->slots[at];
}

static bool imports_add_build(struct arena *a, const struct symtab *t, uint32_t base, struct report_imports *imports)
{
    for (uint32_t i = 0; i < t->owner_count; i++) {
        const struct symtab_owner *owner = &t->owners[i];
        for (uint32_t k = 0; k < owner->count; k++) {
            const struct object_symbol *s = &t->object->symbols[t->sorted[owner->first + k]];
            if (!imports_exported(t->object, s)) {
                continue;
            }
            if (!table_reserve(&imports->table, a, imports_hash, imports)) {
                return false;
            }
            const char *name = object_name(t->object, s->name);
            uint32_t *slot = imports_slot(imports, name);
            if (*slot != 0) {
                continue;
            }
            imports->names[imports->table.used] = name;
            imports->owners[imports->table.used] = base + owner->folded_into;
            *slot = ++imports->table.used;
        }
    }
    return true;
}

/* Collects the global and weak function symbols of all builds. False when memory is exhausted. O(symbols) expected. */
static bool report_imports_make(struct arena *a, const struct report_builds *b, struct report_imports *out)
{
    size_t capacity = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        capacity += b->tables[i]->sorted_count;
    }
    *out = (struct report_imports){.names = ARENA_ARRAY(a, capacity, const char *),
                                   .owners = ARENA_ARRAY(a, capacity, uint32_t)};
    bool done = out->names != NULL && out->owners != NULL;
    for (uint32_t i = 0; done && i < b->count; i++) {
        done = imports_add_build(a, b->tables[i], b->first[i], out);
    }
    return done;
}

/* Owner of the name, a version behind '@' left out; SYMTAB_NONE if no build of the report exports it. O(length)
 * expected. */
static uint32_t report_imports_find(const struct report_imports *imports, const char *name)
{
    if (imports->table.slots == NULL) {
        return SYMTAB_NONE;
    }
    uint32_t slot = *imports_slot(imports, name);
    return slot == 0 ? SYMTAB_NONE : imports->owners[slot - 1];
}

struct arcs_work {
    struct arena *arena;
    const struct report_request *request;
    const struct report_builds *builds;
    struct report_imports imports;
    bool imports_made;
    struct report_arcs *out;
};

static bool arcs_reserve(struct arcs_work *w, uint32_t n)
{
    struct report_arcs *out = w->out;
    if (out->capacity - out->count >= n) {
        return true;
    }
    size_t more = (size_t)out->capacity * 2 + n;
    struct callgraph_arc *rows = more > UINT32_MAX ? NULL : ARENA_ARRAY(w->arena, more, struct callgraph_arc);
    if (rows == NULL) {
        return false;
    }
    if (out->count > 0) {
        memcpy(rows, out->rows, out->count * sizeof *rows);
    }
    out->rows = rows;
    out->capacity = (uint32_t)more;
    return true;
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

/* Owner of an imported name; SYMTAB_NONE if no build has it. False when memory is exhausted. */
static bool arcs_import(struct arcs_work *w, const char *name, uint32_t *owner)
{
    if (!w->imports_made && !report_imports_make(w->arena, w->builds, &w->imports)) {
        return false;
    }
    w->imports_made = true;
    *owner = report_imports_find(&w->imports, name);
    return true;
}

/* Owner of a callee; what goes to a PLT slot is passed on to the function of that name, if it is known. */
static bool arcs_callee(struct arcs_work *w, uint32_t build, uint64_t address, uint32_t *span, uint32_t *owner)
{
    const struct symtab *t = w->builds->tables[build];
    uint32_t local = symtab_find_next(t, address, span), target = SYMTAB_NONE;
    if (t->owners[local].kind == SYMTAB_PLT) {
        const char *name = symtab_import(t, address);
        if (name != NULL && !arcs_import(w, name, &target)) {
            return false;
        }
    }
    *owner = target != SYMTAB_NONE ? target : w->builds->first[build] + local;
    return true;
}

/* Arcs of a profile; those of `ever` bring no calls and only shape the cycles. */
static bool arcs_add_profile(struct arcs_work *w, const struct profile *p, bool ever)
{
    const struct report_builds *b = w->builds;
    uint32_t from_span = 0, to_span = 0, from_build = UINT32_MAX, to_build = UINT32_MAX;
    if (!arcs_reserve(w, p->arc_count)) {
        return false;
    }
    for (uint32_t i = 0; i < p->arc_count; i++) {
        const struct profile_arc *arc = &p->arcs[i];
        uint32_t from = ever ? report_builds_ever_rank(b, arc->from_build) : report_builds_rank(b, arc->from_build);
        uint32_t to = ever ? report_builds_ever_rank(b, arc->to_build) : report_builds_rank(b, arc->to_build), owner;
        if (from == REPORT_BUILDS_ABSENT || to == REPORT_BUILDS_ABSENT) {
            continue;
        }
        from_span = from == from_build ? from_span : 0;
        to_span = to == to_build ? to_span : 0;
        from_build = from;
        to_build = to;
        if (!arcs_callee(w, to, arc->to, &to_span, &owner)) {
            return false;
        }
        uint32_t caller = symtab_find_next(b->tables[from], arc->from, &from_span);
        uint8_t flags = arcs_shape(b->tables[from], caller);
        if (!ever && arc->calls == 0 && w->request->static_arcs) {
            flags |= CALLGRAPH_STATIC | CALLGRAPH_EXACT;
        }
        arcs_add(w, b->first[from] + caller, owner, ever ? 0 : arc->calls, flags);
    }
    return true;
}

/* Owner that a static arc goes to: inside the build exactly, else by the import's name. */
static bool arcs_static_callee(struct arcs_work *w, uint32_t build, const struct object_arc *arc, uint32_t *span,
                               uint32_t *owner, uint8_t *flags)
{
    const struct symtab *t = w->builds->tables[build];
    *owner = SYMTAB_NONE;
    if (arc->import != 0) {
        *flags = CALLGRAPH_STATIC;
        return arcs_import(w, object_name(t->object, arc->import), owner);
    }
    *flags = CALLGRAPH_STATIC | CALLGRAPH_EXACT;
    const char *name = NULL;
    uint32_t local = symtab_find_next(t, arc->to, span);
    if (t->owners[local].kind == SYMTAB_PLT && (name = symtab_import(t, arc->to)) != NULL) {
        *flags = CALLGRAPH_STATIC;
        return arcs_import(w, name, owner);
    }
    *owner = w->builds->first[build] + local;
    return true;
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
static bool arcs_add_static(struct arcs_work *w, uint32_t build)
{
    const struct symtab *t = w->builds->tables[build];
    uint32_t from_span = 0, to_span = 0, to;
    for (uint32_t i = 0; t->object != NULL && i < t->object->arc_count; i++) {
        const struct object_arc *arc = &t->object->arcs[i];
        uint8_t flags;
        uint32_t from = w->builds->first[build] + symtab_find_next(t, arc->from, &from_span);
        if (!arcs_static_callee(w, build, arc, &to_span, &to, &flags)) {
            return false;
        }
        if (to == SYMTAB_NONE || to == from || arcs_is_runtime(w, from) || arcs_is_runtime(w, to)) {
            continue;
        }
        if (!arcs_reserve(w, 1)) {
            return false;
        }
        arcs_add(w, from, to, 0, flags | arcs_shape(t, from - w->builds->first[build]));
    }
    return true;
}

enum profd_status report_arcs_collect(struct arena *a, const struct report_request *request,
                                      const struct report_builds *b, struct report_arcs *out, struct profd_error *e)
{
    struct arcs_work w = {.arena = a, .request = request, .builds = b, .out = out};
    bool done = arcs_add_profile(&w, request->profile, false);
    if (done && request->ever != NULL && request->ever != request->profile) {
        done = arcs_add_profile(&w, request->ever, true);
    }
    for (uint32_t i = 0; done && request->static_arcs && i < b->count; i++) {
        done = arcs_add_static(&w, i);
    }
    if (!done) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the arcs of the report: %u so far", out->count);
    }
    return PROFD_OK;
}
