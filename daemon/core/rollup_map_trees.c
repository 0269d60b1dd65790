#include "core/rollup_map_trees.h"

#include "proto/counts_tree.h"

static struct counts_frame map_frame(const uint32_t *map, const struct counts_nodes *nodes, uint32_t i)
{
    struct counts_frame frame = counts_node_frame(nodes, i);
    if (frame.build != COUNTS_NOWHERE) {
        frame.build = map[frame.build];
        frame.address = frame.build == COUNTS_NOWHERE ? COUNTS_FRAME_OUTSIDE : frame.address;
    }
    return frame;
}

/* The nodes of a tree with their new frames. Ticks that do not stay are 0. */
static void map_nodes(const uint32_t *map, bool alone, const struct rollup *r, const struct counts_tree *t,
                      struct counts_node *out)
{
    const struct counts_nodes nodes = COUNTS_NODES(r);
    uint32_t path[LIMIT_STACK_DEPTH];
    for (uint32_t i = 0; i < t->used; i++) {
        const uint32_t at = t->first + i, depth = nodes.depth[at];
        const struct counts_frame frame = map_frame(map, &nodes, at);
        const bool stays = !alone || (frame.build != COUNTS_NOWHERE && frame.kind == COUNTS_NODE_PC);
        out[i] = (struct counts_node){.parent = depth == 0 ? COUNTS_NOWHERE : path[depth - 1],
                                      .frame = frame,
                                      .ticks = stays ? nodes.ticks[at] : 0};
        path[depth] = i;
    }
}

bool rollup_map_trees(const uint32_t *map, bool alone, struct rollup_runs *runs, const struct rollup *r,
                      struct rollup_run **out)
{
    struct rollup_run *run =
        rollup_run_take(runs, &(struct rollup_rows){.trees = r->tree_count, .nodes = r->node_count});
    struct counts_node *in = ARENA_ARRAY(runs->arena, r->node_count, struct counts_node);
    if (run == NULL || in == NULL) {
        return false;
    }
    struct rollup *sum = &run->r;
    for (uint32_t t = 0; t < r->tree_count; t++) {
        const uint32_t first = sum->node_count;
        const struct counts_nodes to = {sum->node_depth + first, sum->node_kind + first, sum->node_build + first,
                                        sum->node_address + first, sum->node_ticks + first};
        uint32_t used = 0;
        map_nodes(map, alone, r, &r->trees[t], in);
        if (counts_tree_sort(in, r->trees[t].used, &to, &used, NULL, NULL) != PROFD_OK) {
            return false;
        }
        if (used > 0) {
            struct counts_tree *tree = &sum->trees[sum->tree_count++];
            *tree = r->trees[t];
            tree->first = first;
            tree->used = used;
            sum->node_count += used;
        }
    }
    sum->saturated = r->saturated;
    *out = run;
    return true;
}
