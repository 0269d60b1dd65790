#include "core/report_graph.h"

#include <string.h>

#include "core/names.h"
#include "core/row_table.h"
#include "proto/sort.h"
#include "proto/sum.h"

static int report_builds_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct profile *p = context;
    const struct counts_order *a = &p->build_orders[x], *b = &p->build_orders[y];
    const int order = compare_pairs(a->commit, b->commit, a->rank, b->rank);
    return order != 0 ? order : strcmp(p->builds[x], p->builds[y]);
}

/* Collects the callees of arcs, of the window and of all time, in builds without names. Those of build i are
 * addresses[start[i] … start[i + 1]), ascending and distinct. */
static void report_builds_entries(struct arena *a, const struct report_request *r, const struct report_builds *b,
                                  uint64_t **addresses, uint32_t **start)
{
    bool *nameless = ARENA_ARRAY(a, (size_t)b->count + 1, bool), any = false;
    *start = ARENA_ARRAY(a, (size_t)b->count + 2, uint32_t);
    for (uint32_t i = 0; i < b->count; i++) {
        const struct object *o = r->objects == NULL ? NULL : r->objects[b->origin[i]];
        nameless[i] = o != NULL;
        for (uint32_t k = 0; nameless[i] && k < o->symbol_count; k++) {
            nameless[i] = !symtab_is_function(o, &o->symbols[k]);
        }
        any |= nameless[i];
    }
    const uint32_t now = any ? r->profile->counts.arc_count : 0,
                   ever = any && r->ever != NULL ? r->ever->counts.arc_count : 0;
    const size_t capacity = (size_t)now + ever;
    struct sort_item *items = ARENA_ARRAY(a, capacity * 2, struct sort_item);
    *addresses = ARENA_ARRAY(a, capacity, uint64_t);
    uint32_t n = 0, kept = 0, last = 0;
    for (uint32_t i = 0; i < now; i++) {
        uint32_t build = report_builds_rank(b, r->profile->counts.to_build[i]);
        if (nameless[build]) {
            items[n++] = (struct sort_item){r->profile->counts.to[i], build};
        }
    }
    for (uint32_t i = 0; i < ever; i++) {
        uint32_t build = report_builds_ever_rank(b, r->ever->counts.to_build[i]);
        if (build != REPORT_BUILDS_ABSENT && nameless[build]) {
            items[n++] = (struct sort_item){r->ever->counts.to[i], build};
        }
    }
    sort_radix(items, items + capacity, n);
    /* Now by build; equal builds keep the order of addresses. */
    uint32_t *order = ARENA_ARRAY(a, n, uint32_t), *cursor = ARENA_ARRAY(a, (size_t)b->count + 2, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        cursor[items[i].value + 1]++;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        cursor[i + 1] += cursor[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        order[cursor[items[i].value]++] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct sort_item *item = &items[order[i]];
        for (; last < item->value; last++) {
            (*start)[last + 1] = kept;
        }
        if (kept == (*start)[last] || (*addresses)[kept - 1] != item->key) {
            (*addresses)[kept++] = item->key;
        }
    }
    for (; last <= b->count; last++) {
        (*start)[last + 1] = kept;
    }
}

enum profd_status report_builds_make(struct arena *a, const struct report_request *request, struct report_builds *out,
                                     struct profd_error *e)
{
    const struct profile *p = request->profile, *ever = request->ever;
    const uint32_t n = p->build_count;
    out->count = n;
    out->origin = ARENA_ARRAY(a, (size_t)n * 2, uint32_t);
    out->rank = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    out->tables = ARENA_ARRAY(a, (size_t)n + 1, struct symtab *);
    out->first = ARENA_ARRAY(a, (size_t)n + 2, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        out->origin[i] = i;
    }
    if (p->build_orders != NULL) {
        sort_merge(out->origin, out->origin + n, n, report_builds_compare, p);
    }
    for (uint32_t i = 0; i < n; i++) {
        out->rank[out->origin[i]] = i;
    }
    out->rank[n] = n;

    /* Builds of `ever` are found among the profile's by id. */
    struct set by_id;
    bool added;
    set_init(&by_id, a);
    out->ever_count = ever == NULL ? 0 : ever->build_count;
    out->ever_rank = ARENA_ARRAY(a, out->ever_count, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        set_add(&by_id, p->builds[i], strlen(p->builds[i]), &added);
    }
    for (uint32_t i = 0; i < out->ever_count; i++) {
        uint32_t build;
        const bool known = set_find(&by_id, ever->builds[i], strlen(ever->builds[i]), &build);
        out->ever_rank[i] = known ? out->rank[build] : REPORT_BUILDS_ABSENT;
    }

    uint64_t *entries = NULL, owners = 0;
    uint32_t *start = NULL;
    report_builds_entries(a, request, out, &entries, &start);
    for (uint32_t i = 0; i <= n; i++) { /* the last one is what lies outside all builds */
        const bool known = i < n && request->objects != NULL;
        struct symtab_request table = {.object = known ? request->objects[out->origin[i]] : NULL,
                                       .build_id = i < n ? p->builds[out->origin[i]] : NULL,
                                       .entries = entries + start[i],
                                       .entry_count = start[i + 1] - start[i],
                                       .fold_clones = request->fold_clones};
        TRY(symtab_build(a, &table, &out->tables[i], e));
        out->first[i] = (uint32_t)owners;
        owners += out->tables[i]->owner_count;
        FAIL_IF(owners >= REPORT_CYCLE, e, PROFD_LIMIT,
                "%llu functions in the report's builds: at most %u can be told apart", (unsigned long long)owners,
                REPORT_CYCLE - 1);
    }
    out->first[n + 1] = (uint32_t)owners;
    return PROFD_OK;
}

void report_builds_list(struct arena *a, const struct report_request *request, const struct report_builds *b,
                        const char *const **ids, const char *const **names)
{
    const char **id = ARENA_ARRAY(a, (size_t)b->count + 1, const char *),
               **name = ARENA_ARRAY(a, (size_t)b->count + 1, const char *);
    for (uint32_t i = 0; i < b->count; i++) {
        const char *known = request->names == NULL ? NULL : request->names[b->origin[i]];
        id[i] = request->profile->builds[b->origin[i]];
        name[i] = known == NULL ? "" : known;
    }
    id[b->count] = name[b->count] = "";
    *ids = id;
    *names = name;
}

const struct symtab_owner *report_builds_owner(const struct report_builds *b, uint32_t owner, uint32_t *build)
{
    *build = report_builds_of(b, owner);
    return &b->tables[*build]->owners[owner - b->first[*build]];
}

bool report_builds_is_function(const struct report_builds *b, uint32_t owner)
{
    uint32_t build;
    const uint8_t kind = owner == b->first[b->count + 1] ? SYMTAB_UNKNOWN : report_builds_owner(b, owner, &build)->kind;
    return kind == SYMTAB_FUNCTION || kind == SYMTAB_ADDRESS;
}

uint32_t report_builds_of(const struct report_builds *b, uint32_t owner)
{
    uint32_t behind;
    SORT_SEARCH(behind, 0, b->count + 1, b->first[behind] <= owner);
    return behind - 1;
}

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

static uint32_t *imports_slot(const struct report_imports *imports, const char *name)
{
    const struct table *t = &imports->table;
    uint32_t at = table_slot(t, table_hash_text(name, '@', 0));
    while (t->slots[at] != 0 && !imports_same(imports->names[t->slots[at] - 1], name)) {
        at = (at + 1) & t->mask;
    }
    return &t->slots[at];
}

/* Collects the function symbols that other builds see: global and weak ones in their default version ("name" or
 * "name@@VERSION"). O(symbols) expected. */
static void imports_collect(struct report_imports *imports)
{
    const struct report_builds *b = imports->builds;
    size_t capacity = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        capacity += b->tables[i]->sorted_count;
    }
    imports->made = true;
    imports->names = ARENA_ARRAY(imports->arena, capacity, const char *);
    imports->owners = ARENA_ARRAY(imports->arena, capacity, uint32_t);
    for (uint32_t build = 0; build < b->count; build++) {
        const struct symtab *t = b->tables[build];
        for (uint32_t i = 0; i < t->owner_count; i++) {
            const struct symtab_owner *owner = &t->owners[i];
            for (uint32_t k = 0; k < owner->count; k++) {
                const struct object_symbol *s = &t->object->symbols[t->sorted[owner->first + k]];
                const char *name = object_name(t->object, s->name), *version = strchr(name, '@');
                if (s->bind == OBJECT_BIND_LOCAL || s->type == OBJECT_TYPE_NONE ||
                    (version != NULL && version[1] != '@')) {
                    continue;
                }
                table_reserve(&imports->table, imports->arena, imports_hash, imports);
                uint32_t *slot = imports_slot(imports, name);
                if (*slot == 0) {
                    imports->names[imports->table.used] = name;
                    imports->owners[imports->table.used] = b->first[build] + owner->folded_into;
                    *slot = ++imports->table.used;
                }
            }
        }
    }
}

