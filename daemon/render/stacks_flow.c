#include "render/stacks_flow.h"

#define FLOW_ROUNDING 1e-9 /* less than this share of a total is a rounding error */

/* The dominator tree while it grows, and the order in which entities are visited: callers before callees. */
struct flow_tree {
    struct stacks_flow *flow;
    uint32_t count; /* entities */
    uint32_t *order;
    uint32_t *waiting; /* callers of an entity that were not visited yet */
    uint32_t *depth;   /* 1 below the root */
    uint32_t *jump;    /* an ancestor further up */
    bool *reached;     /* dominator is set */
};

uint32_t stacks_flow_entity(const struct stacks_flow *f, uint32_t frame)
{
    const struct report *r = f->report;
    if (frame & REPORT_CYCLE) {
        return r->function_count + (frame & ~REPORT_CYCLE);
    }
    uint32_t cycle = r->functions[frame].cycle;
    return cycle == 0 ? frame : r->function_count + cycle - 1;
}

static const struct report_arc *flow_callees(const struct report *r, uint32_t entity, uint32_t *count)
{
    if (entity >= r->function_count) {
        const struct report_cycle *c = &r->cycles[entity - r->function_count];
        *count = c->callee_count;
        return c->callees;
    }
    *count = r->functions[entity].cycle == 0 ? r->functions[entity].callee_count : 0;
    return r->functions[entity].callees;
}

bool stacks_flow_is_class(const struct report *report, uint32_t entity)
{
    return entity < report->function_count && report_kind_is_class(report->functions[entity].kind);
}

/* What the callers of the entity share. */
static double flow_reported(const struct report *r, uint32_t entity)
{
    if (entity >= r->function_count) {
        const struct report_cycle *c = &r->cycles[entity - r->function_count];
        return c->self + c->children;
    }
    return r->functions[entity].self + (stacks_flow_is_class(r, entity) ? 0 : r->functions[entity].children);
}

double stacks_flow_share(const struct stacks_flow *f, const struct report_arc *arc)
{
    uint32_t entity = stacks_flow_entity(f, arc->other);
    double all = flow_reported(f->report, entity);
    return arc->inside || f->undivided[entity] || !(all > 0) ? 0 : (arc->self + arc->children) / all;
}

double stacks_flow_uncalled(const struct report *r, uint32_t entity)
{
    bool cycle = entity >= r->function_count;
    const struct report_cycle *c = cycle ? &r->cycles[entity - r->function_count] : NULL;
    const struct report_arc *callers = cycle ? c->callers : r->functions[entity].callers;
    uint32_t count = cycle ? c->caller_count : r->functions[entity].caller_count;
    double all = flow_reported(r, entity), left = all;
    for (uint32_t i = 0; i < count; i++) {
        left -= callers[i].inside ? 0 : callers[i].self + callers[i].children;
    }
    return left > FLOW_ROUNDING * all ? left / all : 0;
}

static uint32_t tree_parent(const struct flow_tree *t, uint32_t v)
{
    return t->flow->dominator[v];
}

static uint32_t tree_depth(const struct flow_tree *t, uint32_t v)
{
    return v == STACKS_ROOT ? 0 : t->depth[v];
}

static uint32_t tree_jump(const struct flow_tree *t, uint32_t v)
{
    return v == STACKS_ROOT ? STACKS_ROOT : t->jump[v];
}

static uint32_t tree_common(const struct flow_tree *t, uint32_t x, uint32_t y)
{
    while (tree_depth(t, x) != tree_depth(t, y)) {
        uint32_t *deep = tree_depth(t, x) > tree_depth(t, y) ? &x : &y;
        uint32_t least = tree_depth(t, deep == &x ? y : x);
        *deep = tree_depth(t, tree_jump(t, *deep)) >= least ? tree_jump(t, *deep) : tree_parent(t, *deep);
    }
    while (x != y) {
        bool far = tree_jump(t, x) != tree_jump(t, y);
        x = far ? tree_jump(t, x) : tree_parent(t, x);
        y = far ? tree_jump(t, y) : tree_parent(t, y);
    }
    return x;
}

/* Hangs v below its dominator, which is final: all of its callers were visited. */
static void tree_add(struct flow_tree *t, uint32_t v)
{
    uint32_t parent = tree_parent(t, v), up = tree_jump(t, parent), above = tree_jump(t, up);
    uint32_t d = tree_depth(t, parent);
    t->depth[v] = d + 1;
    t->jump[v] =
        d - tree_depth(t, up) == tree_depth(t, up) - tree_depth(t, above) && parent != STACKS_ROOT ? above : parent;
}

