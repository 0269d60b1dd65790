#include "core/tree_sum.h"

#include <string.h>

#include "proto/sum.h"
#include "core/table.h"
#include "proto/limits.h"

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

#define TREE_HELD (3 * LIMIT_STACK_NODES) /* nodes; then they are folded */

/* The nodes of one clock, each after its parent, found by parent and frame. */
struct tree_part {
    struct counts_tree tree; /* its clock */
    struct counts_node *nodes;
    uint64_t *shares;
    uint32_t count, capacity, share_capacity;
    struct table table;
    uint64_t seed;
};

struct tree_sum {
    struct arena *arena;
    struct arena *held, *scratch; /* of the parts, and while they are folded: children, which are used again */
    uint64_t seed;                /* where the arena lies: nothing that comes out depends on it */
    bool shares, saturated;
    struct tree_part *parts; /* in the order of counts_compare_clocks */
    uint32_t part_count, node_count;
};

struct tree_sum *tree_sum_new(struct arena *a, bool shares)
{
    struct tree_sum *s = ARENA_NEW(a, struct tree_sum);
    *s = (struct tree_sum){.arena = a,
                           .held = arena_new_child(a, 0),
                           .scratch = arena_new_child(a, 0),
                           .seed = table_mix((uintptr_t)s, (uintptr_t)a),
                           .shares = shares,
                           .parts = ARENA_ARRAY(a, LIMIT_STACK_TREES, struct tree_part)};
    return s;
}

static uint64_t tree_hash_node(const struct counts_node *x, uint64_t seed)
{
    return table_mix(table_mix(x->frame.address ^ seed, (uint64_t)x->parent << 1 | x->frame.kind), x->frame.build);
}

static uint64_t tree_hash(const void *context, uint32_t i)
{
    const struct tree_part *p = context;
    return tree_hash_node(&p->nodes[i], p->seed);
}

/* The node below parent with this frame, introduced if new. */
static uint32_t tree_enter(struct tree_sum *s, struct tree_part *p, uint32_t parent, const struct counts_frame *frame)
{
    struct counts_node x = {.parent = parent, .frame = *frame};
    table_reserve(&p->table, s->held, tree_hash, p);
    uint32_t at = table_slot(&p->table, tree_hash_node(&x, p->seed));
    for (; p->table.slots[at] != 0; at = (at + 1) & p->table.mask) {
        const struct counts_node *known = &p->nodes[p->table.slots[at] - 1];
        if (known->parent == parent && counts_compare_frames(&known->frame, frame) == 0) {
            return p->table.slots[at] - 1;
        }
    }
    p->nodes = arena_extend(s->held, p->nodes, p->count, &p->capacity, sizeof *p->nodes);
    p->nodes[p->count] = x;
    if (s->shares) {
        p->shares = arena_extend(s->held, p->shares, p->count, &p->share_capacity, TREE_GROUPS * sizeof *p->shares);
        memset(&p->shares[(size_t)p->count * TREE_GROUPS], 0, TREE_GROUPS * sizeof *p->shares);
    }
    p->table.slots[at] = ++p->count;
    p->table.used++;
    s->node_count++;
    return p->count - 1;
}

/* The part of a clock. When all are taken, that of the last clock gives way to an earlier one; a later one gets NULL:
 * of more clocks the first ones are left in any order of adding. */
static struct tree_part *tree_find_part(struct tree_sum *s, const struct counts_tree *key)
{
    uint32_t at = 0;
    while (at < s->part_count && counts_compare_clocks(&s->parts[at].tree, key) < 0) {
        at++;
    }
    if (at < s->part_count && counts_compare_clocks(&s->parts[at].tree, key) == 0) {
        return &s->parts[at];
    }
    if (at == LIMIT_STACK_TREES) {
        return NULL;
    }
    if (s->part_count == LIMIT_STACK_TREES) {
        s->node_count -= s->parts[--s->part_count].count;
    }
    memmove(&s->parts[at + 1], &s->parts[at], (s->part_count - at) * sizeof *s->parts);
    s->parts[at] = (struct tree_part){.tree = *key, .seed = s->seed};
    s->part_count++;
    return &s->parts[at];
}

static bool tree_is_outside(const struct counts_frame *f)
{
    return f->build == COUNTS_NOWHERE && f->address == COUNTS_FRAME_OUTSIDE && f->kind == COUNTS_NODE_RETURN;
}

