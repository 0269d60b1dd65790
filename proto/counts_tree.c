#include "proto/counts_tree.h"

#include <stdlib.h>
#include <string.h>

#include "proto/collector.h"
#include "proto/counts.h"
#include "proto/limits.h"
#include "proto/sort.h"
#include "proto/sum.h"
#include "proto/varint.h"

struct counts_frame counts_node_frame(const struct counts_nodes *n, uint32_t at)
{
    return (struct counts_frame){.address = n->address[at], .build = n->build[at], .kind = n->kind[at]};
}

int counts_compare_frames(const struct counts_frame *a, const struct counts_frame *b)
{
    const int order = compare_pairs(a->build, b->build, a->address, b->address);
    return order != 0 ? order : a->kind - b->kind;
}

int counts_compare_clocks(const struct counts_tree *a, const struct counts_tree *b)
{
    const int dimension = strncmp(a->dimension, b->dimension, sizeof a->dimension);
    return a->rate != b->rate ? compare_u64(a->rate, b->rate)
           : dimension != 0   ? dimension
                              : a->abbreviation - b->abbreviation;
}

/* COUNTS_NOWHERE has two frames, one of them at depth 0 only. */
static bool frame_valid(const struct counts_frame *f, uint32_t depth)
{
    return f->build != COUNTS_NOWHERE || f->address == COUNTS_FRAME_OUTSIDE ||
           (f->address == COUNTS_FRAME_INCOMPLETE && depth == 0 && f->kind == COUNTS_NODE_RETURN);
}

/* Checks a node of the tree t. path[d]: the node of depth d above the node before. */
static enum profd_status judge_node(const struct counts_nodes *n, const struct counts_tree *t, uint32_t at,
                                    const uint32_t *path, uint32_t builds, struct profd_error *e)
{
    const struct counts_frame f = counts_node_frame(n, at);
    const unsigned depth = n->depth[at], before = at == t->first ? 0 : n->depth[at - 1] + 1u;
    FAIL_IF(f.kind > COUNTS_NODE_PC, e, PROFD_MALFORMED, "node %u of stacks: kind %u is not known", at, f.kind);
    FAIL_IF(f.build != COUNTS_NOWHERE && f.build >= builds, e, PROFD_MALFORMED,
            "node %u of stacks of build %u: the upload has %u", at, f.build, builds);
    FAIL_IF(!frame_valid(&f, depth), e, PROFD_MALFORMED, "node %u of stacks: address 0x%llx of no build at depth %u",
            at, (unsigned long long)f.address, depth);
    FAIL_IF(depth > before, e, PROFD_MALFORMED, "node %u of stacks: depth %u, at most %u is possible there", at, depth,
            before);
    FAIL_IF(depth >= LIMIT_STACK_DEPTH, e, PROFD_TOO_LARGE, "node %u of stacks: depth %u, at most %u", at, depth,
            LIMIT_STACK_DEPTH - 1);
    FAIL_IF(at > t->first && depth == before && n->kind[at - 1] == COUNTS_NODE_PC, e, PROFD_MALFORMED,
            "node %u of stacks is below a program counter", at);
    FAIL_IF(at > t->first && depth < before && counts_compare_nodes(n, path[depth], n, at) >= 0, e, PROFD_MALFORMED,
            "node %u of stacks is not after its sibling %u", at, path[depth]);
    const bool leaf = at + 1 == t->first + t->used || n->depth[at + 1] <= depth;
    FAIL_IF(leaf && n->ticks[at] == 0, e, PROFD_MALFORMED, "node %u of stacks is a leaf with 0 ticks", at);
    return PROFD_OK;
}

