#include "proto/counts_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "proto/counts_internal.h"

#define STACKS_HELD (4 * LIMIT_STACK_NODES) /* nodes of one clock; then they are folded */
#define STACKS_PROBES                                                                                                  \
    16 /* the search for a node is bounded; one that is not found is added again, so no input is slow, and merged      \
          later */

/* The stacks of one clock: nodes that are found by parent and frame. A slot holds index + 1. */
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

static uint32_t stacks_hash(const struct counts_node *x)
{
    uint64_t h = (x->frame.address ^ (uint64_t)x->parent << 32 ^ x->frame.kind) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ x->frame.build) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

static bool stacks_same(const struct counts_node *a, const struct counts_node *b)
{
    return a->parent == b->parent && counts_compare_frames(&a->frame, &b->frame) == 0;
}

/* The slot of this node, or an empty one; NULL if there is neither within the bound. */
static uint32_t *stacks_slot(const struct stacks_clock *t, const struct counts_node *x)
{
    uint32_t at = stacks_hash(x), mask = 2 * t->capacity - 1;
    for (unsigned probe = 0; probe < STACKS_PROBES; probe++, at++) {
        uint32_t *slot = &t->slots[at & mask];
        if (*slot == 0 || stacks_same(&t->nodes[*slot - 1], x)) {
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

/* Space for a whole stack. */
static enum profd_status stacks_reserve(struct stacks_clock *t, struct profd_error *e)
{
    if (t->capacity - t->count >= LIMIT_STACK_DEPTH) {
        return PROFD_OK;
    }
    uint32_t capacity = t->capacity == 0 ? 8 * LIMIT_STACK_DEPTH : 2 * t->capacity;
    struct counts_node *nodes = realloc(t->nodes, capacity * sizeof *nodes);
    if (nodes != NULL) {
        t->nodes = nodes;
    }
    uint32_t *slots = nodes == NULL ? NULL : malloc(2 * (size_t)capacity * sizeof *slots);
    if (slots == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u nodes of stacks", capacity);
    }
    free(t->slots);
    t->slots = slots;
    t->capacity = capacity;
    stacks_index(t);
    return PROFD_OK;
}

/* Arrays for n nodes. */
static enum profd_status stacks_take(struct stacks_made *m, uint32_t n, struct profd_error *e)
{
    uint64_t *block = malloc((size_t)n * (2 * sizeof(uint64_t) + sizeof(uint32_t) + 2) + 1);
    if (block == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u nodes of stacks", n);
    }
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

/* Folds the nodes of a clock and takes them back, each after its parent. */
static enum profd_status stacks_shrink(struct stacks_clock *t, struct profd_error *e)
{
    struct stacks_made m;
    uint32_t path[LIMIT_STACK_DEPTH] = {0};
    TRY(stacks_take(&m, t->count, e));
    enum profd_status status = stacks_sort(t, &m, e);
    if (status == PROFD_OK) {
        status = counts_tree_fold(m.trees, m.tree_count, &m.nodes, &m.node_count, LIMIT_STACK_NODES, NULL, e);
    }
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

/* The clock with this rate and dimension, in their order. */
static enum profd_status stacks_clock(struct counts_stacks *s, const struct counts_tree *key,
                                      struct stacks_clock **found, struct profd_error *e)
{
    uint32_t at = 0;
    while (at < s->clock_count && counts_compare_clocks(&s->clocks[at].tree, key) < 0) {
        at++;
    }
    if (at == s->clock_count || counts_compare_clocks(&s->clocks[at].tree, key) != 0) {
        if (s->clock_count == LIMIT_STACK_TREES) {
            return profd_error_set(e, PROFD_TOO_LARGE, "stacks of more than %u clocks", LIMIT_STACK_TREES);
        }
        memmove(&s->clocks[at + 1], &s->clocks[at], (s->clock_count - at) * sizeof s->clocks[0]);
        s->clocks[at] = (struct stacks_clock){.tree = *key};
        s->clock_count++;
    }
    *found = &s->clocks[at];
    return PROFD_OK;
}

static enum profd_status stacks_judge(const struct counts_frame *frames, uint32_t n, struct profd_error *e)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct counts_frame *f = &frames[i];
        if (f->kind != COUNTS_NODE_RETURN && (f->kind != COUNTS_NODE_PC || i + 1 < n)) {
            return profd_error_set(e, PROFD_MALFORMED, "frame %u of %u of a stack has kind %u", i, n, f->kind);
        }
        if (f->build == COUNTS_NOWHERE && f->address != COUNTS_FRAME_OUTSIDE &&
            (f->address != COUNTS_FRAME_INCOMPLETE || i > 0 || f->kind == COUNTS_NODE_PC)) {
            return profd_error_set(e, PROFD_MALFORMED, "frame %u of %u of a stack: address 0x%llx of no build", i, n,
                                   (unsigned long long)f->address);
        }
    }
    return PROFD_OK;
}

/* The node below parent with this frame; there is space for it. */
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
    struct counts_tree key = {.rate = rate, .abbreviation = abbreviation};
    struct stacks_clock *t = NULL;
    static const struct counts_frame incomplete = {COUNTS_FRAME_INCOMPLETE, COUNTS_NOWHERE, COUNTS_NODE_RETURN};
    size_t length = strlen(dimension);
    memcpy(key.dimension, dimension, length < sizeof key.dimension ? length : sizeof key.dimension - 1);
    enum profd_status status = stacks_judge(frames, n, e);
    if (status != PROFD_OK || n == 0 || ticks == 0) {
        return status;
    }
    status = stacks_clock(s, &key, &t, e);
    if (status == PROFD_OK && t->count >= STACKS_HELD) {
        status = stacks_shrink(t, e);
    }
    if (status == PROFD_OK) {
        status = stacks_reserve(t, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    uint32_t at = COUNTS_NOWHERE, first = 0;
    if (n > LIMIT_STACK_DEPTH) {
        at = stacks_enter(t, at, &incomplete);
        first = n - LIMIT_STACK_DEPTH + 1;
    }
    for (uint32_t i = first; i < n; i++) {
        at = stacks_enter(t, at, &frames[i]);
    }
    counts_add(&t->nodes[at].ticks, ticks);
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
    if (status == PROFD_OK) {
        status = counts_tree_fold(m.trees, m.tree_count, &m.nodes, &m.node_count, LIMIT_STACK_NODES, NULL, e);
    }
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
