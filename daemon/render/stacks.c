/* The tree of callers and callees, and how the time of cycles is placed in it. */
#include <stdlib.h>

#include "proto/sort.h"
#include "render/render_internal.h"

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

/* The entity of a frame (REPORT_CYCLE | position, or a function's position), and of a function: its cycle if it is in
 * one. */
static uint32_t stacks_flow_entity(const struct stacks_flow *f, uint32_t frame)
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

/* True for a class of addresses (report.h). Stacks begin in it or end in it, and none goes through it. */
static bool stacks_flow_is_class(const struct report *report, uint32_t entity)
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

/* The share of the callee's total that flows along an arc, 0 … 1; 0 for an arc inside a cycle and into an undivided
 * cycle. */
static double stacks_flow_share(const struct stacks_flow *f, const struct report_arc *arc)
{
    uint32_t entity = stacks_flow_entity(f, arc->other);
    double all = flow_reported(f->report, entity);
    return arc->inside || f->undivided[entity] || !(all > 0) ? 0 : (arc->self + arc->children) / all;
}

/* The part of the entity's total that no caller accounts for, 0 … 1. */
static double stacks_flow_uncalled(const struct report *r, uint32_t entity)
{
    if (entity >= r->function_count) {
        const struct report_cycle *c = &r->cycles[entity - r->function_count];
        return report_uncalled(c->self + c->children, c->callers, c->caller_count);
    }
    const struct report_function *f = &r->functions[entity];
    return r->uncalled ? r->uncalled[entity] : report_uncalled(flow_reported(r, entity), f->callers, f->caller_count);
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
        *deep = tree_depth(t, tree_jump(t, *deep)) >= least ? tree_jump(t, *deep) : t->flow->dominator[*deep];
    }
    while (x != y) {
        bool far = tree_jump(t, x) != tree_jump(t, y);
        x = far ? tree_jump(t, x) : t->flow->dominator[x];
        y = far ? tree_jump(t, y) : t->flow->dominator[y];
    }
    return x;
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

        /* All callers of v were visited, so that its dominator is final. */
        const uint32_t parent = t->flow->dominator[v], up = tree_jump(t, parent), above = tree_jump(t, up);
        const uint32_t d = tree_depth(t, parent);
        const bool far = d - tree_depth(t, up) == tree_depth(t, up) - tree_depth(t, above) && parent != STACKS_ROOT;
        t->depth[v] = d + 1;
        t->jump[v] = far ? above : parent;
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

/* Makes it in the arena. O((functions + arcs) log functions), no recursion.
 * Dominators of an acyclic graph by nearest common ancestors in topological order, these by skew-binary jumps (Myers,
 * An applicative random-access stack, 1983). */