/* Nothing is below the callee in a stack with this arc: it is in the caller's cycle, or a class of addresses. */
static bool flow_ends(const struct report *r, const struct report_arc *arc)
{
    return arc->inside || stacks_flow_is_class(r, arc->other);
}

/* Visits entities in topological order (Kahn, Topological sorting of large networks, 1962). Arcs between components of
 * the report are acyclic, those into classes of addresses left out. */
static void tree_visit(struct flow_tree *t)
{
    const struct report *r = t->flow->report;
    uint32_t ready = 0, n, entity;
    for (uint32_t v = 0; v < t->count; v++) {
        const struct report_arc *arcs = flow_callees(r, v, &n);
        for (uint32_t i = 0; i < n; i++) {
            t->waiting[stacks_flow_entity(t->flow, arcs[i].other)] += !flow_ends(r, &arcs[i]);
        }
    }
    for (uint32_t v = 0; v < t->count; v++) {
        if (t->waiting[v] == 0) {
            t->order[ready++] = v;
        }
    }
    for (uint32_t k = 0; k < ready; k++) {
        uint32_t v = t->order[k];
        if (!t->reached[v] || t->flow->rooted[v] > 0) {
            t->flow->dominator[v] = STACKS_ROOT;
        }
        tree_add(t, v);
        const struct report_arc *arcs = flow_callees(r, v, &n);
        for (uint32_t i = 0; i < n; i++) {
            if (flow_ends(r, &arcs[i])) {
                continue;
            }
            entity = stacks_flow_entity(t->flow, arcs[i].other);
            t->flow->dominator[entity] = t->reached[entity] ? tree_common(t, t->flow->dominator[entity], v) : v;
            t->reached[entity] = true;
            if (--t->waiting[entity] == 0) {
                t->order[ready++] = entity;
            }
        }
    }
    t->count = ready;
}

/* Totals, callees first. */
static void tree_sum(const struct flow_tree *t)
{
    struct stacks_flow *f = t->flow;
    const struct report *r = f->report;
    for (uint32_t k = t->count; k-- > 0;) {
        uint32_t v = t->order[k], n;
        const struct report_arc *arcs = flow_callees(r, v, &n);
        double total = v >= r->function_count ? r->cycles[v - r->function_count].self : r->functions[v].self;
        for (uint32_t i = 0; i < n; i++) {
            total += stacks_flow_share(f, &arcs[i]) * f->total[stacks_flow_entity(f, arcs[i].other)];
        }
        for (uint32_t c = f->first[v]; c != STACKS_ROOT; c = f->next[c]) {
            total += f->total[c];
        }
        if (stacks_flow_is_class(r, v)) {
            f->rooted[v] = total - (1 - f->rooted[v]) * f->total[v];
            continue;
        }
        f->total[v] = total;
        f->rooted[v] *= total;
        if (f->undivided[v]) {
            uint32_t d = f->dominator[v];
            f->rooted[v] = d == STACKS_ROOT ? total : 0;
            if (d != STACKS_ROOT) {
                f->next[v] = f->first[d];
                f->first[d] = v;
            }
        }
    }
}

struct stacks_flow *stacks_flow_make(struct arena *a, const struct report *report)
{
    uint32_t n = report->function_count + report->cycle_count;
    struct stacks_flow *f = ARENA_NEW(a, struct stacks_flow);
    struct flow_tree t = {.flow = f,
                          .count = n,
                          .order = ARENA_ARRAY(a, n, uint32_t),
                          .waiting = ARENA_ARRAY(a, n, uint32_t),
                          .depth = ARENA_ARRAY(a, n, uint32_t),
                          .jump = ARENA_ARRAY(a, n, uint32_t),
                          .reached = ARENA_ARRAY(a, n, bool)};
    *f = (struct stacks_flow){.report = report,
                              .total = ARENA_ARRAY(a, n, double),
                              .rooted = ARENA_ARRAY(a, n, double),
                              .undivided = ARENA_ARRAY(a, n, bool),
                              .dominator = ARENA_ARRAY(a, n, uint32_t),
                              .first = ARENA_ARRAY(a, n, uint32_t),
                              .next = ARENA_ARRAY(a, n, uint32_t)};
    for (uint32_t v = 0; v < n; v++) {
        f->first[v] = f->next[v] = STACKS_ROOT;
        bool member = v < report->function_count && report->functions[v].cycle != 0;
        f->total[v] = stacks_flow_is_class(report, v) ? report->functions[v].self : 0;
        f->rooted[v] = member ? 0 : stacks_flow_uncalled(report, v);
        f->undivided[v] = v >= report->function_count &&
                          report->cycles[v - report->function_count].caller_count + (f->rooted[v] > 0) > 1;
    }
    tree_visit(&t);
    tree_sum(&t);
    return f;
}