/* Owner of the name, a version behind '@' left out; SYMTAB_NONE if no build of the report exports it. O(length)
 * expected; the first time O(symbols). */
static uint32_t report_imports_find(struct report_imports *imports, const char *name)
{
    if (!imports->made) {
        imports_collect(imports);
    }
    uint32_t slot = imports->table.slots == NULL ? 0 : *imports_slot(imports, name);
    return slot == 0 ? SYMTAB_NONE : imports->owners[slot - 1];
}

uint32_t report_imports_callee(struct report_imports *imports, uint32_t build, const struct object_arc *arc,
                               uint32_t *span, bool *by_name)
{
    const struct symtab *t = imports->builds->tables[build];
    const char *name = NULL;
    *by_name = true;
    if (arc->import != 0) {
        return report_imports_find(imports, object_name(t->object, arc->import));
    }
    uint32_t local = symtab_find_next(t, arc->to, span);
    if (t->owners[local].kind == SYMTAB_PLT && (name = symtab_import(t, arc->to)) != NULL) {
        return report_imports_find(imports, name);
    }
    *by_name = false;
    return imports->builds->first[build] + local;
}

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

/* A function that is entered by a jump finds the return address of the one that jumped: its arc leads from the caller
 * of that one. If the call instruction names a function that jumps to the callee, that function is the caller, and the
 * arc is moved to it. If it names the callee, nothing jumped, unless jumps can lead from the callee back to it. All
 * else is not known: CALLGRAPH_JUMP. O(log arcs + arcs of the function that is named). */
