#include "proto/counts_tree.h"

#include <stdlib.h>
#include <string.h>

#include "proto/collector.h"
#include "proto/counts_internal.h"
#include "proto/limits.h"
#include "proto/varint.h"

struct counts_frame counts_node_frame(const struct counts_nodes *n, uint32_t at)
{
    return (struct counts_frame){.address = n->address[at], .build = n->build[at], .kind = n->kind[at]};
}

int counts_compare_frames(const struct counts_frame *a, const struct counts_frame *b)
{
    if (a->build != b->build) {
        return a->build < b->build ? -1 : 1;
    }
    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return a->kind - b->kind;
}

int counts_compare_clocks(const struct counts_tree *a, const struct counts_tree *b)
{
    if (a->rate != b->rate) {
        return a->rate < b->rate ? -1 : 1;
    }
    int dimension = strncmp(a->dimension, b->dimension, sizeof a->dimension);
    return dimension != 0 ? dimension : a->abbreviation - b->abbreviation;
}

/* COUNTS_NOWHERE has two frames, one of them at depth 0 only. */
static bool frame_valid(const struct counts_frame *f, uint32_t depth)
{
    return f->build != COUNTS_NOWHERE || f->address == COUNTS_FRAME_OUTSIDE ||
           (f->address == COUNTS_FRAME_INCOMPLETE && depth == 0 && f->kind == COUNTS_NODE_RETURN);
}

static enum profd_status judge_clock(const struct counts_tree *trees, uint32_t at, struct profd_error *e)
{
    const struct counts_tree *t = &trees[at];
    if (t->rate < 1 || t->rate > LIMIT_RATE) {
        return profd_error_set(e, PROFD_MALFORMED, "stacks %u: rate of %u ticks per second; it must be 1 to %u", at,
                               t->rate, LIMIT_RATE);
    }
    if (!counts_dimension_valid(t->dimension, t->abbreviation)) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "stacks %u: the dimension must be up to 15 printable ASCII characters", at);
    }
    if (collector_is_dimension(t->dimension)) {
        return profd_error_set(e, PROFD_MALFORMED, "stacks %u of dimension " COLLECTOR_DIMENSION, at);
    }
    if (at > 0 && counts_compare_clocks(&trees[at - 1], t) >= 0) {
        return profd_error_set(e, PROFD_MALFORMED, "stacks %u: rate and dimension are not after those of stacks %u", at,
                               at - 1);
    }
    return PROFD_OK;
}

static enum profd_status judge_node(const struct counts_nodes *n, uint32_t at, uint32_t builds, struct profd_error *e)
{
    struct counts_frame f = counts_node_frame(n, at);
    if (f.kind > COUNTS_NODE_PC) {
        return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks: kind %u is not known", at, f.kind);
    }
    if (f.build != COUNTS_NOWHERE && f.build >= builds) {
        return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks of build %u: the upload has %u", at, f.build,
                               builds);
    }
    if (!frame_valid(&f, n->depth[at])) {
        return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks: address 0x%llx of no build at depth %u", at,
                               (unsigned long long)f.address, n->depth[at]);
    }
    return PROFD_OK;
}

/* at: a node of a tree that begins at first. path[d]: the node of depth d above the node before. */
static enum profd_status judge_place(const struct counts_nodes *n, uint32_t first, uint32_t at, uint32_t end,
                                     const uint32_t *path, struct profd_error *e)
{
    unsigned depth = n->depth[at], before = at == first ? 0 : n->depth[at - 1] + 1u;
    if (depth > before) {
        return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks: depth %u, at most %u is possible there", at,
                               depth, before);
    }
    if (depth >= LIMIT_STACK_DEPTH) {
        return profd_error_set(e, PROFD_TOO_LARGE, "node %u of stacks: depth %u, at most %u", at, depth,
                               LIMIT_STACK_DEPTH - 1);
    }
    if (at > first && depth == before && n->kind[at - 1] == COUNTS_NODE_PC) {
        return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks is below a program counter", at);
    }
    if (at > first && depth < before && counts_compare_nodes(n, path[depth], n, at) >= 0) {
        return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks is not after its sibling %u", at, path[depth]);
    }
    bool leaf = at + 1 == end || n->depth[at + 1] <= depth;
    if (leaf && n->ticks[at] == 0) {
        return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks is a leaf with 0 ticks", at);
    }
    return PROFD_OK;
}