static struct stacks_flow *stacks_flow_make(struct arena *a, const struct report *report)
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

    /* Totals, callees first. */
    for (uint32_t k = t.count; k-- > 0;) {
        uint32_t v = t.order[k], callees;
        const struct report_arc *arcs = flow_callees(report, v, &callees);
        double total =
            v >= report->function_count ? report->cycles[v - report->function_count].self : report->functions[v].self;
        for (uint32_t i = 0; i < callees; i++) {
            total += stacks_flow_share(f, &arcs[i]) * f->total[stacks_flow_entity(f, arcs[i].other)];
        }
        for (uint32_t c = f->first[v]; c != STACKS_ROOT; c = f->next[c]) {
            total += f->total[c];
        }
        if (stacks_flow_is_class(report, v)) {
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
    return f;
}

#define SMALLEST 1e-6                    /* of all time: a path with less is not worth a node */
#define NODES_MAX (2 * STACKS_NODES + 2) /* every node may have a child for what was cut below it */

struct growing_node {
    struct stack_node node;
    uint32_t first_child, next; /* STACKS_NONE at the end; only after the paths are followed */
};

struct growth {
    const struct report *report;
    const struct stacks_flow *flow;
    struct growing_node *nodes;
    uint32_t count, cuts; /* nodes, and those that represent what was cut */
    struct heap heap;     /* nodes not followed yet, most time first */
    uint32_t *cycle_node; /* child of the node being followed that stands for this cycle, valid if cycle_of says so */
    uint32_t *cycle_of;
    double smallest, cut;
};

static bool node_before(const void *context, uint32_t a, uint32_t b)
{
    const struct growth *g = context;
    double x = g->nodes[a].node.total, y = g->nodes[b].node.total;
    return x > y || (!(x < y) && a < b);
}

static bool growth_full(const struct growth *g, uint32_t parent)
{
    return g->count - g->cuts >= STACKS_NODES ||
           (parent != STACKS_NONE && g->nodes[parent].node.depth + 2 >= STACKS_DEPTH);
}

static uint32_t growth_add(struct growth *g, uint32_t parent, uint32_t frame, double total)
{
    uint32_t depth = parent == STACKS_NONE ? 0 : g->nodes[parent].node.depth + 1;
    g->nodes[g->count].node = (struct stack_node){.parent = parent, .frame = frame, .depth = depth, .total = total};
    return g->count++;
}

/* Time that flows from a node to a frame. Returns what could not be given a node. */
static double growth_flow(struct growth *g, uint32_t parent, uint32_t frame, double total)
{
    if (total < g->smallest || growth_full(g, parent)) {
        return total;
    }
    heap_push(&g->heap, growth_add(g, parent, frame, total));
    return 0;
}

static void growth_cut(struct growth *g, uint32_t parent, double cut)
{
    if (cut > 0) {
        uint32_t rest = growth_add(g, parent, STACKS_CUT, cut);
        g->nodes[rest].node.self = cut;
        g->cuts++;
        g->cut += cut;
    }
}

/* Callees; those in one cycle become one node. */
static double follow_arcs(struct growth *g, uint32_t at, double share, const struct report_arc *arcs, uint32_t count)
{
    const struct report *r = g->report;
    double cut = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entity = stacks_flow_entity(g->flow, arcs[i].other), cycle = r->functions[arcs[i].other].cycle;
        double total = share * stacks_flow_share(g->flow, &arcs[i]) * g->flow->total[entity];
        if (!(total > 0)) {
            continue;
        }
        if (cycle == 0) {
            cut += growth_flow(g, at, arcs[i].other, total);
        } else if (g->cycle_of[cycle - 1] == at + 1) {
            g->nodes[g->cycle_node[cycle - 1]].node.total += total;
        } else if (growth_full(g, at)) {
            cut += total;
        } else {
            g->cycle_of[cycle - 1] = at + 1;
            g->cycle_node[cycle - 1] = growth_add(g, at, REPORT_CYCLE | (cycle - 1), total);
        }
    }
    return cut;
}

static void follow(struct growth *g, uint32_t at)
{
    uint32_t frame = g->nodes[at].node.frame, first = g->count, entity = stacks_flow_entity(g->flow, frame);
    bool class = stacks_flow_is_class(g->report, entity), root = g->nodes[at].node.parent == STACKS_NONE;
    double all = class && root ? g->flow->rooted[entity] : g->flow->total[entity];
    double share = all > 0 ? g->nodes[at].node.total / all : 0, cut = 0;
    if (class && !root) {
        g->nodes[at].node.self = g->nodes[at].node.total;
        return;
    }
    if (frame & REPORT_CYCLE) {
        const struct report_cycle *c = &g->report->cycles[frame & ~REPORT_CYCLE];
        /* Members of a cycle have their own time only: how they call one another is not known. */
        for (uint32_t i = 0; i < c->member_count; i++) {
            const double self = share * g->report->functions[c->members[i].other].self;
            if (!(self > 0)) {
                continue;
            }
            if (self < g->smallest || growth_full(g, at)) {
                cut += self;
            } else {
                g->nodes[growth_add(g, at, c->members[i].other, self)].node.self = self;
            }
        }
        cut += follow_arcs(g, at, share, c->callees, c->callee_count);
    } else {
        const struct report_function *f = &g->report->functions[frame];
        g->nodes[at].node.self = share * f->self * (class ? stacks_flow_uncalled(g->report, entity) : 1);
        cut += follow_arcs(g, at, share, f->callees, f->callee_count);
    }
    /* Cycles below a node are queued when their time is whole. */
    for (uint32_t i = first; i < g->count; i++) {
        if (g->nodes[i].node.frame & REPORT_CYCLE) {
            heap_push(&g->heap, i);
        }
    }
    for (uint32_t c = g->flow->first[entity]; c != STACKS_ROOT; c = g->flow->next[c]) {
        cut += growth_flow(g, at, REPORT_CYCLE | (c - g->report->function_count), share * g->flow->total[c]);
    }
    growth_cut(g, at, cut);
}

static int compare_siblings(const void *left, const void *right, void *context)
{
    const struct growing_node *nodes = context;
    const struct stack_node *a = &nodes[*(const uint32_t *)left].node, *b = &nodes[*(const uint32_t *)right].node;
    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    if (a->total > b->total || a->total < b->total) {
        return a->total > b->total ? -1 : 1;
    }
    return a->frame < b->frame ? -1 : a->frame > b->frame;
}

