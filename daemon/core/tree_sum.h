/* Sums of trees of stacks (proto/counts.h). */
#ifndef PROFD_CORE_TREE_SUM_H
#define PROFD_CORE_TREE_SUM_H

#include <stdbool.h>

#include "core/arena.h"
#include "proto/counts_tree.h"
#include "proto/status.h"

/* Sums of trees of stacks (proto/counts.h), in one pass over both. */

/* Trees of one upload or sum. */
struct tree_list {
    const struct counts_tree *trees;
    struct counts_nodes nodes;
    uint32_t count;
};

#define TREE_GROUPS 16u /* random groups of processes; as many as COUNTS_GROUPS */

/* A finished sum: trees and nodes as counts_judge_trees has them, at most LIMIT_STACK_NODES nodes. */
struct tree_total {
    uint32_t tree_count, node_count;
    struct counts_tree *trees;
    struct counts_nodes nodes;
    uint64_t *shares; /* ticks of each node by group: [node · TREE_GROUPS + group]; NULL if not asked for */
};

/* What is added, and as what. */
struct tree_addend {
    struct tree_list list;
    const uint32_t *map;    /* the sum's index of each build; NULL: the same */
    bool alone;             /* builds that map to COUNTS_NOWHERE are left out, see below */
    uint32_t group;         /* of all ticks, where shares is NULL; TREE_GROUPS: not known, they are in no share */
    const uint64_t *shares; /* as in struct tree_total */
};

/* A sum in the making; lives in its arena, which has a boundary. shares: ticks by group are wanted. */
struct tree_sum;
struct tree_sum *tree_sum_new(struct arena *a, bool shares);
/* Adds trees. alone: only stacks that end at a program counter in a build that stays count, as its histograms do, which
 * are all that is left of these; return addresses in other builds become COUNTS_FRAME_OUTSIDE, several in sequence one.
 * O(nodes) if the map ascends and all builds stay, else O(nodes log nodes), and merging. Sums of 4 times
 * LIMIT_STACK_NODES nodes are folded: so the memory that a sum takes does not depend on how many are added. Of more
 * than LIMIT_STACK_TREES clocks the first ones in their order stay, as in sums (core/rollup.h). NO_MEMORY or OK; except
 * after OK, the sum is good for nothing more. */
enum profd_status tree_sum_add(struct tree_sum *s, const struct tree_addend *more, struct profd_error *e);
/* The sum, sorted and folded to LIMIT_STACK_NODES, in the arena. It is the last that is done with s. *saturated becomes
 * true if ticks were limited to 2^63−1, never false. O(n log n). */
enum profd_status tree_sum_finish(struct tree_sum *s, struct tree_total *out, bool *saturated, struct profd_error *e);

#endif