static enum profd_status judge_tree(const struct counts_tree *t, const struct counts_nodes *nodes, uint32_t builds,
                                    struct profd_error *e)
{
    uint32_t path[LIMIT_STACK_DEPTH] = {0};
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        enum profd_status status = judge_node(nodes, i, builds, e);
        if (status == PROFD_OK) {
            status = judge_place(nodes, t->first, i, t->first + t->used, path, e);
        }
        if (status != PROFD_OK) {
            return status;
        }
        path[nodes->depth[i]] = i;
    }
    return PROFD_OK;
}

enum profd_status counts_judge_trees(const struct counts_tree *trees, uint32_t tree_count,
                                     const struct counts_nodes *nodes, uint32_t node_count, uint32_t builds,
                                     struct profd_error *e)
{
    if (tree_count > LIMIT_STACK_TREES) {
        return profd_error_set(e, PROFD_TOO_LARGE, "stacks of %u clocks, at most %u", tree_count, LIMIT_STACK_TREES);
    }
    if (node_count > LIMIT_STACK_NODES) {
        return profd_error_set(e, PROFD_TOO_LARGE, "%u nodes of stacks, at most %u", node_count, LIMIT_STACK_NODES);
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < tree_count; i++) {
        const struct counts_tree *t = &trees[i];
        TRY(judge_clock(trees, i, e));
        if (t->first != first || t->used < 1 || t->used > node_count - first) {
            return profd_error_set(e, PROFD_MALFORMED, "stacks %u: %u nodes from %u on, of %u", i, t->used, t->first,
                                   node_count);
        }
        TRY(judge_tree(t, nodes, builds, e));
        first += t->used;
    }
    if (first != node_count) {
        return profd_error_set(e, PROFD_MALFORMED, "%u nodes of stacks are in no tree", node_count - first);
    }
    return PROFD_OK;
}

/* ---- making a tree ---- */

/* A node while its level is sorted. */
struct sort_key {
    uint64_t address;
    uint32_t parent; /* number of the merged parent */
    uint32_t build, at;
    uint8_t kind;
};

/* Merged nodes are numbered level by level; those of one parent follow each other, sorted. */
struct sorter {
    const struct counts_node *in;
    uint32_t n;
    uint8_t *depth;         /* of each input node, at most LIMIT_STACK_DEPTH − 1 */
    uint32_t *merged;       /* of each input node: the number of its merged node */
    uint32_t *by_level;     /* input nodes by depth */
    struct sort_key *keys;  /* of one level */
    uint32_t *parent;       /* of each merged node */
    uint32_t *sample;       /* and an input node with its frame */
    uint64_t *own, *within; /* its ticks; and with those below it */
    uint32_t *placed;       /* its index in the output */
    uint32_t merged_count;
    void *block;
};

static int compare_keys(const void *left, const void *right)
{
    const struct sort_key *a = left, *b = right;
    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    if (a->build != b->build) {
        return a->build < b->build ? -1 : 1;
    }
    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind - b->kind;
    }
    return a->at < b->at ? -1 : a->at > b->at;
}

static enum profd_status sorter_init(struct sorter *s, const struct counts_node *in, uint32_t n, struct profd_error *e)
{
    size_t each = sizeof *s->keys + 2 * sizeof(uint64_t) + 5 * sizeof(uint32_t) + 1;
    char *block = malloc((size_t)n * each + 1);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to sort %u nodes of stacks", n);
    }
    *s = (struct sorter){.in = in, .n = n, .block = block};
    s->keys = (void *)block;
    s->own = (uint64_t *)(s->keys + n);
    s->within = s->own + n;
    s->merged = (uint32_t *)(s->within + n);
    s->by_level = s->merged + n;
    s->parent = s->by_level + n;
    s->sample = s->parent + n;
    s->placed = s->sample + n;
    s->depth = (uint8_t *)(s->placed + n);
    return PROFD_OK;
}