enum profd_status counts_judge_trees(const struct counts_tree *trees, uint32_t tree_count,
                                     const struct counts_nodes *nodes, uint32_t node_count, uint32_t builds,
                                     struct profd_error *e)
{
    FAIL_IF(tree_count > LIMIT_STACK_TREES, e, PROFD_TOO_LARGE, "stacks of %u clocks, at most %u", tree_count,
            LIMIT_STACK_TREES);
    FAIL_IF(node_count > LIMIT_STACK_NODES, e, PROFD_TOO_LARGE, "%u nodes of stacks, at most %u", node_count,
            LIMIT_STACK_NODES);
    uint32_t first = 0;
    for (uint32_t i = 0; i < tree_count; i++) {
        const struct counts_tree *t = &trees[i];
        FAIL_IF(t->rate < 1 || t->rate > LIMIT_RATE, e, PROFD_MALFORMED,
                "stacks %u: rate of %u ticks per second; it must be 1 to %u", i, t->rate, LIMIT_RATE);
        FAIL_IF(!counts_dimension_valid(t->dimension, t->abbreviation), e, PROFD_MALFORMED,
                "stacks %u: the dimension must be up to 15 printable ASCII characters", i);
        FAIL_IF(collector_is_dimension(t->dimension), e, PROFD_MALFORMED, "stacks %u of dimension " COLLECTOR_DIMENSION,
                i);
        FAIL_IF(i > 0 && counts_compare_clocks(&trees[i - 1], t) >= 0, e, PROFD_MALFORMED,
                "stacks %u: rate and dimension are not after those of stacks %u", i, i - 1);
        FAIL_IF(t->first != first || t->used < 1 || t->used > node_count - first, e, PROFD_MALFORMED,
                "stacks %u: %u nodes from %u on, of %u", i, t->used, t->first, node_count);
        uint32_t path[LIMIT_STACK_DEPTH] = {0};
        for (uint32_t k = first; k < first + t->used; k++) {
            TRY(judge_node(nodes, t, k, path, builds, e));
            path[nodes->depth[k]] = k;
        }
        first += t->used;
    }
    FAIL_IF(first != node_count, e, PROFD_MALFORMED, "%u nodes of stacks are in no tree", node_count - first);
    return PROFD_OK;
}

/* ---- making a tree ---- */

/* A node while its level is sorted. */
struct level_key {
    uint64_t address;
    uint32_t parent; /* number of the merged parent */
    uint32_t build, at;
    uint8_t kind;
};

/* Merged nodes are numbered level by level; those of one parent follow each other, sorted. */
struct tree_sort {
    const struct counts_node *in;
    uint32_t n;
    uint8_t *depth;         /* of each input node, at most LIMIT_STACK_DEPTH − 1 */
    uint32_t *merged;       /* of each input node: the number of its merged node */
    uint32_t *by_level;     /* input nodes by depth */
    struct level_key *keys; /* of one level */
    uint32_t *parent;       /* of each merged node */
    uint32_t *sample;       /* and an input node with its frame */
    uint64_t *own, *within; /* its ticks; and with those below it */
    uint32_t *placed;       /* its index in the output */
    uint32_t merged_count;
};

static int compare_keys(const void *left, const void *right)
{
    const struct level_key *a = left, *b = right;
    return a->parent != b->parent || a->build != b->build ? compare_pairs(a->parent, b->parent, a->build, b->build)
           : a->address != b->address                     ? compare_u64(a->address, b->address)
                                                          : compare_pairs(a->kind, b->kind, a->at, b->at);
}

