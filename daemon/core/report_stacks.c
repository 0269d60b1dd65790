#include "core/report_stacks.h"

#include <string.h>

#include "core/sum.h"
#include "core/table.h"
#include "proto/limits.h"

/* A stored frame on the path to the node being read. */
struct stacks_frame {
    uint32_t node;   /* of the tree that is made; REPORT_STACKS_ROOT: none */
    uint32_t callee; /* the function that the call before its return address names; SYMTAB_NONE */
    bool inferred;   /* it, or a frame outside it, is */
};

struct stacks_work {
    struct arena *arena;
    const struct report_request *request;
    const struct profile *profile;
    const struct report_builds *builds;
    struct report_imports *imports;
    struct report_stacks *out;
    struct report_stacks_rate *rate; /* of the stored tree being read */
    struct table table;              /* nodes by parent, owner and flag */
    uint32_t capacity;
    struct stacks_frame path[LIMIT_STACK_DEPTH + 1];
    uint32_t depth;     /* frames of the path */
    uint32_t cut_depth; /* frames from this one on are below a cut; UINT32_MAX: none is */
};

static uint64_t stacks_key(uint32_t parent, uint32_t owner, uint8_t inferred)
{
    return table_mix((uint64_t)parent << 32 | owner, inferred);
}

static uint64_t stacks_hash(const void *context, uint32_t i)
{
    const struct report_stacks *s = context;
    return stacks_key(s->parent[i], s->owner[i], s->inferred[i]);
}

/* The child of that function, new if there was none. */
static uint32_t stacks_child(struct stacks_work *w, uint32_t parent, uint32_t owner, uint8_t inferred)
{
    struct report_stacks *s = w->out;
    table_reserve(&w->table, w->arena, stacks_hash, s);
    uint32_t at = table_slot(&w->table, stacks_key(parent, owner, inferred)), i;
    for (; (i = w->table.slots[at]) != 0; at = (at + 1) & w->table.mask) {
        if (s->parent[i - 1] == parent && s->owner[i - 1] == owner && s->inferred[i - 1] == inferred) {
            return i - 1;
        }
    }
    i = s->count++;
    s->parent[i] = parent;
    s->owner[i] = owner;
    s->inferred[i] = inferred;
    w->table.slots[at] = i + 1;
    w->table.used++;
    return i;
}

/* A frame of the profile. */
struct stacks_read {
    uint32_t build, owner; /* build: here */
    uint64_t address;
    enum object_call call;        /* of a return address */
    const struct object_arc *arc; /* DIRECT */
};

/* Is it a function's first address, and no call known to stand before? Coroutines begin so. Imports give the address
 * behind the first where a file names the functions of a stack and no addresses in them: no call is that short. */
static bool stacks_at_entry(const struct symtab *t, const struct stacks_read *f)
{
    bool known = f->call == OBJECT_CALL_DIRECT || f->call == OBJECT_CALL_SIGNAL ||
                 (f->call == OBJECT_CALL_POSSIBLE && t->object != NULL && t->object->knows_returns);
    const struct symtab_owner *o = &t->owners[symtab_find(t, f->address)];
    return !known && o->kind == SYMTAB_FUNCTION && f->address - o->address <= 1;
}

/* The kernel and its modules have names in brackets, and so has the vDSO. */
static bool stacks_is_kernel(const struct stacks_work *w, uint32_t i)
{
    uint32_t build = w->profile->node_build[i];
    const char *name = build < w->profile->build_count && w->request->names != NULL ? w->request->names[build] : NULL;
    return name != NULL && name[0] == '[' && strcmp(name, "[vdso]") != 0;
}

/* Did the kernel take over there? Then the address is no return address, but where a thread was. end: of the tree. */
static bool stacks_enters_kernel(const struct stacks_work *w, uint32_t i, uint32_t end)
{
    return i + 1 < end && w->profile->node_depth[i + 1] == w->profile->node_depth[i] + 1 && !stacks_is_kernel(w, i) &&
           stacks_is_kernel(w, i + 1);
}

