#include "render/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "core/heap.h"
#include "render/stacks_flow.h"

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

/* Time of a node that has nothing below it. Returns what could not be given a node. */
static double growth_leaf(struct growth *g, uint32_t parent, uint32_t frame, double total)
{
    if (total < g->smallest || growth_full(g, parent)) {
        return total;
    }
    g->nodes[growth_add(g, parent, frame, total)].node.self = total;
    return 0;
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

/* Members of a cycle have their own time only: how they call one another is not known. */
static double follow_members(struct growth *g, uint32_t at, double share, const struct report_cycle *c)
{
    double cut = 0;
    for (uint32_t i = 0; i < c->member_count; i++) {
        double self = share * g->report->functions[c->members[i].other].self;
        if (self > 0) {
            cut += growth_leaf(g, at, c->members[i].other, self);
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
        cut += follow_members(g, at, share, c);
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

/* What no caller accounts for starts a stack: spontaneous functions, and cycles that have no caller in common. */
static void plant(struct growth *g)
{
    const struct report *r = g->report;
    double cut = 0;
    for (uint32_t i = 0; i < r->order_count; i++) {
        uint32_t frame = r->order[i];
        if (!(frame & REPORT_CYCLE) && r->functions[frame].cycle != 0) {
            continue;
        }
        double total = g->flow->rooted[stacks_flow_entity(g->flow, frame)];
        if (total > 0) {
            cut += growth_flow(g, STACKS_NONE, frame, total);
        }
    }
    growth_cut(g, STACKS_NONE, cut);
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

/* Links siblings, most time first. Returns the first root. order is scratch of count elements. */
static uint32_t link_siblings(struct growth *g, uint32_t *order)
{
    uint32_t root = STACKS_NONE;
    for (uint32_t i = 0; i < g->count; i++) {
        order[i] = i;
        g->nodes[i].first_child = STACKS_NONE;
    }
    qsort_r(order, g->count, sizeof *order, compare_siblings, g->nodes);
    for (uint32_t i = g->count; i-- > 0;) {
        struct growing_node *n = &g->nodes[order[i]];
        uint32_t *first = n->node.parent == STACKS_NONE ? &root : &g->nodes[n->node.parent].first_child;
        n->next = *first;
        *first = order[i];
    }
    return root;
}

/* Depth first without recursion: down, else right, else up and right. */
static void list_nodes(const struct growth *g, uint32_t root, uint32_t *place, struct stack_node *out)
{
    uint32_t n = 0, at = root;
    while (at != STACKS_NONE) {
        const struct growing_node *node = &g->nodes[at];
        out[n] = node->node;
        if (node->node.parent != STACKS_NONE) {
            out[n].parent = place[node->node.parent];
        }
        place[at] = n++;
        if (node->first_child != STACKS_NONE) {
            at = node->first_child;
            continue;
        }
        while (at != STACKS_NONE && g->nodes[at].next == STACKS_NONE) {
            at = g->nodes[at].node.parent;
        }
        at = at == STACKS_NONE ? STACKS_NONE : g->nodes[at].next;
    }
}

const char *stacks_mark(const struct stacks *s)
{
    return s->synthetic ? "[synthetic stacks]" : NULL;
}

void stacks_make(const struct report *report, struct arena *a, struct stacks *out)
{
    if (report->time_measured) {
        /* The stacks that were seen, all of them. */
        const struct report_stack_facts *seen = report->stacks;
        struct stack_node *nodes = ARENA_ARRAY(a, seen->frame_count, struct stack_node);
        *out = (struct stacks){.count = seen->frame_count, .nodes = nodes};
        for (uint32_t i = 0; i < seen->frame_count; i++) {
            const struct report_frame *f = &seen->frames[i];
            nodes[i] = (struct stack_node){.parent = f->parent == REPORT_FRAME_ROOT ? STACKS_NONE : f->parent,
                                           .frame = f->function,
                                           .depth = f->depth,
                                           .total = f->total,
                                           .self = f->self,
                                           .inferred = f->inferred};
            out->total += f->depth == 0 ? f->total : 0;
        }
        return;
    }
    struct growth g = {.report = report, .smallest = SMALLEST * report->total};
    g.nodes = ARENA_ARRAY(a, NODES_MAX, struct growing_node);
    g.heap = (struct heap){node_before, &g, ARENA_ARRAY(a, NODES_MAX, uint32_t), 0};
    g.cycle_node = ARENA_ARRAY(a, (size_t)report->cycle_count + 1, uint32_t);
    g.cycle_of = ARENA_ARRAY(a, (size_t)report->cycle_count + 1, uint32_t);
    uint32_t *order = ARENA_ARRAY(a, NODES_MAX, uint32_t);
    struct stack_node *nodes = ARENA_ARRAY(a, NODES_MAX, struct stack_node);
    g.flow = stacks_flow_make(a, report);
    plant(&g);
    while (g.heap.count > 0) {
        follow(&g, heap_pop(&g.heap));
    }
    list_nodes(&g, link_siblings(&g, order), g.heap.items, nodes);
    struct stacks s = {.count = g.count, .nodes = nodes, .cut = g.cut, .synthetic = true, .flow = g.flow};
    for (uint32_t i = 0; i < g.count; i++) {
        s.total += nodes[i].depth == 0 ? nodes[i].total : 0;
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