/* Finds depths, and how many nodes each level has. */
static enum profd_status sort_judge(struct tree_sort *s, uint32_t levels[LIMIT_STACK_DEPTH], struct profd_error *e)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct counts_node *x = &s->in[i];
        unsigned depth = 0;
        if (x->parent != COUNTS_NOWHERE) {
            FAIL_IF(x->parent >= i, e, PROFD_MALFORMED, "node %u of stacks: parent %u is not before it", i, x->parent);
            FAIL_IF(s->in[x->parent].frame.kind == COUNTS_NODE_PC, e, PROFD_MALFORMED,
                    "node %u of stacks is below a program counter", i);
            depth = s->depth[x->parent] + 1u;
        }
        FAIL_IF(x->frame.kind > COUNTS_NODE_PC || !frame_valid(&x->frame, depth), e, PROFD_MALFORMED,
                "node %u of stacks: kind %u, address 0x%llx of no build", i, x->frame.kind,
                (unsigned long long)x->frame.address);
        /* Too deep: LIMIT_STACK_DEPTH and not more, whatever is below. */
        s->depth[i] = (uint8_t)(depth < LIMIT_STACK_DEPTH ? depth : LIMIT_STACK_DEPTH);
        if (depth < LIMIT_STACK_DEPTH) {
            levels[depth]++;
        }
    }
    return PROFD_OK;
}

/* Sorts a level whose parents are merged, and merges its equal siblings. */
static void sort_level(struct tree_sort *s, const uint32_t *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct counts_node *x = &s->in[items[i]];
        s->keys[i] = (struct level_key){.address = x->frame.address,
                                        .parent = x->parent == COUNTS_NOWHERE ? COUNTS_NOWHERE : s->merged[x->parent],
                                        .build = x->frame.build,
                                        .at = items[i],
                                        .kind = x->frame.kind};
    }
    qsort(s->keys, n, sizeof *s->keys, compare_keys);
    for (uint32_t i = 0; i < n; i++) {
        const struct level_key *k = &s->keys[i], *was = i == 0 ? NULL : &s->keys[i - 1];
        if (was == NULL || was->parent != k->parent || was->build != k->build || was->address != k->address ||
            was->kind != k->kind) {
            s->parent[s->merged_count] = k->parent;
            s->sample[s->merged_count] = k->at;
            s->own[s->merged_count++] = 0;
        }
        s->merged[k->at] = s->merged_count - 1;
        sum_saturate(&s->own[s->merged_count - 1], s->in[k->at].ticks);
    }
}

/* The indices in the output: a parent's children follow it, each behind all that is below the one before. A merged
 * node's number of nodes in and below it is kept in by_level, which is no longer needed. Returns how many remain. */
static uint32_t sort_place(struct tree_sort *s)
{
    uint32_t *size = s->by_level, roots = 0;
    for (uint32_t i = 0; i < s->merged_count; i++) {
        s->within[i] = s->own[i];
        size[i] = 0;
    }
    for (uint32_t i = s->merged_count; i-- > 0;) {
        if (s->within[i] == 0) {
            continue;
        }
        size[i]++;
        if (s->parent[i] != COUNTS_NOWHERE) {
            sum_saturate(&s->within[s->parent[i]], s->within[i]);
            size[s->parent[i]] += size[i];
        }
    }
    uint32_t *next = (uint32_t *)s->within; /* of each merged node: where its next child goes; 4 of 8 bytes are used */
    for (uint32_t i = 0; i < s->merged_count; i++) {
        if (size[i] == 0) {
            s->placed[i] = COUNTS_NOWHERE;
            continue;
        }
        uint32_t *at = s->parent[i] == COUNTS_NOWHERE ? &roots : &next[s->parent[i]];
        s->placed[i] = *at;
        *at += size[i];
        next[i] = s->placed[i] + 1;
    }
    return roots;
}