/* Grows the tree from the roots, the paths with most time first, and lists it. */
static void stacks_derive(const struct report *report, struct arena *a, struct stack_tree *out)
{
    struct growth g = {.report = report, .smallest = SMALLEST * report->total};
    g.nodes = ARENA_ARRAY(a, NODES_MAX, struct growing_node);
    g.heap = (struct heap){node_before, &g, ARENA_ARRAY(a, NODES_MAX, uint32_t), 0};
    g.cycle_node = ARENA_ARRAY(a, (size_t)report->cycle_count + 1, uint32_t);
    g.cycle_of = ARENA_ARRAY(a, (size_t)report->cycle_count + 1, uint32_t);
    uint32_t *order = ARENA_ARRAY(a, NODES_MAX, uint32_t), root = STACKS_NONE, n = 0;
    struct stack_node *nodes = ARENA_ARRAY(a, NODES_MAX, struct stack_node);
    g.flow = stacks_flow_make(a, report);

    /* What no caller accounts for starts a stack: spontaneous functions, and cycles that have no caller in common. */
    double cut = 0;
    for (uint32_t i = 0; i < report->order_count; i++) {
        const uint32_t frame = report->order[i];
        const bool member = !(frame & REPORT_CYCLE) && report->functions[frame].cycle != 0;
        const double total = member ? 0 : g.flow->rooted[stacks_flow_entity(g.flow, frame)];
        if (total > 0) {
            cut += growth_flow(&g, STACKS_NONE, frame, total);
        }
    }
    growth_cut(&g, STACKS_NONE, cut);
    while (g.heap.count > 0) {
        follow(&g, heap_pop(&g.heap));
    }

    /* Links siblings, most time first. */
    for (uint32_t i = 0; i < g.count; i++) {
        order[i] = i;
        g.nodes[i].first_child = STACKS_NONE;
    }
    qsort_r(order, g.count, sizeof *order, compare_siblings, g.nodes);
    for (uint32_t i = g.count; i-- > 0;) {
        struct growing_node *node = &g.nodes[order[i]];
        uint32_t *first = node->node.parent == STACKS_NONE ? &root : &g.nodes[node->node.parent].first_child;
        node->next = *first;
        *first = order[i];
    }

    /* Depth first without recursion: down, else right, else up and right. */
    uint32_t *place = g.heap.items;
    for (uint32_t at = root; at != STACKS_NONE;) {
        const struct growing_node *node = &g.nodes[at];
        nodes[n] = node->node;
        if (node->node.parent != STACKS_NONE) {
            nodes[n].parent = place[node->node.parent];
        }
        place[at] = n++;
        if (node->first_child != STACKS_NONE) {
            at = node->first_child;
            continue;
        }
        while (at != STACKS_NONE && g.nodes[at].next == STACKS_NONE) {
            at = g.nodes[at].node.parent;
        }
        at = at == STACKS_NONE ? STACKS_NONE : g.nodes[at].next;
    }
    out->count = g.count;
    out->nodes = nodes;
    out->cut = g.cut;
    out->flow = g.flow;
}

const char *stacks_mark(const struct stack_tree *s)
{
    return s->synthetic ? "[synthetic stacks]" : NULL;
}

void stacks_make(const struct report *report, struct arena *a, struct stack_tree *out)
{
    struct stack_tree s = {.synthetic = !report->time_measured};
    if (report->time_measured) {
        /* The stacks that were seen, all of them. */
        const struct report_stack_facts *seen = report->stacks;
        struct stack_node *nodes = ARENA_ARRAY(a, seen->frame_count, struct stack_node);
        for (uint32_t i = 0; i < seen->frame_count; i++) {
            const struct report_frame *f = &seen->frames[i];
            nodes[i] = (struct stack_node){.parent = f->parent == REPORT_FRAME_ROOT ? STACKS_NONE : f->parent,
                                           .frame = f->function,
                                           .depth = f->depth,
                                           .total = f->total,
                                           .self = f->self,
                                           .inferred = f->inferred};
        }
        s.count = seen->frame_count;
        s.nodes = nodes;
    } else {
        stacks_derive(report, a, &s);
    }
    for (uint32_t i = 0; i < s.count; i++) {
        s.total += s.nodes[i].depth == 0 ? s.nodes[i].total : 0;
    }
    *out = s;
}

const char *stacks_frame_name(const struct name_list *names, const struct report *report, uint32_t frame,
                              struct arena *a)
{
    if (frame == STACKS_CUT) {
        return "[paths not followed]";
    }
    if (frame & REPORT_CYCLE) {
        return arena_format(a, "<cycle %u>", report->cycles[frame & ~REPORT_CYCLE].number);
    }
    return names->text[frame];
}
