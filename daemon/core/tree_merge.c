#include "core/tree_merge.h"

#include "core/sum.h"

/* Where the pass is: the next node of both, and of the result. */
struct tree_cursor {
    uint32_t a, a_end, b, b_end, to;
};

static void merge_write(const struct counts_nodes *to, uint32_t at, const struct counts_nodes *from, uint32_t i)
{
    to->depth[at] = from->depth[i];
    to->kind[at] = from->kind[i];
    to->build[at] = from->build[i];
    to->address[at] = from->address[i];
    to->ticks[at] = from->ticks[i];
}

static void merge_nodes(const struct counts_nodes *a, const struct counts_nodes *b, const struct counts_nodes *to,
                        struct tree_cursor *c, const struct tree_sources *from, bool *saturated)
{
    while (c->a < c->a_end || c->b < c->b_end) {
        int order = c->a == c->a_end ? 1 : c->b == c->b_end ? -1 : counts_compare_nodes(a, c->a, b, c->b);
        merge_write(to, c->to, order <= 0 ? a : b, order <= 0 ? c->a : c->b);
        if (order == 0) {
            sum_add(&to->ticks[c->to], b->ticks[c->b], saturated);
        }
        if (from != NULL) {
            from->left[c->to] = order <= 0 ? c->a : COUNTS_NOWHERE;
            from->right[c->to] = order >= 0 ? c->b : COUNTS_NOWHERE;
        }
        c->a += order <= 0;
        c->b += order >= 0;
        c->to++;
    }
}

void tree_merge(const struct tree_list *a, const struct tree_list *b, struct counts_tree *trees,
                const struct counts_nodes *nodes, uint32_t *tree_count, uint32_t *node_count,
                const struct tree_sources *from, bool *saturated)
{
    struct tree_cursor c = {0};
    uint32_t n = 0;
    for (uint32_t i = 0, k = 0; i < a->count || k < b->count; n++) {
        int order = i == a->count ? 1 : k == b->count ? -1 : counts_compare_clocks(&a->trees[i], &b->trees[k]);
        uint32_t start = c.to;
        if (order <= 0) {
            c.a = a->trees[i].first;
            c.a_end = c.a + a->trees[i].used;
        }
        if (order >= 0) {
            c.b = b->trees[k].first;
            c.b_end = c.b + b->trees[k].used;
        }
        merge_nodes(&a->nodes, &b->nodes, nodes, &c, from, saturated);
        trees[n] = order <= 0 ? a->trees[i] : b->trees[k];
        trees[n].first = start;
        trees[n].used = c.to - start;
        i += order <= 0;
        k += order >= 0;
    }
    *tree_count = n;
    *node_count = c.to;
}