enum profd_status counts_tree_sort(const struct counts_node *in, uint32_t n, const struct counts_nodes *out,
                                   uint32_t *used, uint32_t *place, struct profd_error *e)
{
    struct tree_sort s = {.in = in, .n = n};
    uint32_t levels[LIMIT_STACK_DEPTH] = {0}, start[LIMIT_STACK_DEPTH], sum = 0;
    const size_t each = sizeof *s.keys + 2 * sizeof(uint64_t) + 5 * sizeof(uint32_t) + 1;
    char *block = malloc((size_t)n * each + 1);
    FAIL_IF(block == NULL, e, PROFD_NO_MEMORY, "no memory to sort %u nodes of stacks", n);
    s.keys = (void *)block;
    s.own = (uint64_t *)(s.keys + n);
    s.within = s.own + n;
    s.merged = (uint32_t *)(s.within + n);
    s.by_level = s.merged + n;
    s.parent = s.by_level + n;
    s.sample = s.parent + n;
    s.placed = s.sample + n;
    s.depth = (uint8_t *)(s.placed + n);
    enum profd_status status = sort_judge(&s, levels, e);
    if (status) {
        free(block);
        return status;
    }
    for (unsigned d = 0; d < LIMIT_STACK_DEPTH; d++) {
        start[d] = sum;
        sum += levels[d];
    }
    for (uint32_t i = 0; i < n; i++) {
        if (s.depth[i] < LIMIT_STACK_DEPTH) {
            s.by_level[start[s.depth[i]]++] = i;
        }
    }
    for (unsigned d = 0; d < LIMIT_STACK_DEPTH && levels[d] > 0; d++) {
        sort_level(&s, s.by_level + start[d] - levels[d], levels[d]);
    }
    /* Ticks of nodes that are too deep go to the ancestor of the last depth, from parent to child. */
    for (uint32_t i = 0; i < n; i++) {
        if (s.depth[i] == LIMIT_STACK_DEPTH) {
            s.merged[i] = s.merged[in[i].parent];
            sum_saturate(&s.own[s.merged[i]], in[i].ticks);
        }
    }
    *used = sort_place(&s);
    for (uint32_t i = 0; i < s.merged_count; i++) {
        const uint32_t to = s.placed[i];
        if (to != COUNTS_NOWHERE) {
            const struct counts_frame *f = &in[s.sample[i]].frame;
            out->depth[to] = s.depth[s.sample[i]];
            out->kind[to] = f->kind;
            out->build[to] = f->build;
            out->address[to] = f->address;
            out->ticks[to] = s.own[i];
        }
    }
    for (uint32_t i = 0; i < n && place != NULL; i++) {
        place[i] = s.placed[s.merged[i]];
    }
    free(block);
    return PROFD_OK;
}

/* Leaves in a binary heap: the one with the fewest ticks on top, of equals the last. */
struct tree_fold {
    const struct counts_nodes *nodes;
    uint32_t *parent;   /* of each node, or COUNTS_NOWHERE */
    uint32_t *children; /* how many remain */
    struct heap heap;
    uint32_t *target; /* where the ticks of a node went: itself, a node before it, or FOLD_INCOMPLETE */
    uint64_t *rest;   /* of each tree: ticks for a node COUNTS_FRAME_INCOMPLETE that it does not have yet */
};
#define FOLD_INCOMPLETE UINT32_MAX /* a node that is added behind the others of the tree */

static bool fold_before(const void *context, uint32_t a, uint32_t b)
{
    const struct counts_nodes *n = context;
    return n->ticks[a] != n->ticks[b] ? n->ticks[a] < n->ticks[b] : a > b;
}

static bool fold_is_incomplete(const struct counts_nodes *n, uint32_t at)
{
    return n->depth[at] == 0 && n->build[at] == COUNTS_NOWHERE && n->address[at] == COUNTS_FRAME_INCOMPLETE;
}

