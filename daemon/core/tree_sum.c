#include "core/tree_sum.h"

#include <string.h>

#include "core/runs.h"
#include "proto/limits.h"
#include "proto/sum.h"

_Static_assert(TREE_GROUPS == COUNTS_GROUPS, "a row of the one is a row of the other");

struct tree_sum {
    struct arena *arena;
    struct arena *scratch; /* of trees that are renumbered */
    struct runs runs;      /* in an arena of their own, which goes with them */
    struct runs_stack stack;
};

struct tree_sum *tree_sum_new(struct arena *a, bool shares)
{
    struct tree_sum *s = ARENA_NEW(a, struct tree_sum);
    s->arena = a;
    s->scratch = arena_new_child(a, 0);
    s->runs = (struct runs){.arena = arena_new_child(a, 0), .spread = shares};
    return s;
}

static bool tree_is_outside(const struct counts_frame *f)
{
    return f->build == COUNTS_NOWHERE && f->address == COUNTS_FRAME_OUTSIDE && f->kind == COUNTS_NODE_RETURN;
}

/* The nodes of a tree under their new numbers, each after its parent. source: of each of them, the stored node. Returns
 * how many there are: a frame outside joins the one above it, if builds are left out. */
static uint32_t tree_map(const struct tree_addend *more, const struct counts *r, const struct counts_tree *t,
                         struct counts_node *nodes, uint32_t *source)
{
    const struct counts_nodes from = COUNTS_NODES(r);
    uint32_t path[LIMIT_STACK_DEPTH + 1] = {COUNTS_NOWHERE}, n = 0;
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        struct counts_frame f = counts_node_frame(&from, i);
        uint32_t *at = &path[from.depth[i] + 1];
        if (f.build != COUNTS_NOWHERE && more->map != NULL) {
            f.build = more->map[f.build];
            f.address = f.build == COUNTS_NOWHERE ? COUNTS_FRAME_OUTSIDE : f.address;
        }
        if (more->alone && tree_is_outside(&f) && at[-1] != COUNTS_NOWHERE && tree_is_outside(&nodes[at[-1]].frame)) {
            *at = at[-1];
            continue;
        }
        const bool counts = !more->alone || (f.kind == COUNTS_NODE_PC && f.build != COUNTS_NOWHERE);
        nodes[n] = (struct counts_node){at[-1], f, counts ? from.ticks[i] : 0};
        source[n] = i;
        *at = n++;
    }
    return n;
}

/* Adds trees whose order is another one under the new numbers. */
static enum profd_status tree_add_mapped(struct tree_sum *s, const struct tree_addend *more,
                                         const struct runs_run *from, uint32_t group, struct profd_error *e)
{
    const uint32_t most = from->r.node_count;
    struct counts_node *nodes = ARENA_ARRAY(s->scratch, most, struct counts_node);
    uint32_t *source = ARENA_ARRAY(s->scratch, most, uint32_t), *place = ARENA_ARRAY(s->scratch, most, uint32_t);
    struct runs_run *run =
        runs_take(&s->runs, (const uint32_t[COUNTS_KINDS]){0, 0, 0, from->r.tree_count, from->r.node_count});
    struct counts *r = &run->r;
    for (const struct counts_tree *t = from->r.trees; t < from->r.trees + from->r.tree_count; t++) {
        const uint32_t n = tree_map(more, &from->r, t, nodes, source), first = r->node_count;
        const struct counts_nodes out = {r->node_depth + first, r->node_kind + first, r->node_build + first,
                                         r->node_address + first, r->node_ticks + first};
        uint32_t used = 0;
        TRY(counts_tree_sort(nodes, n, &out, &used, place, e));
        if (used == 0) {
            continue;
        }
        r->trees[r->tree_count] = *t;
        r->trees[r->tree_count].first = first;
        r->trees[r->tree_count++].used = used;
        r->node_count += used;
        uint64_t *shares = run->s.nodes;
        if (shares == NULL) {
            continue;
        }
        shares += (size_t)first * COUNTS_GROUPS;
        memset(shares, 0, (size_t)used * COUNTS_GROUPS * sizeof *shares);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t *to = shares + (size_t)place[i] * COUNTS_GROUPS;
            for (uint32_t g = 0; g < COUNTS_GROUPS && nodes[i].ticks > 0; g++) {
                sum_add(&to[g],
                        from->s.nodes != NULL ? from->s.nodes[(size_t)source[i] * COUNTS_GROUPS + g]
                        : g == group          ? nodes[i].ticks
                                              : 0,
                        &r->saturated);
            }
        }
    }
    arena_reset(s->scratch);
    runs_push(&s->runs, &s->stack, run, true);
    return PROFD_OK;
}

enum profd_status tree_sum_add(struct tree_sum *s, const struct tree_addend *more, struct profd_error *e)
{
    const struct counts_nodes *n = &more->list.nodes;
    struct runs_run run = {.r = {.tree_count = more->list.count, .node_ticks = n->ticks}};
    if (more->list.count == 0) {
        return PROFD_OK;
    }
    memcpy(&run.r.trees, &more->list.trees, sizeof run.r.trees); /* they are only read */
    memcpy(&run.s.nodes, &more->shares, sizeof run.s.nodes);
    run.r.node_count = run.r.trees[run.r.tree_count - 1].first + run.r.trees[run.r.tree_count - 1].used;
    run.r.node_depth = n->depth;
    run.r.node_kind = n->kind;
    run.r.node_build = n->build;
    run.r.node_address = n->address;
    const uint32_t group = more->shares == NULL && more->group < COUNTS_GROUPS ? more->group : COUNTS_GROUPS;
    /* Trees stay as they are if the order by new numbers is that by old ones, and nothing is left out. */
    uint32_t builds = 0;
    bool ascends = !more->alone;
    for (uint32_t i = 0; i < run.r.node_count && more->map != NULL; i++) {
        const uint32_t build = run.r.node_build[i];
        builds = build != COUNTS_NOWHERE && build >= builds ? build + 1 : builds;
    }
    for (uint32_t i = 0; i < builds && ascends; i++) {
        ascends = more->map[i] != COUNTS_NOWHERE && (i == 0 || more->map[i] > more->map[i - 1]);
    }
    if (!ascends) {
        return tree_add_mapped(s, more, &run, group, e);
    }
    struct runs_run *copy = runs_copy(&s->runs, &run, group);
    for (uint32_t i = 0; i < copy->r.node_count && more->map != NULL; i++) {
        uint32_t *build = &copy->r.node_build[i];
        *build = *build == COUNTS_NOWHERE ? COUNTS_NOWHERE : more->map[*build];
    }
    runs_push(&s->runs, &s->stack, copy, true);
    return PROFD_OK;
}

enum profd_status tree_sum_finish(struct tree_sum *s, struct tree_total *out, bool *saturated, struct profd_error *e)
{
    (void)e;
    struct runs kept = {.arena = s->arena, .spread = s->runs.spread};
    const struct runs_run *run = runs_copy(&kept, runs_limit(&s->runs, runs_close(&s->runs, &s->stack)), COUNTS_GROUPS);
    *out = (struct tree_total){run->r.tree_count, run->r.node_count, run->r.trees, COUNTS_NODES(&run->r), run->s.nodes};
    *saturated |= run->r.saturated;
    arena_free(s->runs.arena);
    arena_free(s->scratch);
    return PROFD_OK;
}
