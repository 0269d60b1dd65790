#include "core/rollup_trees.h"

#include <string.h>

#include "core/sum.h"
#include "core/tree_merge.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"

static struct tree_list list_of(const struct counts *r)
{
    return (struct tree_list){.trees = r->trees, .nodes = COUNTS_NODES(r), .count = r->tree_count};
}

void rollup_trees_merge(struct rollup_plan *p, const struct rollup_trees *a, const struct rollup_trees *b,
                        struct counts *out, uint64_t *groups)
{
    const struct tree_list x = list_of(a->r), y = list_of(b->r);
    const struct counts_nodes nodes = COUNTS_NODES(out);
    const struct tree_sources from = {p->left, p->right};
    tree_merge(&x, &y, out->trees, &nodes, &out->tree_count, &out->node_count, &from, &out->saturated);
    if (out->tree_count > LIMIT_STACK_TREES) {
        out->tree_count = LIMIT_STACK_TREES;
        out->node_count = out->trees[LIMIT_STACK_TREES].first;
    }
    if (groups != NULL) {
        rollup_plan_groups(p, a->groups, b->groups, groups, out->node_count);
    }
}

static bool plan_tree_within(uint32_t *plan, const struct counts_nodes *a, const struct counts_tree *x,
                             const struct counts_nodes *b, const struct counts_tree *y)
{
    uint32_t i = x->first;
    for (uint32_t j = y->first; j < y->first + y->used; j++, i++) {
        int order = -1;
        while (i < x->first + x->used && (order = counts_compare_nodes(a, i, b, j)) < 0) {
            i++;
        }
        if (order != 0) {
            return false;
        }
        plan[j] = i;
    }
    return true;
}

bool rollup_trees_plan_within(struct rollup_plan *p, const struct counts *a, const struct counts *b)
{
    const struct counts_nodes x = COUNTS_NODES(a), y = COUNTS_NODES(b);
    uint32_t i = 0;
    for (uint32_t k = 0; k < b->tree_count; k++, i++) {
        int order = -1;
        while (i < a->tree_count && (order = counts_compare_clocks(&a->trees[i], &b->trees[k])) < 0) {
            i++;
        }
        if (order != 0 || !plan_tree_within(p->right, &x, &a->trees[i], &y, &b->trees[k])) {
            return false;
        }
    }
    return true;
}

void rollup_trees_add(const struct rollup_plan *p, const struct counts *b, struct counts *a)
{
    for (uint32_t j = 0; j < b->node_count; j++) {
        sum_add(&a->node_ticks[p->right[j]], b->node_ticks[j], &a->saturated);
    }
}

void rollup_trees_copy(const struct counts *from, struct counts *out)
{
    const uint32_t n = from->node_count;
    out->tree_count = from->tree_count;
    out->node_count = n;
    if (n == 0) {
        return;
    }
    memcpy(out->trees, from->trees, from->tree_count * sizeof *out->trees);
    memcpy(out->node_depth, from->node_depth, n * sizeof *out->node_depth);
    memcpy(out->node_kind, from->node_kind, n * sizeof *out->node_kind);
    memcpy(out->node_build, from->node_build, n * sizeof *out->node_build);
    memcpy(out->node_address, from->node_address, n * sizeof *out->node_address);
    memcpy(out->node_ticks, from->node_ticks, n * sizeof *out->node_ticks);
}

void rollup_trees_fold(struct arena *a, struct counts *r, uint64_t *groups, uint32_t most)
{
    const struct counts_nodes nodes = COUNTS_NODES(r);
    const uint32_t n = r->node_count;
    if (n <= most) {
        return;
    }
    uint32_t *place = ARENA_ARRAY(a, n, uint32_t);
    if (counts_tree_fold(r->trees, r->tree_count, &nodes, &r->node_count, most, place, NULL)) {
        arena_fail(a);
    }
    if (groups == NULL) {
        return;
    }
    const size_t left = (size_t)r->node_count * COUNTS_GROUPS;
    uint64_t *sums = ARENA_ARRAY(a, left, uint64_t);
    for (uint32_t i = 0; i < n; i++) {
        rollup_shares_add(groups + (size_t)i * COUNTS_GROUPS, sums + (size_t)place[i] * COUNTS_GROUPS);
    }
    memcpy(groups, sums, left * sizeof *sums);
}