/* Removes the leaf. False if a node COUNTS_FRAME_INCOMPLETE takes its place. */
static bool fold_remove(struct tree_fold *f, const struct counts_tree *trees, uint32_t count, uint32_t leaf)
{
    const struct counts_nodes *n = f->nodes;
    uint32_t parent = f->parent[leaf];
    if (parent != COUNTS_NOWHERE) {
        sum_saturate(&n->ticks[parent], n->ticks[leaf]);
        f->target[leaf] = parent;
        if (--f->children[parent] == 0 && !fold_is_incomplete(n, parent)) {
            heap_push(&f->heap, parent);
        }
        return true;
    }
    uint32_t behind;
    SORT_SEARCH(behind, 0, count, trees[behind].first <= leaf);
    const uint32_t tree = behind - 1;
    uint32_t last = trees[tree].first + trees[tree].used - 1;
    while (f->parent[last] != COUNTS_NOWHERE) { /* the last of depth 0, which COUNTS_FRAME_INCOMPLETE is */
        last = f->parent[last];
    }
    if (fold_is_incomplete(n, last)) {
        sum_saturate(&n->ticks[last], n->ticks[leaf]);
        f->target[leaf] = last;
        return true;
    }
    bool known = f->rest[tree] > 0;
    sum_saturate(&f->rest[tree], n->ticks[leaf]);
    f->target[leaf] = FOLD_INCOMPLETE;
    return known;
}

/* Moves the nodes of a tree that remain to `to`, and gives each node its new index, in heap. Returns the end. */
static uint32_t fold_compact(struct tree_fold *f, struct counts_tree *t, uint64_t rest, uint32_t to)
{
    const struct counts_nodes *n = f->nodes;
    uint32_t start = to, end = t->first + t->used;
    for (uint32_t i = t->first; i < end; i++) {
        if (f->target[i] == i) {
            f->heap.items[i] = to;
            n->depth[to] = n->depth[i];
            n->kind[to] = n->kind[i];
            n->build[to] = n->build[i];
            n->address[to] = n->address[i];
            n->ticks[to++] = n->ticks[i];
        }
    }
    if (rest > 0) {
        n->depth[to] = 0;
        n->kind[to] = COUNTS_NODE_RETURN;
        n->build[to] = COUNTS_NOWHERE;
        n->address[to] = COUNTS_FRAME_INCOMPLETE;
        n->ticks[to++] = rest;
    }
    for (uint32_t i = t->first; i < end; i++) { /* a parent comes before its children, and incomplete is the last */
        uint32_t target = f->target[i];
        if (target == FOLD_INCOMPLETE) {
            f->heap.items[i] = to - 1;
        } else if (target != i) {
            f->heap.items[i] = f->heap.items[target];
        }
    }
    t->first = start;
    t->used = to - start;
    return to;
}

enum profd_status counts_tree_fold(struct counts_tree *trees, uint32_t tree_count, const struct counts_nodes *nodes,
                                   uint32_t *node_count, uint32_t most, uint32_t *place, struct profd_error *e)
{
    uint32_t n = *node_count, left = n, to = 0;
    for (uint32_t i = 0; i < n && left <= most && place != NULL; i++) {
        place[i] = i;
    }
    if (left <= most) {
        return PROFD_OK;
    }
    struct tree_fold f = {.nodes = nodes};
    f.rest = calloc(1, (size_t)tree_count * sizeof *f.rest + (size_t)n * 4 * sizeof *f.parent);
    FAIL_IF(f.rest == NULL, e, PROFD_NO_MEMORY, "no memory to fold %u nodes of stacks", n);
    f.parent = (uint32_t *)(f.rest + tree_count);
    f.children = f.parent + n;
    f.heap = (struct heap){fold_before, nodes, f.children + n, 0};
    f.target = f.heap.items + n;
    for (const struct counts_tree *t = trees; t < trees + tree_count; t++) {
        uint32_t path[LIMIT_STACK_DEPTH] = {0};
        for (uint32_t i = t->first; i < t->first + t->used; i++) {
            const unsigned depth = nodes->depth[i];
            f.parent[i] = depth == 0 ? COUNTS_NOWHERE : path[depth - 1];
            f.target[i] = i;
            path[depth] = i;
            if (depth > 0) {
                f.children[f.parent[i]]++;
            }
        }
        for (uint32_t i = t->first; i < t->first + t->used; i++) {
            if (f.children[i] == 0 && !fold_is_incomplete(nodes, i)) {
                heap_push(&f.heap, i);
            }
        }
    }
    while (left > most && f.heap.count > 0) {
        left -= fold_remove(&f, trees, tree_count, heap_pop(&f.heap));
    }
    for (uint32_t i = 0; i < tree_count; i++) {
        to = fold_compact(&f, &trees[i], f.rest[i], to);
    }
    if (place != NULL) {
        memcpy(place, f.heap.items, n * sizeof *place);
    }
    *node_count = to;
    free(f.rest);
    return PROFD_OK;
}

