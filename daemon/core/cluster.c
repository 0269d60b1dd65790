#include "core/cluster.h"

#include <stdbool.h>

#include "proto/sort.h"
#include "proto/sum.h"

#define NONE UINT32_MAX

/* A cluster is a list of nodes, and has the number of its first one. */
struct clusters {
    const struct cluster_node *nodes;
    uint32_t *best;          /* of each node: the caller with most calls, or NONE */
    uint64_t *best_weight;   /* its calls */
    uint32_t *leader;        /* towards the first node of its cluster, as in union-find */
    uint32_t *next, *last;   /* the list; last: of leaders */
    uint64_t *size, *weight; /* of leaders */
};

/* Arcs of one pair must stand together. */
static int by_pair(const void *context, uint32_t left, uint32_t right)
{
    const struct cluster_arc *a = &((const struct cluster_arc *)context)[left],
                             *b = &((const struct cluster_arc *)context)[right];
    int to = a->to < b->to ? -1 : a->to > b->to;
    return to != 0 ? to : a->from < b->from ? -1 : a->from > b->from;
}

static void find_best(struct clusters *c, struct arena *a, const struct cluster_arc *arcs, uint32_t n)
{
    uint32_t *order = ARENA_ARRAY(a, (size_t)n + 1, uint32_t), *scratch = ARENA_ARRAY(a, (size_t)n + 1, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    sort_merge(order, scratch, n, by_pair, arcs);
    for (uint32_t i = 0; i < n;) {
        const struct cluster_arc *first = &arcs[order[i]];
        uint64_t weight = 0;
        bool saturated = false;
        for (; i < n && by_pair(arcs, order[i], (uint32_t)(first - arcs)) == 0; i++) {
            sum_add(&weight, arcs[order[i]].weight, &saturated);
        }
        if (first->from != first->to && weight > c->best_weight[first->to]) {
            c->best[first->to] = first->from;
            c->best_weight[first->to] = weight;
        }
    }
}

static int by_weight(const void *context, uint32_t a, uint32_t b)
{
    const struct clusters *c = context;
    return c->nodes[a].weight > c->nodes[b].weight ? -1 : c->nodes[a].weight < c->nodes[b].weight;
}

static double density(const struct clusters *c, uint32_t leader)
{
    return (double)c->weight[leader] / (double)(c->size[leader] > 0 ? c->size[leader] : 1);
}

static int by_density(const void *context, uint32_t a, uint32_t b)
{
    double x = density(context, a), y = density(context, b);
    return x > y ? -1 : x < y;
}

static uint32_t find_leader(struct clusters *c, uint32_t node)
{
    while (c->leader[node] != node) {
        c->leader[node] = c->leader[c->leader[node]];
        node = c->leader[node];
    }
    return node;
}

void cluster_order(struct arena *a, const struct cluster_node *nodes, uint32_t count, const struct cluster_arc *arcs,
                   uint32_t arc_count, uint32_t *out)
{
    const size_t n = (size_t)count + 1;
    struct clusters c = {.nodes = nodes,
                         .best = ARENA_ARRAY(a, n, uint32_t),
                         .best_weight = ARENA_ARRAY(a, n, uint64_t),
                         .leader = ARENA_ARRAY(a, n, uint32_t),
                         .next = ARENA_ARRAY(a, n, uint32_t),
                         .last = ARENA_ARRAY(a, n, uint32_t),
                         .size = ARENA_ARRAY(a, n, uint64_t),
                         .weight = ARENA_ARRAY(a, n, uint64_t)};
    uint32_t *order = ARENA_ARRAY(a, n, uint32_t), *scratch = ARENA_ARRAY(a, n, uint32_t);
    for (uint32_t i = 0; i < count; i++) {
        c.best[i] = c.next[i] = NONE;
        c.leader[i] = c.last[i] = order[i] = i;
        c.size[i] = nodes[i].size;
        c.weight[i] = nodes[i].weight;
    }
    find_best(&c, a, arcs, arc_count);

    /* The heaviest first, each node's cluster is appended to that of its best caller. */
    sort_merge(order, scratch, count, by_weight, &c);
    for (uint32_t i = 0; i < count; i++) {
        if (c.best[order[i]] == NONE) {
            continue;
        }
        const uint32_t to = find_leader(&c, c.best[order[i]]), from = find_leader(&c, order[i]);
        if (to != from && c.size[from] <= CLUSTER_SIZE_MAX && c.size[to] <= CLUSTER_SIZE_MAX - c.size[from]) {
            bool saturated = false;
            c.next[c.last[to]] = from;
            c.last[to] = c.last[from];
            c.leader[from] = to;
            c.size[to] += c.size[from];
            sum_add(&c.weight[to], c.weight[from], &saturated);
        }
    }
    uint32_t leaders = 0, written = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (c.leader[i] == i) {
            order[leaders++] = i;
        }
    }
    sort_merge(order, scratch, leaders, by_density, &c);
    for (uint32_t i = 0; i < leaders; i++) {
        for (uint32_t node = order[i]; node != NONE; node = c.next[node]) {
            out[written++] = node;
        }
    }
}