static void arcs_find_caller(struct arcs_work *w, uint32_t build, uint64_t from, uint32_t callee, uint32_t *caller,
                             uint8_t *flags)
{
    const struct object *o = w->builds->tables[build]->object;
    const struct object_arc *call = NULL;
    uint32_t span = 0, named = SYMTAB_NONE;
    bool by_name, jumped = false;
    if (w->jumps == NULL || (w->jumps[callee] & ARCS_JUMPED) == 0) {
        return;
    }
    if (o != NULL && object_find_call(o, from, &call) == OBJECT_CALL_DIRECT) {
        named = report_imports_callee(w->imports, build, call, &span, &by_name);
    }
    if (named != SYMTAB_NONE && named != callee) {
        uint32_t there;
        const struct symtab_owner *f = report_builds_owner(w->builds, named, &there);
        o = w->builds->tables[there]->object;
        span = 0;
        uint32_t i = o != NULL ? compare_find_first(o->arcs, o->arc_count, sizeof *o->arcs, f->address) : 0;
        for (; !jumped && o != NULL && i < o->arc_count && o->arcs[i].from - f->address < f->size; i++) {
            jumped = o->arcs[i].kind == OBJECT_ARC_TAIL &&
                     report_imports_callee(w->imports, there, &o->arcs[i], &span, &by_name) == callee;
        }
    }
    *caller = jumped ? named : *caller;
    if (!jumped && (named != callee || (w->jumps[callee] & ARCS_JUMPS) != 0)) {
        *flags |= CALLGRAPH_JUMP;
    }
}