/* What stands before f's address. Tools that follow unwind information may give the last byte of the call, as perf
 * does: then the address becomes the return address. */
static void stacks_find_call(const struct object *o, struct stacks_read *f)
{
    f->call = object_find_call(o, f->address, &f->arc);
    if (f->call != OBJECT_CALL_NONE) {
        return;
    }
    enum object_call inside = object_find_call(o, f->address + 1, &f->arc);
    if (inside == OBJECT_CALL_POSSIBLE || inside == OBJECT_CALL_DIRECT) {
        f->call = inside;
        f->address++;
    }
}

static struct stacks_read stacks_read(const struct stacks_work *w, uint32_t i, uint32_t end)
{
    const struct profile *p = w->profile;
    struct stacks_read f = {.build = report_builds_rank(w->builds, p->node_build[i]),
                            .address = p->node_address[i],
                            .call = OBJECT_CALL_POSSIBLE};
    bool outside = f.build == w->builds->count;
    if (outside && f.address == COUNTS_FRAME_INCOMPLETE) {
        f.owner = w->out->incomplete;
        return f;
    }
    const struct symtab *t = w->builds->tables[f.build];
    bool calls = p->node_kind[i] == COUNTS_NODE_RETURN && !outside && !stacks_enters_kernel(w, i, end);
    if (calls && t->object != NULL) {
        stacks_find_call(t->object, &f);
    }
    if (calls && stacks_at_entry(t, &f)) {
        f.call = OBJECT_CALL_POSSIBLE;
    } else {
        f.address -= calls && f.call != OBJECT_CALL_SIGNAL;
    }
    f.owner = w->builds->first[f.build] + symtab_find(t, f.address);
    return f;
}

/* The function that a direct call goes to; SYMTAB_NONE for what is decided at run time only. */
static uint32_t stacks_callee(struct stacks_work *w, const struct stacks_read *f)
{
    uint32_t span = 0;
    bool by_name;
    if (f->call != OBJECT_CALL_DIRECT) {
        return SYMTAB_NONE;
    }
    const uint32_t owner = report_imports_callee(w->imports, f->build, f->arc, &span, &by_name);
    if (owner == SYMTAB_NONE) {
        return owner;
    }
    uint32_t build = report_builds_of(w->builds, owner);
    const struct symtab *t = w->builds->tables[build];
    const struct symtab_owner *o = &t->owners[owner - w->builds->first[build]];
    bool chosen_later = o->kind != SYMTAB_FUNCTION || t->object->symbols[o->symbol].type == OBJECT_TYPE_IFUNC;
    return chosen_later ? SYMTAB_NONE : owner;
}

/* Was callee entered, although the frame below the call is of another function? Not certain are: code that no symbol
 * owns; code inside callee's own bounds; another build, because the run-time linker stands between at first calls. */
static bool stacks_skipped(const struct stacks_work *w, uint32_t callee, const struct stacks_read *f)
{
    if (callee == SYMTAB_NONE || callee == f->owner || f->owner == w->out->incomplete) {
        return false;
    }
    const struct report_builds *b = w->builds;
    if (report_builds_of(b, callee) != f->build) {
        return false;
    }
    const struct symtab_owner *owners = b->tables[f->build]->owners, *o = &owners[callee - b->first[f->build]];
    return owners[f->owner - b->first[f->build]].kind == SYMTAB_FUNCTION && f->address - o->address >= o->size;
}