#define STACKS_HELD (4 * LIMIT_STACK_NODES) /* nodes of one clock; then they are folded */
/* The search for a node is bounded, so that no input is slow. A node that is not found is added again, and merged
 * later. */
#define STACKS_PROBES 16

/* The stacks of one clock. Nodes are found by parent and frame; a slot holds a node's index + 1. */
struct stacks_clock {
    struct counts_tree tree; /* its clock */
    struct counts_node *nodes;
    uint32_t *slots;
    uint32_t count, capacity; /* a power of two; 2 × capacity slots */
};

/* Trees in one block. */
struct stacks_made {
    struct counts_tree trees[LIMIT_STACK_TREES];
    struct counts_nodes nodes;
    uint32_t tree_count, node_count;
    void *block;
};

struct counts_stacks {
    struct stacks_clock clocks[LIMIT_STACK_TREES];
    uint32_t clock_count;
    struct stacks_made made;
};

struct counts_stacks *counts_stacks_new(void)
{
    return calloc(1, sizeof(struct counts_stacks));
}

void counts_stacks_free(struct counts_stacks *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < s->clock_count; i++) {
        free(s->clocks[i].nodes);
        free(s->clocks[i].slots);
    }
    free(s->made.block);
    free(s);
}

/* Returns the slot of this node, or an empty one; NULL if there is neither within the bound. */
static uint32_t *stacks_slot(const struct stacks_clock *t, const struct counts_node *x)
{
    uint64_t h = (x->frame.address ^ (uint64_t)x->parent << 32 ^ x->frame.kind) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ x->frame.build) * 0xbf58476d1ce4e5b9u;
    uint32_t at = (uint32_t)(h >> 32), mask = 2 * t->capacity - 1;
    for (unsigned probe = 0; probe < STACKS_PROBES; probe++, at++) {
        uint32_t *slot = &t->slots[at & mask];
        const struct counts_node *known = *slot == 0 ? NULL : &t->nodes[*slot - 1];
        if (known == NULL || (known->parent == x->parent && counts_compare_frames(&known->frame, &x->frame) == 0)) {
            return slot;
        }
    }
    return NULL;
}

static void stacks_index(struct stacks_clock *t)
{
    memset(t->slots, 0, 2 * (size_t)t->capacity * sizeof *t->slots);
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t *slot = stacks_slot(t, &t->nodes[i]);
        if (slot != NULL && *slot == 0) {
            *slot = i + 1;
        }
    }
}

/* Arrays for n nodes. */
static enum profd_status stacks_take(struct stacks_made *m, uint32_t n, struct profd_error *e)
{
    uint64_t *block = malloc((size_t)n * (2 * sizeof(uint64_t) + sizeof(uint32_t) + 2) + 1);
    FAIL_IF(block == NULL, e, PROFD_NO_MEMORY, "no memory for %u nodes of stacks", n);
    *m = (struct stacks_made){.block = block};
    m->nodes.address = block;
    m->nodes.ticks = block + n;
    m->nodes.build = (uint32_t *)(block + 2 * (size_t)n);
    m->nodes.depth = (uint8_t *)(m->nodes.build + n);
    m->nodes.kind = m->nodes.depth + n;
    return PROFD_OK;
}