/* Arcs of a sum; those of `ever` bring no calls and only shape the cycles. */
static void arcs_add_counts(struct arcs_work *w, const struct counts *c, bool ever)
{
    const struct report_builds *b = w->builds;
    uint32_t from_span = 0, to_span = 0, from_build = UINT32_MAX, to_build = UINT32_MAX;
    report_arcs_reserve(w->arena, w->out, c->arc_count);
    for (uint32_t i = 0; i < c->arc_count; i++) {
        const uint64_t site = c->from[i];
        uint32_t from = ever ? report_builds_ever_rank(b, c->from_build[i]) : report_builds_rank(b, c->from_build[i]);
        uint32_t to = ever ? report_builds_ever_rank(b, c->to_build[i]) : report_builds_rank(b, c->to_build[i]);
        if (from == REPORT_BUILDS_ABSENT || to == REPORT_BUILDS_ABSENT) {
            continue;
        }
        from_span = from == from_build ? from_span : 0;
        to_span = to == to_build ? to_span : 0;
        from_build = from;
        to_build = to;

        /* What goes to a PLT slot is passed on to the function of that name, if it is known. */
        const struct symtab *t = b->tables[to];
        uint32_t local = symtab_find_next(t, c->to[i], &to_span), callee = b->first[to] + local;
        if (t->owners[local].kind == SYMTAB_PLT) {
            const char *name = symtab_import(t, c->to[i]);
            const uint32_t target = name != NULL ? report_imports_find(w->imports, name) : SYMTAB_NONE;
            callee = target != SYMTAB_NONE ? target : callee;
        }

        /* A function may end with a call that does not return: its return address is the first one of what follows the
         * function. */
        t = b->tables[from];
        local = symtab_find_next(t, site, &from_span);
        if (t->object != NULL && t->object->knows_returns && t->span_low[from_span] == site) {
            const struct object_arc *call;
            const enum object_call before = object_find_call(t->object, site, &call);
            if (before == OBJECT_CALL_DIRECT || before == OBJECT_CALL_POSSIBLE) {
                local = symtab_find(t, site - 1);
            }
        }
        uint32_t caller = b->first[from] + local;
        uint8_t flags = arcs_shape(t, local);
        arcs_find_caller(w, from, site, callee, &caller, &flags);
        if (!ever && c->calls[i] == 0 && w->request->static_arcs) {
            flags |= CALLGRAPH_STATIC | CALLGRAPH_EXACT;
        }
        arcs_add(w, caller, callee, ever ? 0 : c->calls[i], flags);
    }
}

/* True for the compiler's and the linker's own functions. Calls to them say nothing about the program. */
static bool arcs_is_runtime(const struct arcs_work *w, uint32_t owner)
{
    uint32_t build;
    const struct symtab_owner *o = report_builds_owner(w->builds, owner, &build);
    const struct object *object = w->builds->tables[build]->object;
    const char *name = o->kind == SYMTAB_FUNCTION ? object_name(object, object->symbols[o->symbol].name) : NULL;
    return name != NULL && (runtime_is_counter(name) || runtime_is_startup(name));
}

void report_arcs_collect(struct arena *a, const struct report_request *request, const struct report_builds *b,
                         struct report_imports *imports, struct report_arcs *out)
{
    struct arcs_work w = {.arena = a, .request = request, .builds = b, .imports = imports, .out = out};
    arcs_find_jumps(&w);
    arcs_add_counts(&w, &request->profile->counts, false);
    if (request->ever != NULL && request->ever != request->profile) {
        arcs_add_counts(&w, &request->ever->counts, true);
    }
    for (uint32_t build = 0; request->static_arcs && build < b->count; build++) {
        const struct symtab *t = b->tables[build];
        uint32_t from_span = 0, to_span = 0;
        for (uint32_t i = 0; t->object != NULL && i < t->object->arc_count; i++) {
            const struct object_arc *arc = &t->object->arcs[i];
            bool by_name;
            const uint32_t local = symtab_find_next(t, arc->from, &from_span), from = b->first[build] + local;
            const uint32_t to = report_imports_callee(imports, build, arc, &to_span, &by_name);
            const uint8_t flags = by_name ? CALLGRAPH_STATIC : CALLGRAPH_STATIC | CALLGRAPH_EXACT;
            if (to != SYMTAB_NONE && to != from && !arcs_is_runtime(&w, from) && !arcs_is_runtime(&w, to)) {
                report_arcs_reserve(a, out, 1);
                arcs_add(&w, from, to, 0, flags | arcs_shape(t, local));
            }
        }
    }
}