/* Counts the ticks that end at a stored node. */
static void stacks_count(struct stacks_work *w, uint32_t i, const struct stacks_frame *frame)
{
    const struct profile *p = w->profile;
    struct report_stacks *s = w->out;
    uint64_t ticks = p->node_ticks[i], *to = p->node_kind[i] == COUNTS_NODE_PC ? w->rate->self : w->rate->folded;
    sum_add(&to[frame->node], ticks, &s->saturated);
    sum_add(&s->ticks, ticks, &s->saturated);
    if (p->node_kind[i] == COUNTS_NODE_RETURN) {
        sum_add(&s->folded, ticks, &s->saturated);
    }
    if (w->cut_depth != UINT32_MAX) {
        sum_add(&s->cut, ticks, &s->saturated);
    }
    if (frame->inferred) {
        sum_add(&s->inferred_ticks, ticks, &s->saturated);
    }
    uint64_t *shares = w->rate->shares == NULL ? NULL : &w->rate->shares[(size_t)frame->node * COUNTS_GROUPS];
    for (unsigned g = 0; shares != NULL && g < COUNTS_GROUPS; g++) {
        sum_add(&shares[g], p->node_shares[(size_t)i * COUNTS_GROUPS + g], &s->saturated);
    }
}

/* Is it the code that a signal's handler returns to, below a frame? What a signal interrupts calls nothing: a call
 * stands before its address by chance only. But frame pointers do not have the interrupted function, and go on with
 * callers of it: these would seem to call the handler. */
static bool stacks_interrupts(const struct stacks_work *w, const struct stacks_read *f, uint32_t outer)
{
    return f->call == OBJECT_CALL_SIGNAL && (outer == REPORT_STACKS_ROOT || w->out->owner[outer] != w->out->incomplete);
}

/* Adds one stored node; its frames outside are the path. */
static void stacks_add(struct stacks_work *w, uint32_t i, uint32_t end)
{
    uint32_t depth = w->profile->node_depth[i];
    const struct stacks_frame outer =
        depth == 0 ? (struct stacks_frame){REPORT_STACKS_ROOT, SYMTAB_NONE, false} : w->path[depth - 1];
    struct stacks_read f = stacks_read(w, i, end);
    struct stacks_frame *frame = &w->path[depth];
    *frame = (struct stacks_frame){outer.node, SYMTAB_NONE, outer.inferred};
    w->cut_depth = depth <= w->cut_depth ? UINT32_MAX : w->cut_depth;
    if (f.call == OBJECT_CALL_NONE) {
        w->cut_depth = depth < w->cut_depth ? depth : w->cut_depth;
        *frame = (struct stacks_frame){REPORT_STACKS_ROOT, SYMTAB_NONE, false};
        f.owner = w->out->incomplete;
    } else if (stacks_interrupts(w, &f, outer.node)) {
        w->cut_depth = depth > 0 && depth < w->cut_depth ? depth : w->cut_depth;
        *frame = (struct stacks_frame){stacks_child(w, REPORT_STACKS_ROOT, w->out->incomplete, 0), SYMTAB_NONE, false};
    } else if (stacks_skipped(w, outer.callee, &f)) {
        frame->inferred = true;
        frame->node = stacks_child(w, outer.node, outer.callee, 1);
    }
    frame->node = stacks_child(w, frame->node, f.owner, 0);
    frame->callee = stacks_callee(w, &f);
    stacks_count(w, i, frame);
}

/* Takes memory for ticks of one more rate, unless the last tree had it. */
static void stacks_add_rate(struct stacks_work *w, uint32_t rate)
{
    struct report_stacks *s = w->out;
    if (s->rate_count > 0 && s->rates[s->rate_count - 1].rate == rate) {
        return;
    }
    w->rate = &s->rates[s->rate_count++];
    *w->rate = (struct report_stacks_rate){.rate = rate,
                                           .self = ARENA_ARRAY(w->arena, w->capacity, uint64_t),
                                           .folded = ARENA_ARRAY(w->arena, w->capacity, uint64_t)};
    if (w->profile->node_shares != NULL) {
        w->rate->shares = ARENA_ARRAY(w->arena, (size_t)w->capacity * COUNTS_GROUPS, uint64_t);
    }
}