/* Sorts the nodes of a clock behind those that are made. */
static enum profd_status stacks_sort(const struct stacks_clock *t, struct stacks_made *m, struct profd_error *e)
{
    uint32_t n = m->node_count, used = 0;
    struct counts_nodes out = {m->nodes.depth + n, m->nodes.kind + n, m->nodes.build + n, m->nodes.address + n,
                               m->nodes.ticks + n};
    enum profd_status status = counts_tree_sort(t->nodes, t->count, &out, &used, NULL, e);
    if (status == PROFD_OK && used > 0) {
        struct counts_tree *tree = &m->trees[m->tree_count++];
        *tree = t->tree;
        tree->first = n;
        tree->used = used;
        m->node_count += used;
    }
    return status;
}

/* Folds the nodes of a clock, and makes them its nodes again, each after its parent. */
static enum profd_status stacks_shrink(struct stacks_clock *t, struct profd_error *e)
{
    struct stacks_made m;
    uint32_t path[LIMIT_STACK_DEPTH] = {0};
    TRY(stacks_take(&m, t->count, e));
    enum profd_status status = stacks_sort(t, &m, e);
    status =
        status ? status : counts_tree_fold(m.trees, m.tree_count, &m.nodes, &m.node_count, LIMIT_STACK_NODES, NULL, e);
    if (status == PROFD_OK) {
        t->count = m.node_count;
        for (uint32_t i = 0; i < m.node_count; i++) {
            unsigned depth = m.nodes.depth[i];
            path[depth] = i;
            t->nodes[i] = (struct counts_node){.parent = depth == 0 ? COUNTS_NOWHERE : path[depth - 1],
                                               .frame = counts_node_frame(&m.nodes, i),
                                               .ticks = m.nodes.ticks[i]};
        }
        stacks_index(t);
    }
    free(m.block);
    return status;
}

/* Finds the clock with this rate and dimension, or adds it in their order. */
static enum profd_status stacks_clock(struct counts_stacks *s, const struct counts_tree *key,
                                      struct stacks_clock **found, struct profd_error *e)
{
    uint32_t at = 0;
    while (at < s->clock_count && counts_compare_clocks(&s->clocks[at].tree, key) < 0) {
        at++;
    }
    if (at == s->clock_count || counts_compare_clocks(&s->clocks[at].tree, key) != 0) {
        FAIL_IF(s->clock_count == LIMIT_STACK_TREES, e, PROFD_TOO_LARGE, "stacks of more than %u clocks",
                LIMIT_STACK_TREES);
        memmove(&s->clocks[at + 1], &s->clocks[at], (s->clock_count - at) * sizeof s->clocks[0]);
        s->clocks[at] = (struct stacks_clock){.tree = *key};
        s->clock_count++;
    }
    *found = &s->clocks[at];
    return PROFD_OK;
}

/* Finds or adds the node below parent with this frame; there is space for it. */
static uint32_t stacks_enter(struct stacks_clock *t, uint32_t parent, const struct counts_frame *frame)
{
    struct counts_node x = {.parent = parent, .frame = *frame};
    uint32_t *slot = stacks_slot(t, &x);
    if (slot != NULL && *slot != 0) {
        return *slot - 1;
    }
    t->nodes[t->count++] = x;
    if (slot != NULL) {
        *slot = t->count;
    }
    return t->count - 1;
}

