#include <stdlib.h>
#include <string.h>

#include "proto/counts_internal.h"
#include "proto/counts_tree.h"
#include "proto/limits.h"

/* Leaves in a binary heap: the one with the fewest ticks on top, of equals the last. */
struct fold {
    const struct counts_nodes *nodes;
    uint32_t *parent;   /* of each node, or COUNTS_NOWHERE */
    uint32_t *children; /* how many remain */
    uint32_t *heap;
    uint32_t *target; /* where the ticks of a node went: itself, a node before it, or FOLD_INCOMPLETE */
    uint64_t *rest;   /* of each tree: ticks for a node COUNTS_FRAME_INCOMPLETE that it does not have yet */
    uint32_t heap_count;
    void *block;
};
#define FOLD_INCOMPLETE UINT32_MAX /* a node that is added behind the others of the tree */

static bool fold_before(const struct fold *f, uint32_t a, uint32_t b)
{
    uint64_t x = f->nodes->ticks[a], y = f->nodes->ticks[b];
    return x != y ? x < y : a > b;
}

static void fold_push(struct fold *f, uint32_t item)
{
    uint32_t at = f->heap_count++;
    for (; at > 0 && fold_before(f, item, f->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        f->heap[at] = f->heap[(at - 1) / 2];
    }
    f->heap[at] = item;
}

static uint32_t fold_pop(struct fold *f)
{
    uint32_t top = f->heap[0], moved = f->heap[--f->heap_count], at = 0;
    for (uint32_t child = 1; child < f->heap_count; child = 2 * at + 1) {
        if (child + 1 < f->heap_count && fold_before(f, f->heap[child + 1], f->heap[child])) {
            child++;
        }
        if (!fold_before(f, f->heap[child], moved)) {
            break;
        }
        f->heap[at] = f->heap[child];
        at = child;
    }
    f->heap[at] = moved;
    return top;
}

static bool fold_is_incomplete(const struct counts_nodes *n, uint32_t at)
{
    return n->depth[at] == 0 && n->build[at] == COUNTS_NOWHERE && n->address[at] == COUNTS_FRAME_INCOMPLETE;
}

static enum profd_status fold_init(struct fold *f, const struct counts_nodes *nodes, uint32_t n, uint32_t trees,
                                   struct profd_error *e)
{
    uint64_t *block = calloc(1, (size_t)trees * sizeof *f->rest + (size_t)n * 4 * sizeof *f->heap);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to fold %u nodes of stacks", n);
    }
    *f = (struct fold){.nodes = nodes, .block = block, .rest = block};
    f->parent = (uint32_t *)(f->rest + trees);
    f->children = f->parent + n;
    f->heap = f->children + n;
    f->target = f->heap + n;
    return PROFD_OK;
}

/* Parents, numbers of children, and all leaves that may be removed. */
static void fold_enter(struct fold *f, const struct counts_tree *t)
{
    const struct counts_nodes *n = f->nodes;
    uint32_t path[LIMIT_STACK_DEPTH] = {0};
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        unsigned depth = n->depth[i];
        f->parent[i] = depth == 0 ? COUNTS_NOWHERE : path[depth - 1];
        f->target[i] = i;
        path[depth] = i;
        if (depth > 0) {
            f->children[f->parent[i]]++;
        }
    }
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        if (f->children[i] == 0 && !fold_is_incomplete(n, i)) {
            fold_push(f, i);
        }
    }
}

static uint32_t fold_tree_of(const struct counts_tree *trees, uint32_t count, uint32_t node)
{
    uint32_t low = 0;
    for (uint32_t high = count; high - low > 1;) {
        uint32_t middle = low + (high - low) / 2;
        *(trees[middle].first <= node ? &low : &high) = middle;
    }
    return low;
}

/* Removes the leaf. False if a node COUNTS_FRAME_INCOMPLETE takes its place. */
static bool fold_remove(struct fold *f, const struct counts_tree *trees, uint32_t count, uint32_t leaf)
{
    const struct counts_nodes *n = f->nodes;
    uint32_t parent = f->parent[leaf];
    if (parent != COUNTS_NOWHERE) {
        counts_add(&n->ticks[parent], n->ticks[leaf]);
        f->target[leaf] = parent;
        if (--f->children[parent] == 0 && !fold_is_incomplete(n, parent)) {
            fold_push(f, parent);
        }
        return true;
    }
    uint32_t tree = fold_tree_of(trees, count, leaf);
    uint32_t last = trees[tree].first + trees[tree].used - 1;
    while (f->parent[last] != COUNTS_NOWHERE) { /* the last of depth 0, which COUNTS_FRAME_INCOMPLETE is */
        last = f->parent[last];
    }
    if (fold_is_incomplete(n, last)) {
        counts_add(&n->ticks[last], n->ticks[leaf]);
        f->target[leaf] = last;
        return true;
    }
    bool known = f->rest[tree] > 0;
    counts_add(&f->rest[tree], n->ticks[leaf]);
    f->target[leaf] = FOLD_INCOMPLETE;
    return known;
}

static void fold_move(const struct counts_nodes *n, uint32_t to, uint32_t from)
{
    n->depth[to] = n->depth[from];
    n->kind[to] = n->kind[from];
    n->build[to] = n->build[from];
    n->address[to] = n->address[from];
    n->ticks[to] = n->ticks[from];
}

/* Moves the nodes of a tree that remain to `to`, and gives each node its new index, in heap. Returns the end. */
static uint32_t fold_compact(struct fold *f, struct counts_tree *t, uint64_t rest, uint32_t to)
{
    const struct counts_nodes *n = f->nodes;
    uint32_t start = to, end = t->first + t->used;
    for (uint32_t i = t->first; i < end; i++) {
        if (f->target[i] == i) {
            f->heap[i] = to;
            fold_move(n, to++, i);
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
            f->heap[i] = to - 1;
        } else if (target != i) {
            f->heap[i] = f->heap[target];
        }
    }
    t->first = start;
    t->used = to - start;
    return to;
}

enum profd_status counts_tree_fold(struct counts_tree *trees, uint32_t tree_count, const struct counts_nodes *nodes,
                                   uint32_t *node_count, uint32_t most, uint32_t *place, struct profd_error *e)
{
    struct fold f = {0};
    uint32_t n = *node_count, left = n, to = 0;
    for (uint32_t i = 0; i < n && left <= most && place != NULL; i++) {
        place[i] = i;
    }
    if (left <= most) {
        return PROFD_OK;
    }
    TRY(fold_init(&f, nodes, n, tree_count, e));
    for (uint32_t i = 0; i < tree_count; i++) {
        fold_enter(&f, &trees[i]);
    }
    while (left > most && f.heap_count > 0) {
        left -= fold_remove(&f, trees, tree_count, fold_pop(&f));
    }
    for (uint32_t i = 0; i < tree_count; i++) {
        to = fold_compact(&f, &trees[i], f.rest[i], to);
    }
    if (place != NULL) {
        memcpy(place, f.heap, n * sizeof *place);
    }
    *node_count = to;
    free(f.block);
    return PROFD_OK;
}
