#include "core/report_graph.h"

#include <math.h>
#include <string.h>

#include "core/spread.h"
#include "proto/sum.h"
#include "core/row_table.h"
#include "proto/limits.h"
#include "proto/sort.h"

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
    struct stacks_frame path[LIMIT_STACK_DEPTH + 1];
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

/* The kernel and its modules have names in brackets, and so has the vDSO. */
static bool stacks_is_kernel(const struct stacks_work *w, uint32_t i)
{
    uint32_t build = w->profile->counts.node_build[i];
    const char *name = build < w->profile->build_count && w->request->names != NULL ? w->request->names[build] : NULL;
    return name != NULL && name[0] == '[' && strcmp(name, "[vdso]") != 0;
}

/* Reads a stored node. end: of its tree. */
static struct stacks_read stacks_read(const struct stacks_work *w, uint32_t i, uint32_t end)
{
    const struct counts *p = &w->profile->counts;
    struct stacks_read f = {.build = report_builds_rank(w->builds, p->node_build[i]),
                            .address = p->node_address[i],
                            .call = OBJECT_CALL_POSSIBLE};
    const bool outside = f.build == w->builds->count;
    if (outside && f.address == COUNTS_FRAME_INCOMPLETE) {
        f.owner = w->out->incomplete;
        return f;
    }
    const struct symtab *t = w->builds->tables[f.build];
    const struct object *o = t->object;
    /* Where the kernel took over, the address is no return address, but where a thread was. */
    const bool kernel = i + 1 < end && p->node_depth[i + 1] == p->node_depth[i] + 1 && !stacks_is_kernel(w, i) &&
                        stacks_is_kernel(w, i + 1);
    const bool calls = p->node_kind[i] == COUNTS_NODE_RETURN && !outside && !kernel;
    if (calls && o != NULL) {
        f.call = object_find_call(o, f.address, &f.arc);
        /* Tools that follow unwind information may give the last byte of the call, as perf does: then the address
         * becomes the return address. */
        const enum object_call inside =
            f.call == OBJECT_CALL_NONE ? object_find_call(o, f.address + 1, &f.arc) : OBJECT_CALL_NONE;
        if (inside == OBJECT_CALL_POSSIBLE || inside == OBJECT_CALL_DIRECT) {
            f.call = inside;
            f.address++;
        }
    }
    /* Coroutines begin at a function's first address, before which no call is known to stand. Imports give the address
     * behind the first where a file names the functions of a stack and no addresses in them: no call is that short. */
    const bool known = f.call == OBJECT_CALL_DIRECT || f.call == OBJECT_CALL_SIGNAL ||
                       (f.call == OBJECT_CALL_POSSIBLE && o != NULL && o->knows_returns);
    const struct symtab_owner *owner = calls && !known ? &t->owners[symtab_find(t, f.address)] : NULL;
    if (owner != NULL && owner->kind == SYMTAB_FUNCTION && f.address - owner->address <= 1) {
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
    uint32_t build;
    const struct symtab_owner *o = report_builds_owner(w->builds, owner, &build);
    const bool chosen_later =
        o->kind != SYMTAB_FUNCTION || w->builds->tables[build]->object->symbols[o->symbol].type == OBJECT_TYPE_IFUNC;
    return chosen_later ? SYMTAB_NONE : owner;
}

/* Returns whether callee was entered although the frame below the call is of another function. Not certain are: code
 * that no symbol owns; code inside callee's own bounds; another build, because the run-time linker stands between at
 * first calls. */
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

/* Adds one stored node and its ticks; its frames outside are the path. */
static void stacks_add(struct stacks_work *w, uint32_t i, uint32_t end)
{
    const struct counts *p = &w->profile->counts;
    struct report_stacks *s = w->out;
    uint32_t depth = p->node_depth[i];
    const struct stacks_frame outer =
        depth == 0 ? (struct stacks_frame){REPORT_STACKS_ROOT, SYMTAB_NONE, false} : w->path[depth - 1];
    struct stacks_read f = stacks_read(w, i, end);
    struct stacks_frame *frame = &w->path[depth];
    *frame = (struct stacks_frame){outer.node, SYMTAB_NONE, outer.inferred};
    w->cut_depth = depth <= w->cut_depth ? UINT32_MAX : w->cut_depth;
    if (f.call == OBJECT_CALL_NONE) {
        w->cut_depth = depth < w->cut_depth ? depth : w->cut_depth;
        *frame = (struct stacks_frame){REPORT_STACKS_ROOT, SYMTAB_NONE, false};
        f.owner = s->incomplete;
    } else if (f.call == OBJECT_CALL_SIGNAL &&
               (outer.node == REPORT_STACKS_ROOT || s->owner[outer.node] != s->incomplete)) {
        /* The code that a signal's handler returns to. What a signal interrupts calls nothing: a call stands before its
         * address by chance only. But frame pointers do not have the interrupted function, and go on with callers of
         * it: these would seem to call the handler. */
        w->cut_depth = depth > 0 && depth < w->cut_depth ? depth : w->cut_depth;
        *frame = (struct stacks_frame){stacks_child(w, REPORT_STACKS_ROOT, s->incomplete, 0), SYMTAB_NONE, false};
    } else if (stacks_skipped(w, outer.callee, &f)) {
        frame->inferred = true;
        frame->node = stacks_child(w, outer.node, outer.callee, 1);
    }
    frame->node = stacks_child(w, frame->node, f.owner, 0);
    frame->callee = stacks_callee(w, &f);

    const bool folded = p->node_kind[i] != COUNTS_NODE_PC;
    uint64_t ticks = p->node_ticks[i], *to = folded ? w->rate->folded : w->rate->self;
    sum_add(&to[frame->node], ticks, &s->saturated);
    sum_add(&s->ticks, ticks, &s->saturated);
    sum_add(&s->folded, folded ? ticks : 0, &s->saturated);
    sum_add(&s->cut, w->cut_depth != UINT32_MAX ? ticks : 0, &s->saturated);
    sum_add(&s->inferred_ticks, frame->inferred ? ticks : 0, &s->saturated);
    uint64_t *shares = w->rate->shares == NULL ? NULL : &w->rate->shares[(size_t)frame->node * COUNTS_GROUPS];
    for (unsigned g = 0; shares != NULL && g < COUNTS_GROUPS; g++) {
        sum_add(&shares[g], w->profile->shares.nodes[(size_t)i * COUNTS_GROUPS + g], &s->saturated);
    }
}

/* The stored trees of the dimension, ascending by rate. O(trees²); there are at most LIMIT_STACK_TREES. */
static const struct counts_tree *stacks_next(const struct stacks_work *w, const char *dimension,
                                             const struct counts_tree *last)
{
    const struct counts_tree *next = NULL;
    for (uint32_t i = 0; i < w->profile->counts.tree_count; i++) {
        const struct counts_tree *t = &w->profile->counts.trees[i];
        bool after = last == NULL || t->rate > last->rate || (t->rate == last->rate && t > last);
        if (after && strcmp(t->dimension, dimension) == 0 && (next == NULL || t->rate < next->rate)) {
            next = t;
        }
    }
    return next;
}

static bool stacks_calls(const struct profile *p)
{
    for (uint32_t i = 0; p != NULL && i < p->counts.arc_count; i++) {
        if (p->counts.calls[i] > 0) {
            return true;
        }
    }
    return false;
}

void report_stacks_make(struct arena *a, const struct report_request *request, const char *dimension,
                        const struct report_builds *b, struct report_imports *imports, struct report_arcs *arcs,
                        struct report_stacks *out)
{
    const struct profile *p = request->profile;
    *out = (struct report_stacks){.incomplete = b->first[b->count + 1]};
    if (p->counts.tree_count == 0) {
        return;
    }
    /* A stored node becomes at most two; and one stands for unknown callers. */
    const uint32_t capacity = p->counts.node_count * 2 + 2;
    struct stacks_work w = {.arena = a, .request = request, .profile = p, .builds = b, .imports = imports, .out = out};
    out->parent = ARENA_ARRAY(a, capacity, uint32_t);
    out->owner = ARENA_ARRAY(a, capacity, uint32_t);
    out->inferred = ARENA_ARRAY(a, capacity, uint8_t);
    out->rates = ARENA_ARRAY(a, p->counts.tree_count, struct report_stacks_rate);
    for (const struct counts_tree *t = NULL; (t = stacks_next(&w, dimension, t)) != NULL;) {
        w.cut_depth = UINT32_MAX;
        if (out->rate_count == 0 || w.rate->rate != t->rate) {
            w.rate = &out->rates[out->rate_count++];
            *w.rate = (struct report_stacks_rate){.rate = t->rate,
                                                  .self = ARENA_ARRAY(a, capacity, uint64_t),
                                                  .folded = ARENA_ARRAY(a, capacity, uint64_t)};
            if (p->shares.nodes != NULL) {
                w.rate->shares = ARENA_ARRAY(a, (size_t)capacity * COUNTS_GROUPS, uint64_t);
            }
        }
        for (uint32_t i = t->first; i < t->first + t->used; i++) {
            stacks_add(&w, i, t->first + t->used);
        }
    }