enum profd_status counts_stacks_add(struct counts_stacks *s, uint32_t rate, const char *dimension, char abbreviation,
                                    const struct counts_frame *frames, uint32_t n, uint64_t ticks,
                                    struct profd_error *e)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct counts_frame *f = &frames[i];
        FAIL_IF(f->kind != COUNTS_NODE_RETURN && (f->kind != COUNTS_NODE_PC || i + 1 < n), e, PROFD_MALFORMED,
                "frame %u of %u of a stack has kind %u", i, n, f->kind);
        FAIL_IF(f->build == COUNTS_NOWHERE && f->address != COUNTS_FRAME_OUTSIDE &&
                    (f->address != COUNTS_FRAME_INCOMPLETE || i > 0 || f->kind == COUNTS_NODE_PC),
                e, PROFD_MALFORMED, "frame %u of %u of a stack: address 0x%llx of no build", i, n,
                (unsigned long long)f->address);
    }
    if (n == 0 || ticks == 0) {
        return PROFD_OK;
    }
    struct counts_tree key = {.rate = rate, .abbreviation = abbreviation};
    struct stacks_clock *t = NULL;
    const size_t length = strlen(dimension);
    memcpy(key.dimension, dimension, length < sizeof key.dimension ? length : sizeof key.dimension - 1);
    TRY(stacks_clock(s, &key, &t, e));
    if (t->count >= STACKS_HELD) {
        TRY(stacks_shrink(t, e));
    }
    if (t->capacity - t->count < LIMIT_STACK_DEPTH) { /* there must be room for a whole stack */
        const uint32_t capacity = t->capacity == 0 ? 8 * LIMIT_STACK_DEPTH : 2 * t->capacity;
        struct counts_node *nodes = realloc(t->nodes, capacity * sizeof *nodes);
        t->nodes = nodes != NULL ? nodes : t->nodes;
        uint32_t *slots = nodes == NULL ? NULL : malloc(2 * (size_t)capacity * sizeof *slots);
        FAIL_IF(slots == NULL, e, PROFD_NO_MEMORY, "no memory for %u nodes of stacks", capacity);
        free(t->slots);
        t->slots = slots;
        t->capacity = capacity;
        stacks_index(t);
    }
    static const struct counts_frame incomplete = {COUNTS_FRAME_INCOMPLETE, COUNTS_NOWHERE, COUNTS_NODE_RETURN};
    uint32_t at = COUNTS_NOWHERE, first = 0;
    if (n > LIMIT_STACK_DEPTH) {
        at = stacks_enter(t, at, &incomplete);
        first = n - LIMIT_STACK_DEPTH + 1;
    }
    for (uint32_t i = first; i < n; i++) {
        at = stacks_enter(t, at, &frames[i]);
    }
    sum_saturate(&t->nodes[at].ticks, ticks);
    return PROFD_OK;
}

enum profd_status counts_stacks_finish(struct counts_stacks *s, struct counts_sizes *sizes, struct profd_error *e)
{
    struct stacks_made m = {0};
    uint32_t total = 0;
    for (uint32_t i = 0; i < s->clock_count; i++) {
        total += s->clocks[i].count;
    }
    enum profd_status status = stacks_take(&m, total, e);
    for (uint32_t i = 0; i < s->clock_count && status == PROFD_OK; i++) {
        status = stacks_sort(&s->clocks[i], &m, e);
    }
    status =
        status ? status : counts_tree_fold(m.trees, m.tree_count, &m.nodes, &m.node_count, LIMIT_STACK_NODES, NULL, e);
    if (status != PROFD_OK) {
        free(m.block);
        return status;
    }
    free(s->made.block);
    s->made = m;
    sizes->trees = m.tree_count;
    sizes->nodes = m.node_count;
    return PROFD_OK;
}

void counts_stacks_copy(const struct counts_stacks *s, struct counts *c)
{
    const struct stacks_made *m = &s->made;
    size_t n = m->node_count;
    if (n == 0) {
        return;
    }
    memcpy(c->trees, m->trees, m->tree_count * sizeof *c->trees);
    memcpy(c->node_depth, m->nodes.depth, n * sizeof *c->node_depth);
    memcpy(c->node_kind, m->nodes.kind, n * sizeof *c->node_kind);
    memcpy(c->node_build, m->nodes.build, n * sizeof *c->node_build);
    memcpy(c->node_address, m->nodes.address, n * sizeof *c->node_address);
    memcpy(c->node_ticks, m->nodes.ticks, n * sizeof *c->node_ticks);
}