/* Finds depths, and how many nodes each level has. */
static enum profd_status sort_judge(struct sorter *s, uint32_t levels[LIMIT_STACK_DEPTH], struct profd_error *e)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct counts_node *x = &s->in[i];
        unsigned depth = 0;
        if (x->parent != COUNTS_NOWHERE) {
            if (x->parent >= i) {
                return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks: parent %u is not before it", i,
                                       x->parent);
            }
            if (s->in[x->parent].frame.kind == COUNTS_NODE_PC) {
                return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks is below a program counter", i);
            }
            depth = s->depth[x->parent] + 1u;
        }
        if (x->frame.kind > COUNTS_NODE_PC || !frame_valid(&x->frame, depth)) {
            return profd_error_set(e, PROFD_MALFORMED, "node %u of stacks: kind %u, address 0x%llx of no build", i,
                                   x->frame.kind, (unsigned long long)x->frame.address);
        }
        /* Too deep: LIMIT_STACK_DEPTH and not more, whatever is below. */
        s->depth[i] = (uint8_t)(depth < LIMIT_STACK_DEPTH ? depth : LIMIT_STACK_DEPTH);
        if (depth < LIMIT_STACK_DEPTH) {
            levels[depth]++;
        }
    }
    return PROFD_OK;
}

static void sort_by_level(struct sorter *s, const uint32_t levels[LIMIT_STACK_DEPTH])
{
    uint32_t start[LIMIT_STACK_DEPTH], sum = 0;
    for (unsigned d = 0; d < LIMIT_STACK_DEPTH; d++) {
        start[d] = sum;
        sum += levels[d];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->depth[i] < LIMIT_STACK_DEPTH) {
            s->by_level[start[s->depth[i]]++] = i;
        }
    }
}

/* Sorts a level below one that is merged, and merges its equal siblings. */
static void sort_level(struct sorter *s, const uint32_t *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct counts_node *x = &s->in[items[i]];
        s->keys[i] = (struct sort_key){.address = x->frame.address,
                                       .parent = x->parent == COUNTS_NOWHERE ? COUNTS_NOWHERE : s->merged[x->parent],
                                       .build = x->frame.build,
                                       .at = items[i],
                                       .kind = x->frame.kind};
    }
    qsort(s->keys, n, sizeof *s->keys, compare_keys);
    for (uint32_t i = 0; i < n; i++) {
        const struct sort_key *k = &s->keys[i], *was = i == 0 ? NULL : &s->keys[i - 1];
        if (was == NULL || was->parent != k->parent || was->build != k->build || was->address != k->address ||
            was->kind != k->kind) {
            s->parent[s->merged_count] = k->parent;
            s->sample[s->merged_count] = k->at;
            s->own[s->merged_count++] = 0;
        }
        s->merged[k->at] = s->merged_count - 1;
        counts_add(&s->own[s->merged_count - 1], s->in[k->at].ticks);
    }
}

/* Ticks of nodes that are too deep go to the ancestor of the last depth, from parent to child. */
static void sort_cut(struct sorter *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->depth[i] == LIMIT_STACK_DEPTH) {
            s->merged[i] = s->merged[s->in[i].parent];
            counts_add(&s->own[s->merged[i]], s->in[i].ticks);
        }
    }
}

/* The indices in the output: a parent's children follow it, each behind all that is below the one before. A merged
 * node's number of nodes in and below it is kept in by_level, which is no longer needed. Returns how many remain. */
static uint32_t sort_place(struct sorter *s)
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
            counts_add(&s->within[s->parent[i]], s->within[i]);
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

static void sort_write(const struct sorter *s, const struct counts_nodes *out, uint32_t *place)
{
    for (uint32_t i = 0; i < s->merged_count; i++) {
        uint32_t to = s->placed[i];
        if (to != COUNTS_NOWHERE) {
            const struct counts_frame *f = &s->in[s->sample[i]].frame;
            out->depth[to] = s->depth[s->sample[i]];
            out->kind[to] = f->kind;
            out->build[to] = f->build;
            out->address[to] = f->address;
            out->ticks[to] = s->own[i];
        }
    }
    for (uint32_t i = 0; i < s->n && place != NULL; i++) {
        place[i] = s->placed[s->merged[i]];
    }
}

enum profd_status counts_tree_sort(const struct counts_node *in, uint32_t n, const struct counts_nodes *out,
                                   uint32_t *used, uint32_t *place, struct profd_error *e)
{
    struct sorter s = {0};
    uint32_t levels[LIMIT_STACK_DEPTH] = {0}, first = 0;
    TRY(sorter_init(&s, in, n, e));
    enum profd_status status = sort_judge(&s, levels, e);
    if (status == PROFD_OK) {
        sort_by_level(&s, levels);
        for (unsigned d = 0; d < LIMIT_STACK_DEPTH && levels[d] > 0; d++) {
            sort_level(&s, s.by_level + first, levels[d]);
            first += levels[d];
        }
        sort_cut(&s);
        *used = sort_place(&s);
        sort_write(&s, out, place);
    }
    free(s.block);
    return status;
}
