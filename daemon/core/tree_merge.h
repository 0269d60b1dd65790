/* Sums of trees of stacks (proto/counts.h), in one pass over both. */
#ifndef PROFD_CORE_TREE_MERGE_H
#define PROFD_CORE_TREE_MERGE_H

#include <stdbool.h>

#include "proto/counts_tree.h"

/* Trees of one upload or sum. */
struct tree_list {
    const struct counts_tree *trees;
    struct counts_nodes nodes;
    uint32_t count;
};

/* For each node of the result, the nodes of the two that were added up; COUNTS_NOWHERE where one does not have it. */
struct tree_sources {
    uint32_t *left, *right;
};

/* Adds up a and b, both as counts_judge_trees has them but of any number of nodes: trees and nodes have space for those
 * of both. from (NULL if not needed) receives the sources. *saturated becomes true if ticks were limited to 2^63−1,
 * never false. The result may have more trees and nodes than limits.h allows; counts_tree_fold limits the nodes.
 * O(nodes). */
void tree_merge(const struct tree_list *a, const struct tree_list *b, struct counts_tree *trees,
                const struct counts_nodes *nodes, uint32_t *tree_count, uint32_t *node_count,
                const struct tree_sources *from, bool *saturated);

#endif