/* Where the ticks of a node of more go: below `above`, or, if it joins that, the same. */
static uint32_t tree_find_node(struct tree_sum *s, struct tree_part *p, const struct tree_addend *more, uint32_t above,
                               struct counts_frame *f)
{
    if (f->build != COUNTS_NOWHERE && more->map != NULL) {
        f->build = more->map[f->build];
        f->address = f->build == COUNTS_NOWHERE ? COUNTS_FRAME_OUTSIDE : f->address;
    }
    bool joins =
        more->alone && tree_is_outside(f) && above != COUNTS_NOWHERE && tree_is_outside(&p->nodes[above].frame);
    return joins ? above : tree_enter(s, p, above, f);
}

static void tree_add_ticks(struct tree_sum *s, struct tree_part *p, const struct tree_addend *more, uint32_t from,
                           uint32_t to)
{
    uint64_t ticks = more->list.nodes.ticks[from];
    sum_add(&p->nodes[to].ticks, ticks, &s->saturated);
    if (p->shares == NULL) {
        return;
    }
    uint64_t *row = &p->shares[(size_t)to * TREE_GROUPS];
    for (uint32_t g = 0; g < TREE_GROUPS && more->shares != NULL; g++) {
        sum_add(&row[g], more->shares[(size_t)from * TREE_GROUPS + g], &s->saturated);
    }
    if (more->shares == NULL && more->group < TREE_GROUPS) {
        sum_add(&row[more->group], ticks, &s->saturated);
    }
}

static void tree_add(struct tree_sum *s, struct tree_part *p, const struct tree_addend *more,
                     const struct counts_tree *t)
{
    uint32_t path[LIMIT_STACK_DEPTH + 1] = {COUNTS_NOWHERE};
    const struct counts_nodes *n = &more->list.nodes;
    for (uint32_t i = t->first; i < t->first + t->used; i++) {
        struct counts_frame f = counts_node_frame(n, i);
        uint32_t *at = &path[n->depth[i] + 1];
        *at = tree_find_node(s, p, more, at[-1], &f);
        bool counts = !more->alone || (f.kind == COUNTS_NODE_PC && f.build != COUNTS_NOWHERE);
        if (counts && n->ticks[i] > 0) {
            tree_add_ticks(s, p, more, i, *at);
        }
    }
}

/* Arrays for n nodes. */
static struct tree_total tree_take_total(struct arena *a, size_t n, bool shares)
{
    return (struct tree_total){.trees = ARENA_ARRAY(a, LIMIT_STACK_TREES, struct counts_tree),
                               .nodes = {ARENA_ARRAY(a, n, uint8_t), ARENA_ARRAY(a, n, uint8_t),
                                         ARENA_ARRAY(a, n, uint32_t), ARENA_ARRAY(a, n, uint64_t),
                                         ARENA_ARRAY(a, n, uint64_t)},
                               .shares = shares ? ARENA_ARRAY(a, n * TREE_GROUPS, uint64_t) : NULL};
}

/* Sorts a part behind the nodes of t. place has space for its nodes. */
static enum profd_status tree_sort(struct tree_sum *s, const struct tree_part *p, struct tree_total *t, uint32_t *place,
                                   struct profd_error *e)
{
    uint32_t first = t->node_count, used = 0;
    struct counts_nodes out = {t->nodes.depth + first, t->nodes.kind + first, t->nodes.build + first,
                               t->nodes.address + first, t->nodes.ticks + first};
    enum profd_status status = counts_tree_sort(p->nodes, p->count, &out, &used, place, e);
    if (status != PROFD_OK || used == 0) {
        return status;
    }
    for (uint32_t i = 0; i < p->count && p->shares != NULL; i++) {
        for (uint32_t g = 0; g < TREE_GROUPS && place[i] != COUNTS_NOWHERE; g++) {
            sum_add(&t->shares[((size_t)first + place[i]) * TREE_GROUPS + g], p->shares[(size_t)i * TREE_GROUPS + g],
                    &s->saturated);
        }
    }
    struct counts_tree *tree = &t->trees[t->tree_count++];
    *tree = p->tree;
    tree->first = first;
    tree->used = used;
    t->node_count += used;
    return PROFD_OK;
}

/* Folds t to LIMIT_STACK_NODES. */
static enum profd_status tree_fold(struct tree_sum *s, struct tree_total *t, uint32_t *place, struct profd_error *e)
{
    uint32_t before = t->node_count;
    enum profd_status status =
        counts_tree_fold(t->trees, t->tree_count, &t->nodes, &t->node_count, LIMIT_STACK_NODES, place, e);
    if (status != PROFD_OK || t->node_count == before || t->shares == NULL) {
        return status;
    }
    uint64_t *folded = ARENA_ARRAY(s->scratch, (size_t)t->node_count * TREE_GROUPS, uint64_t);
    for (size_t i = 0; i < before; i++) {
        for (uint32_t g = 0; g < TREE_GROUPS; g++) {
            sum_add(&folded[(size_t)place[i] * TREE_GROUPS + g], t->shares[i * TREE_GROUPS + g], &s->saturated);
        }
    }
    t->shares = folded;
    return PROFD_OK;
}

