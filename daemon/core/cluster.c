#include "core/cluster.h"

#include <stdbool.h>

#include "proto/sort.h"
#include "proto/sum.h"

#define NONE UINT32_MAX

/* A cluster is a list of nodes, and has the number of its first one. */
struct clusters {
    const struct cluster_node *nodes;
    uint32_t count;
    uint32_t *best;          /* of each node: the caller with most calls, or NONE */
    uint64_t *best_weight;   /* its calls */
    uint32_t *leader;        /* towards the first node of its cluster, as in union-find */
    uint32_t *next, *last;   /* the list; last: of leaders */
    uint64_t *size, *weight; /* of leaders */
    uint32_t *order, *scratch;
};

static void clusters_init(struct clusters *c, struct arena *a, const struct cluster_node *nodes, uint32_t count)
{
    const size_t n = (size_t)count + 1;
    *c = (struct clusters){.nodes = nodes, .count = count};
    c->best = ARENA_ARRAY(a, n, uint32_t);
    c->best_weight = ARENA_ARRAY(a, n, uint64_t);
    c->leader = ARENA_ARRAY(a, n, uint32_t);
    c->next = ARENA_ARRAY(a, n, uint32_t);
    c->last = ARENA_ARRAY(a, n, uint32_t);
    c->size = ARENA_ARRAY(a, n, uint64_t);
    c->weight = ARENA_ARRAY(a, n, uint64_t);
    c->order = ARENA_ARRAY(a, n, uint32_t);
    c->scratch = ARENA_ARRAY(a, n, uint32_t);
    for (uint32_t i = 0; i < count; i++) {
        c->best[i] = c->next[i] = NONE;
        c->leader[i] = c->last[i] = c->order[i] = i;
        c->size[i] = nodes[i].size;
        c->weight[i] = nodes[i].weight;
    }
}

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

/* Appends the cluster of the node to that of its best caller. */
static void merge(struct clusters *c, uint32_t node)
{
    if (c->best[node] == NONE) {
        return;
    }
    const uint32_t to = find_leader(c, c->best[node]), from = find_leader(c, node);
    if (to == from || c->size[from] > CLUSTER_SIZE_MAX || c->size[to] > CLUSTER_SIZE_MAX - c->size[from]) {
        return;
    }
    bool saturated = false;
    c->next[c->last[to]] = from;
    c->last[to] = c->last[from];
    c->leader[from] = to;
    c->size[to] += c->size[from];
    sum_add(&c->weight[to], c->weight[from], &saturated);
}

void cluster_order(struct arena *a, const struct cluster_node *nodes, uint32_t count, const struct cluster_arc *arcs,
                   uint32_t arc_count, uint32_t *out)
{
    struct clusters c;
    clusters_init(&c, a, nodes, count);
    find_best(&c, a, arcs, arc_count);
    sort_merge(c.order, c.scratch, count, by_weight, &c);
    for (uint32_t i = 0; i < count; i++) {
        merge(&c, c.order[i]);
    }
    uint32_t leaders = 0, written = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (c.leader[i] == i) {
            c.order[leaders++] = i;
        }
    }
    sort_merge(c.order, c.scratch, leaders, by_density, &c);
    for (uint32_t i = 0; i < leaders; i++) {
        for (uint32_t node = c.order[i]; node != NONE; node = c.next[node]) {
            out[written++] = node;
        }
    }
}