/* The stored trees of the dimension, ascending by rate. O(trees²), of which there are at most LIMIT_STACK_TREES. */
static const struct counts_tree *stacks_next(const struct stacks_work *w, const char *dimension,
                                             const struct counts_tree *last)
{
    const struct counts_tree *next = NULL;
    for (uint32_t i = 0; i < w->profile->tree_count; i++) {
        const struct counts_tree *t = &w->profile->trees[i];
        bool after = last == NULL || t->rate > last->rate || (t->rate == last->rate && t > last);
        if (after && strcmp(t->dimension, dimension) == 0 && (next == NULL || t->rate < next->rate)) {
            next = t;
        }
    }
    return next;
}

static bool stacks_calls(const struct profile *p)
{
    for (uint32_t i = 0; p != NULL && i < p->arc_count; i++) {
        if (p->arcs[i].calls > 0) {
            return true;
        }
    }
    return false;
}

static bool stacks_is_function(const struct stacks_work *w, uint32_t owner)
{
    if (owner == w->out->incomplete) {
        return false;
    }
    uint32_t build = report_builds_of(w->builds, owner);
    uint8_t kind = w->builds->tables[build]->owners[owner - w->builds->first[build]].kind;
    return kind == SYMTAB_FUNCTION || kind == SYMTAB_ADDRESS;
}

static void stacks_add_arcs(struct stacks_work *w, struct report_arcs *arcs)
{
    const struct report_stacks *s = w->out;
    bool shape = !stacks_calls(w->profile) && !stacks_calls(w->request->ever);
    report_arcs_reserve(w->arena, arcs, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        arcs->seen[s->owner[i]] |= REPORT_SEEN | REPORT_ENTRY;
        if (s->parent[i] == REPORT_STACKS_ROOT || s->owner[s->parent[i]] == s->owner[i]) {
            continue;
        }
        uint32_t from = s->owner[s->parent[i]];
        bool shapes = shape && stacks_is_function(w, from);
        arcs->rows[arcs->count++] = (struct callgraph_arc){
            .from = from, .to = s->owner[i], .flags = (uint8_t)(CALLGRAPH_STACK | (shapes ? CALLGRAPH_SHAPES : 0u))};
    }
}

void report_stacks_make(struct arena *a, const struct report_request *request, const char *dimension,
                        const struct report_builds *b, struct report_imports *imports, struct report_arcs *arcs,
                        struct report_stacks *out)
{
    const struct profile *p = request->profile;
    *out = (struct report_stacks){.incomplete = b->first[b->count + 1]};
    if (p->tree_count == 0) {
        return;
    }
    /* A stored node becomes at most two; and one stands for unknown callers. */
    struct stacks_work w = {.arena = a,
                            .request = request,
                            .profile = p,
                            .builds = b,
                            .imports = imports,
                            .out = out,
                            .capacity = p->node_count * 2 + 2};
    out->parent = ARENA_ARRAY(a, w.capacity, uint32_t);
    out->owner = ARENA_ARRAY(a, w.capacity, uint32_t);
    out->inferred = ARENA_ARRAY(a, w.capacity, uint8_t);
    out->rates = ARENA_ARRAY(a, p->tree_count, struct report_stacks_rate);
    uint8_t *below = ARENA_ARRAY(a, w.capacity, uint8_t);
    for (const struct counts_tree *t = NULL; (t = stacks_next(&w, dimension, t)) != NULL;) {
        w.cut_depth = UINT32_MAX;
        stacks_add_rate(&w, t->rate);
        for (uint32_t i = t->first; i < t->first + t->used; i++) {
            stacks_add(&w, i, t->first + t->used);
        }
    }
    stacks_add_arcs(&w, arcs);
    /* Ticks below "[incomplete]", which is an outermost frame only. */
    for (uint32_t i = 0; i < out->count; i++) {
        below[i] = out->parent[i] == REPORT_STACKS_ROOT ? out->owner[i] == out->incomplete : below[out->parent[i]];
        for (uint32_t r = 0; below[i] && r < out->rate_count; r++) {
            sum_add(&out->unknown, out->rates[r].self[i], &out->saturated);
            sum_add(&out->unknown, out->rates[r].folded[i], &out->saturated);
        }
    }
}
