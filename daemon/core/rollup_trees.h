/* Trees of stacks in runs. Private to core/rollup*. */
#ifndef PROFD_CORE_ROLLUP_TREES_H
#define PROFD_CORE_ROLLUP_TREES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rollup.h"
#include "core/rollup_plan.h"

/* A rollup and the shares of its nodes, or NULL. */
struct rollup_trees {
    const struct counts *r;
    const uint64_t *groups;
};
/* Makes the trees of out the sum of both, of which the first LIMIT_STACK_TREES stay; its arrays, groups and the plan
 * have capacity for the nodes of both. Sets out->saturated, but never to false. O(nodes). */
void rollup_trees_merge(struct rollup_plan *p, const struct rollup_trees *a, const struct rollup_trees *b,
                        struct counts *out, uint64_t *groups);

/* Plans in right, for each node of b, where it is in a. False: a lacks one. O(nodes). */
bool rollup_trees_plan_within(struct rollup_plan *p, const struct counts *a, const struct counts *b);
/* Adds the counts of b to a as planned. */
void rollup_trees_add(const struct rollup_plan *p, const struct counts *b, struct counts *a);

/* Copies trees and nodes. out has capacity. */
void rollup_trees_copy(const struct counts *from, struct counts *out);

/* Folds leaves until no more than most nodes are left, as rollup.h says, with their shares (or NULL). Scratch comes
 * from the arena, which has a boundary. O(1) if there are no more, else O(nodes·log nodes). */
void rollup_trees_fold(struct arena *a, struct counts *r, uint64_t *groups, uint32_t most);

#endif