/* All nodes, sorted and folded, in the scratch arena. */
static enum profd_status tree_make(struct tree_sum *s, struct tree_total *t, struct profd_error *e)
{
    uint32_t *place = ARENA_ARRAY(s->scratch, s->node_count, uint32_t);
    *t = tree_take_total(s->scratch, s->node_count, s->shares);
    for (uint32_t i = 0; i < s->part_count; i++) {
        TRY(tree_sort(s, &s->parts[i], t, place, e));
    }
    return tree_fold(s, t, place, e);
}

/* Takes the nodes of a folded tree back. Its part is empty. */
static void tree_take_back(struct tree_sum *s, struct tree_part *p, const struct tree_total *t,
                           const struct counts_tree *tree)
{
    uint32_t path[LIMIT_STACK_DEPTH + 1] = {COUNTS_NOWHERE};
    for (uint32_t i = tree->first; i < tree->first + tree->used; i++) {
        struct counts_frame f = counts_node_frame(&t->nodes, i);
        uint32_t *at = &path[t->nodes.depth[i] + 1];
        *at = tree_enter(s, p, at[-1], &f);
        p->nodes[*at].ticks = t->nodes.ticks[i];
    }
    if (t->shares != NULL) {
        memcpy(p->shares, t->shares + (size_t)tree->first * TREE_GROUPS,
               (size_t)tree->used * TREE_GROUPS * sizeof *p->shares);
    }
}

/* Folds all nodes and takes them back. */
static enum profd_status tree_shrink(struct tree_sum *s, struct profd_error *e)
{
    struct tree_total t;
    TRY(tree_make(s, &t, e));
    arena_reset(s->held);
    s->node_count = s->part_count = 0;
    for (uint32_t i = 0; i < t.tree_count; i++) {
        struct tree_part *p = &s->parts[s->part_count++];
        *p = (struct tree_part){.tree = t.trees[i], .seed = s->seed};
        tree_take_back(s, p, &t, &t.trees[i]);
    }
    arena_reset(s->scratch);
    return PROFD_OK;
}

enum profd_status tree_sum_add(struct tree_sum *s, const struct tree_addend *more, struct profd_error *e)
{
    for (uint32_t i = 0; i < more->list.count; i++) {
        struct tree_part *p = tree_find_part(s, &more->list.trees[i]);
        if (p == NULL) {
            break;
        }
        tree_add(s, p, more, &more->list.trees[i]);
        if (s->node_count >= TREE_HELD) {
            TRY(tree_shrink(s, e));
        }
    }
    return PROFD_OK;
}

/* What was made, in the arena of the sum. */
static struct tree_total tree_copy_total(struct tree_sum *s, const struct tree_total *t)
{
    const size_t n = t->node_count;
    struct tree_total copy = tree_take_total(s->arena, n, s->shares);
    copy.tree_count = t->tree_count;
    copy.node_count = t->node_count;
    memcpy(copy.trees, t->trees, t->tree_count * sizeof *copy.trees);
    memcpy(copy.nodes.depth, t->nodes.depth, n * sizeof *copy.nodes.depth);
    memcpy(copy.nodes.kind, t->nodes.kind, n * sizeof *copy.nodes.kind);
    memcpy(copy.nodes.build, t->nodes.build, n * sizeof *copy.nodes.build);
    memcpy(copy.nodes.address, t->nodes.address, n * sizeof *copy.nodes.address);
    memcpy(copy.nodes.ticks, t->nodes.ticks, n * sizeof *copy.nodes.ticks);
    if (copy.shares != NULL) {
        memcpy(copy.shares, t->shares, n * TREE_GROUPS * sizeof *copy.shares);
    }
    return copy;
}

enum profd_status tree_sum_finish(struct tree_sum *s, struct tree_total *out, bool *saturated, struct profd_error *e)
{
    struct tree_total made;
    enum profd_status status = tree_make(s, &made, e);
    arena_free(s->held);
    if (status == PROFD_OK) {
        *out = tree_copy_total(s, &made);
    }
    arena_free(s->scratch);
    s->held = s->scratch = NULL;
    *saturated |= s->saturated;
    return status;
}