    const bool shape = !stacks_calls(p) && !stacks_calls(request->ever);
    report_arcs_reserve(a, arcs, out->count);
    for (uint32_t i = 0; i < out->count; i++) {
        arcs->seen[out->owner[i]] |= REPORT_SEEN | REPORT_ENTRY;
        if (out->parent[i] == REPORT_STACKS_ROOT || out->owner[out->parent[i]] == out->owner[i]) {
            continue;
        }
        uint32_t from = out->owner[out->parent[i]];
        bool shapes = shape && report_builds_is_function(b, from);
        arcs->rows[arcs->count++] = (struct callgraph_arc){
            .from = from, .to = out->owner[i], .flags = (uint8_t)(CALLGRAPH_STACK | (shapes ? CALLGRAPH_SHAPES : 0u))};
    }
    /* Ticks below "[incomplete]", which is an outermost frame only. */
    uint8_t *below = ARENA_ARRAY(a, capacity, uint8_t);
    for (uint32_t i = 0; i < out->count; i++) {
        below[i] = out->parent[i] == REPORT_STACKS_ROOT ? out->owner[i] == out->incomplete : below[out->parent[i]];
        for (uint32_t r = 0; below[i] && r < out->rate_count; r++) {
            sum_add(&out->unknown, out->rates[r].self[i], &out->saturated);
            sum_add(&out->unknown, out->rates[r].folded[i], &out->saturated);
        }
    }
}

#define K COUNTS_GROUPS
#define NONE UINT32_MAX
#define CONFIDENCE 0.95
#define NORMAL 1.959963984540054 /* P(|Z| ≤ z) = 0.95 */

/* Rows have the functions first, then the components, then the arcs. */
struct measure_work {
    const struct report_stacks *s;
    const struct callgraph *g;
    const struct scc *c;
    uint32_t *node;         /* of the graph, of each node of the tree */
    uint32_t *arc;          /* of the graph, from the parent; NONE */
    uint32_t *child, *next; /* first child and next sibling in the tree; NONE */
    uint32_t root;
    uint64_t *below;        /* of each node of the tree: ticks of the current rate that end in it or below it */
    uint64_t *groups_below; /* likewise, by group; NULL: not known */
    uint32_t *on_node, *on_component; /* how often they are on the path */
    uint32_t *way;                    /* of each component on the path: the arc by which the path enters it; NONE */
    size_t rows;
    uint64_t *self, *total;           /* of each row, ticks of the current rate */
    uint64_t *group_ticks;            /* of each row, by group */
    double *group_seconds;            /* likewise, of all rates */
    struct report_measured *measured; /* of each row */
    bool saturated;
};

double report_measure_overdispersion(uint32_t rate, double per_tick)
{
    static const double at[] = {99, 250, 1000}, d[] = {1.12, 1.35, 6.3};
    const int i = rate >= at[1];
    const double usual = rate <= at[0]   ? d[0]
                         : rate >= at[2] ? d[2] * rate / at[2]
                                         : d[i] + (d[i + 1] - d[i]) * (rate - at[i]) / (at[i + 1] - at[i]);
    return fmax(usual, 1 / per_tick);
}

void report_measure_wilson(double x, double n, double *low, double *high)
{
    double p = x / n, z2 = NORMAL * NORMAL, middle = p + z2 / (2 * n);
    double half = NORMAL * sqrt(p * (1 - p) / n + z2 / (4 * n * n)), all = 1 + z2 / n;
    *low = x > 0 && middle > half ? (middle - half) / all : 0;
    *high = x < n ? (middle + half) / all : 1;
}

/* Row of a thing gets the ticks of a node of the tree and of all below. */
static void measure_add(struct measure_work *w, size_t row, uint32_t at)
{
    sum_add(&w->total[row], w->below[at], &w->saturated);
    for (unsigned g = 0; w->groups_below != NULL && g < K; g++) {
        sum_add(&w->group_ticks[row * K + g], w->groups_below[(size_t)at * K + g], &w->saturated);
    }
}

/* Adds up the ticks of one rate, and turns them into seconds. */
static void measure_rate(struct measure_work *w, const struct report_stacks_rate *r)
{
    const struct report_stacks *s = w->s;
    const size_t components = w->g->node_count, arcs = components + w->c->count;
    /* Ticks that end below each node: children stand behind their parents. */
    for (uint32_t i = 0; i < s->count; i++) {
        w->below[i] = r->self[i];
        sum_add(&w->below[i], r->folded[i], &w->saturated);
        for (unsigned g = 0; w->groups_below != NULL && g < K; g++) {
            w->groups_below[(size_t)i * K + g] = r->shares[(size_t)i * K + g];
        }
    }
    for (uint32_t i = s->count; i-- > 0;) {
        const uint32_t parent = s->parent[i];
        if (parent == REPORT_STACKS_ROOT) {
            continue;
        }
        sum_add(&w->below[parent], w->below[i], &w->saturated);
        for (unsigned g = 0; w->groups_below != NULL && g < K; g++) {
            sum_add(&w->groups_below[(size_t)parent * K + g], w->groups_below[(size_t)i * K + g], &w->saturated);
        }
    }

    /* Depth first: down, else right, else up and right. */
    for (uint32_t at = w->root; at != NONE;) {
        const uint32_t v = w->node[at], c = w->c->component[v];
        if (w->on_node[v]++ == 0) {
            measure_add(w, v, at);
        }
        if (w->on_component[c]++ == 0) {
            measure_add(w, components + c, at);
            w->way[c] = w->arc[at];
            if (w->way[c] != NONE) {
                measure_add(w, arcs + w->way[c], at);
            }
        }
        sum_add(&w->self[v], r->self[at], &w->saturated);
        sum_add(&w->self[components + c], r->self[at], &w->saturated);
        if (w->way[c] != NONE) {
            sum_add(&w->self[arcs + w->way[c]], r->self[at], &w->saturated);
        }
        uint32_t next = w->child[at];
        while (next == NONE && at != NONE) { /* leaves nodes until one has a sibling */
            w->on_node[w->node[at]]--;
            w->on_component[w->c->component[w->node[at]]]--;
            next = w->next[at];
            at = s->parent[at];
        }
        at = next;
    }

    for (size_t i = 0; i < w->rows; i++) {
        struct report_measured *m = &w->measured[i];
        m->self += (double)w->self[i] / r->rate;
        m->total += (double)w->total[i] / r->rate;
        sum_add(&m->samples, w->total[i], &w->saturated);
        w->self[i] = w->total[i] = 0;
        for (unsigned g = 0; w->groups_below != NULL && g < K; g++) {
            w->group_seconds[i * K + g] += (double)w->group_ticks[i * K + g] / r->rate;
            w->group_ticks[i * K + g] = 0;
        }
    }
}

/* Sums over all stacks, and by group. */
static void measure_whole(const struct measure_work *w, struct report_measures *out, unsigned groups)
{
    unsigned present = 0;
    double shared = 0;
    for (uint32_t r = 0; r < w->s->rate_count; r++) {
        const struct report_stacks_rate *rate = &w->s->rates[r];
        uint64_t ticks = 0, of[K] = {0};
        for (uint32_t i = 0; i < w->s->count; i++) {
            sum_add(&ticks, rate->self[i], &out->saturated);
            sum_add(&ticks, rate->folded[i], &out->saturated);
            for (unsigned g = 0; rate->shares != NULL && g < K; g++) {
                sum_add(&of[g], rate->shares[(size_t)i * K + g], &out->saturated);
            }
        }
        out->ticks += (double)ticks;
        out->seconds += (double)ticks / rate->rate;
        for (unsigned g = 0; g < K; g++) {
            out->group_seconds[g] += (double)of[g] / rate->rate;
        }
    }
    for (unsigned g = 0; g < K; g++) {
        shared += out->group_seconds[g];
        present += out->group_seconds[g] > 0;
    }
    out->groups = groups != 0 ? groups : present;
    /* Not if the groups of some ticks are not known. */
    out->by_groups = out->groups >= 2 && present >= 2 && fabs(shared - out->seconds) <= 1e-9 * out->seconds;
}

/* Low and high in seconds. The number of all ticks is not chance: it is CPU time. The share of them is. */
static void measure_bound(const struct report_measures *all, const double *group_seconds, struct report_measured *m)
{
    struct spread_estimate share;
    double low, high;
    m->by_groups = all->by_groups && (double)m->samples * all->per_tick >= REPORT_MEASURED_FEW &&
                   spread_ratio(group_seconds, all->group_seconds, all->groups, &share) &&
                   spread_interval(&share, CONFIDENCE, &low, &high);
    if (!m->by_groups) {
        double stacks = all->ticks / all->overdispersion, part = m->total / all->seconds;
        report_measure_wilson(part * stacks, stacks, &low, &high);
    }
    m->low = (low > 0 ? low : 0) * all->seconds;
    m->high = (high < 1 ? high : 1) * all->seconds;
}

void report_measure_join(const struct report_measures *m, const struct sort_item *arcs, uint32_t n,
                         struct report_measured *out)
{
    double groups[K] = {0};
    bool saturated = false;
    *out = (struct report_measured){.samples = 0};
    for (uint32_t i = 0; i < n; i++) {
        const struct report_measured *arc = &m->arcs[arcs[i].value];
        out->self += arc->self;
        out->total += arc->total;
        sum_add(&out->samples, arc->samples, &saturated);
        for (unsigned g = 0; m->arc_groups != NULL && g < K; g++) {
            groups[g] += m->arc_groups[(size_t)arcs[i].value * K + g];
        }
    }
    measure_bound(m, groups, out);
}

#define ROUNDING 1e-6

void report_measure_compare(struct report_measured *m, double seconds, double coverage)
{
    double part = seconds * coverage, least = ROUNDING * (part > m->high ? part : m->high);
    m->differs = part < m->low - least || part > m->high + least;
}

struct report_measures *report_measure(struct arena *a, const struct report_stacks *s, const uint32_t *node_of_owner,
                                       const struct callgraph *g, const struct scc *c, unsigned groups, double per_tick)
{
    const uint32_t n = s->count;
    const size_t arcs = (size_t)g->node_count + c->count, rows = arcs + g->arc_count;
    struct measure_work w = {.s = s, .g = g, .c = c, .rows = rows, .root = NONE};
    struct report_measures *out = ARENA_NEW(a, struct report_measures);
    w.node = ARENA_ARRAY(a, n, uint32_t);
    w.arc = ARENA_ARRAY(a, n, uint32_t);
    w.child = ARENA_ARRAY(a, n, uint32_t);
    w.next = ARENA_ARRAY(a, n, uint32_t);
    w.below = ARENA_ARRAY(a, n, uint64_t);
    w.on_node = ARENA_ARRAY(a, g->node_count, uint32_t);
    w.on_component = ARENA_ARRAY(a, c->count, uint32_t);
    w.way = ARENA_ARRAY(a, c->count, uint32_t);
    w.self = ARENA_ARRAY(a, rows, uint64_t);
    w.total = ARENA_ARRAY(a, rows, uint64_t);
    w.measured = ARENA_ARRAY(a, rows, struct report_measured);
    if (s->rates[0].shares != NULL) {
        w.groups_below = ARENA_ARRAY(a, (size_t)n * K, uint64_t);
        w.group_ticks = ARENA_ARRAY(a, rows * K, uint64_t);
        w.group_seconds = ARENA_ARRAY(a, rows * K, double);
    }
    for (uint32_t i = 0; i < n; i++) {
        w.child[i] = NONE;
        w.node[i] = node_of_owner[s->owner[i]];
        w.arc[i] = s->parent[i] == REPORT_STACKS_ROOT ? NONE : callgraph_find_arc(g, w.node[s->parent[i]], w.node[i]);
    }
    for (uint32_t i = n; i-- > 0;) {
        uint32_t *first = s->parent[i] == REPORT_STACKS_ROOT ? &w.root : &w.child[s->parent[i]];
        w.next[i] = *first;
        *first = i;
    }
    for (uint32_t i = 0; i < s->rate_count; i++) {
        measure_rate(&w, &s->rates[i]);
    }
    out->saturated = w.saturated;
    out->per_tick = per_tick;
    out->overdispersion = report_measure_overdispersion(s->rates[s->rate_count - 1].rate, per_tick);
    measure_whole(&w, out, groups);
    for (size_t i = 0; i < rows && out->ticks > 0; i++) {
        measure_bound(out, w.group_seconds == NULL ? NULL : w.group_seconds + i * K, &w.measured[i]);
    }
    out->nodes = w.measured;
    out->components = w.measured + g->node_count;
    out->arcs = w.measured + arcs;
    out->node_groups = w.group_seconds;
    out->arc_groups = w.group_seconds == NULL ? NULL : w.group_seconds + arcs * K;
    return out;
}

static int frames_compare(const void *context, uint32_t x, uint32_t y)
{
    const struct report_frame *frames = context, *a = &frames[x], *b = &frames[y];
    const int order = compare_pairs(a->parent, b->parent, sort_key_double(b->total), sort_key_double(a->total));
    return order != 0 ? order : compare_pairs(a->function, b->function, a->inferred, b->inferred);
}

void report_frames_make(struct arena *a, const struct report_graph *g, struct report *r)
{
    const struct report_stacks *s = &g->stacks;
    const uint32_t n = s->count;
    if (!g->time_measured && g->measures == NULL) {
        return;
    }
    struct report_frame *frames = ARENA_ARRAY(a, n, struct report_frame), /* in the order of the stacks */
        *out = ARENA_ARRAY(a, n, struct report_frame);
    bool saturated = false; /* the report says it */
    for (uint32_t i = 0; i < n; i++) {
        struct report_frame *f = &frames[i];
        f->parent = s->parent[i];
        f->function = g->position[g->node_of_owner[s->owner[i]]];
        f->depth = f->parent == REPORT_FRAME_ROOT ? 0 : frames[f->parent].depth + 1;
        f->inferred = s->inferred[i] != 0;
    }
    /* Ticks are added up before they become seconds, so that the order of nodes does not matter. */
    uint64_t *below = ARENA_ARRAY(a, n, uint64_t);
    for (uint32_t k = 0; k < s->rate_count; k++) {
        const struct report_stacks_rate *rate = &s->rates[k];
        for (uint32_t i = 0; i < n; i++) {
            below[i] = rate->self[i];
            sum_add(&below[i], rate->folded[i], &saturated);
            sum_add(&frames[i].ticks, below[i], &saturated);
            frames[i].self += (double)below[i] / rate->rate;
        }
        for (uint32_t i = n; i-- > 0;) {
            frames[i].total += (double)below[i] / rate->rate;
            if (frames[i].parent != REPORT_FRAME_ROOT) {
                sum_add(&below[frames[i].parent], below[i], &saturated);
            }
        }
    }

    /* First children and next siblings, in order. */
    uint32_t *order = ARENA_ARRAY(a, (size_t)n * 2, uint32_t), *child = ARENA_ARRAY(a, n, uint32_t),
             *next = ARENA_ARRAY(a, n, uint32_t), at = REPORT_FRAME_ROOT;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        child[i] = REPORT_FRAME_ROOT;
    }
    sort_merge(order, order + n, n, frames_compare, frames);
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t parent = frames[order[i]].parent;
        uint32_t *first = parent == REPORT_FRAME_ROOT ? &at : &child[parent];
        next[order[i]] = *first;
        *first = order[i];
    }
    uint32_t *place = order; /* of each frame in out */
    for (uint32_t used = 0; at != REPORT_FRAME_ROOT;) {
        out[used] = frames[at];
        if (out[used].parent != REPORT_FRAME_ROOT) {
            out[used].parent = place[out[used].parent];
        }
        place[at] = used++;
        uint32_t to = child[at];
        for (; to == REPORT_FRAME_ROOT && at != REPORT_FRAME_ROOT; at = frames[at].parent) {
            to = next[at];
        }
        at = to;
    }

    struct report_stack_facts *facts = ARENA_NEW(a, struct report_stack_facts);
    *facts = (struct report_stack_facts){.ticks = s->ticks,
                                         .coverage = g->coverage,
                                         .inferred = s->inferred_ticks,
                                         .cut = s->cut,
                                         .folded = s->folded,
                                         .incomplete = s->unknown,
                                         .frame_count = n,
                                         .frames = out};
    if (g->measures != NULL) {
        facts->by_groups = g->measures->by_groups;
        facts->groups = g->measures->groups;
        facts->overdispersion = g->measures->overdispersion;
    }
    r->stacks = facts;
    r->time_measured = g->time_measured;
}
