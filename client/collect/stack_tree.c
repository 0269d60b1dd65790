#include "client/collect/stack_tree.h"

#include "client/collect/collect.h"
#include "client/collect/module.h"
#include "client/collect/region.h"
#include "client/collect/stub.h"

#define PROBES 32u /* nodes that are searched */
#define GENERATIONS 4u
#define PC_INCOMPLETE 1u /* in place of a program counter */
#define PC_OUTSIDE 2u
#define RESERVE(header) ((header)->size / 8) /* for the calls */

#if defined __x86_64__
#define PC_SHIFT 0u /* programs have 47 bits of addresses: a key is exact */
#else
#define PC_SHIFT 2u
#endif

/* Pages of each chunk: a process with few stacks needs one. */
static const uint16_t chunk_pages[GENERATIONS] = {1, 8, 64, 438};

static struct generation {
    struct attach_chunk *chunk;
    uint32_t filled;
} generations[GENERATIONS];
static uint32_t newest; /* number of generations */

struct tree_frame {
    uintptr_t pc;
    bool is_pc; /* where the tick found the thread */
};

static struct attach_node *nodes_of(struct attach_chunk *c)
{
    return (struct attach_node *)(void *)(c + 1);
}

static uint32_t nodes_in(uint32_t generation)
{
    return (uint32_t)((chunk_pages[generation] * ATTACH_PAGE - sizeof(struct attach_chunk)) /
                      sizeof(struct attach_node));
}

static bool is_pseudo(uintptr_t pc)
{
    return pc == PC_INCOMPLETE || pc == PC_OUTSIDE;
}

static uint64_t key_of(uint32_t parent, struct tree_frame f)
{
    uint64_t pc = is_pseudo(f.pc) ? f.pc : (uint64_t)f.pc >> PC_SHIFT;
    return pc << 17 | (uint64_t)parent << 1 | f.is_pc;
}

/* Begins the next generation; a second thread that does so at the same time leaves its pages empty. */
static bool generation_begin(uint32_t which)
{
    uint32_t first = 1;
    struct attach_chunk *none = NULL;
    for (uint32_t i = 0; i < which; i++) {
        first += nodes_in(i);
    }
    if (!__atomic_load_n(&generations[which].chunk, __ATOMIC_ACQUIRE)) {
        struct attach_chunk *c =
            region_take(collect.header, (uint64_t)chunk_pages[which] * ATTACH_PAGE, RESERVE(collect.header));
        if (!c) {
            return false;
        }
        c->kind = ATTACH_KIND_STACKS;
        c->primary = nodes_in(which);
        c->hash = first;
        if (__atomic_compare_exchange_n(&generations[which].chunk, &none, c, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            __atomic_store_n(&c->magic, ATTACH_STACKS_MAGIC, __ATOMIC_RELEASE);
        }
    }
    uint32_t before = which;
    __atomic_compare_exchange_n(&newest, &before, which + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return true;
}

static struct generation *generation_get(void)
{
    uint32_t n = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
    /* Searches are long when 5/8 of the nodes are used. */
    if (n == 0 || (n < GENERATIONS &&
                   __atomic_load_n(&generations[n - 1].filled, __ATOMIC_RELAXED) * 8ull > nodes_in(n - 1) * 5ull)) {
        generation_begin(n);
        n = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
    }
    return n > 0 ? &generations[n - 1] : NULL;
}

struct tree_wanted {
    uint32_t parent;
    struct tree_frame frame;
    uint64_t key;
    uintptr_t (*begin)(uintptr_t, bool);
};

static struct module_place place_of(struct tree_frame f)
{
    struct module_place outside = {ATTACH_MODULE_NONE, f.pc == PC_INCOMPLETE ? ATTACH_INCOMPLETE : 0};
    return is_pseudo(f.pc) ? outside : module_find(f.pc);
}

static void identity_write(struct attach_node *node, const struct tree_wanted *w)
{
    struct module_place place = place_of(w->frame);
    uint32_t begin = ATTACH_BEGIN_UNKNOWN;
    if (place.module != ATTACH_MODULE_NONE) {
        uintptr_t at = w->begin(w->frame.pc, !w->frame.is_pc);
        if (at && w->frame.pc >= at && w->frame.pc - at <= place.offset) {
            begin = place.offset - (uint32_t)(w->frame.pc - at);
        }
        if (!module_is_counted(place.module)) {
            module_set_counted(place.module);
        }
    }
    node->parent = w->parent;
    node->self = place.offset;
    node->begin = begin;
    node->kind = w->frame.is_pc ? ATTACH_NODE_PC : ATTACH_NODE_RETURN;
    __atomic_store_n(&node->module, place.module, __ATOMIC_RELEASE);
}

static bool node_claim(struct generation *g, struct attach_node *node, const struct tree_wanted *w)
{
    uint64_t key = __atomic_load_n(&node->key, __ATOMIC_ACQUIRE);
    if (key == w->key) {
        return true;
    }
    if (key == 0 && __atomic_compare_exchange_n(&node->key, &key, w->key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        identity_write(node, w);
        __atomic_fetch_add(&g->filled, 1, __ATOMIC_RELAXED);
        return true;
    }
    if (key == STUB_TOMB) { /* a module that was unloaded and is back has its old nodes, with their children */
        struct module_place place = place_of(w->frame);
        if (node->parent == w->parent && node->module == place.module && node->self == place.offset &&
            node->kind == (w->frame.is_pc ? ATTACH_NODE_PC : ATTACH_NODE_RETURN) &&
            __atomic_compare_exchange_n(&node->key, &key, w->key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return true;
        }
    }
    return key == w->key;
}

static uint32_t place_in(const struct attach_chunk *c, uint64_t key)
{
    return (uint32_t)((key * STUB_FACTOR >> 32) * c->primary >> 32);
}

/* The node, if it is there. */
static struct attach_node *node_peek(struct attach_chunk *c, uint64_t key)
{
    uint32_t at = place_in(c, key);
    for (uint32_t i = 0; i < PROBES; i++) {
        struct attach_node *node = &nodes_of(c)[at];
        uint64_t has = __atomic_load_n(&node->key, __ATOMIC_ACQUIRE);
        if (has == key || has == 0) {
            return has == key ? node : NULL;
        }
        at = at + 1 < c->primary ? at + 1 : 0;
    }
    return NULL;
}

static struct attach_node *node_get(struct generation *g, struct tree_wanted *w)
{
    struct attach_node *node;
    w->key = key_of(w->parent, w->frame);
    node = node_peek(g->chunk, w->key);
    if (!node && w->frame.pc != PC_INCOMPLETE && module_find(w->frame.pc).module == ATTACH_MODULE_NONE) {
        w->frame.pc = PC_OUTSIDE;
        w->key = key_of(w->parent, w->frame);
    }
    uint32_t at = place_in(g->chunk, w->key);
    for (uint32_t i = 0; i < PROBES && !node; i++) {
        struct attach_node *candidate = &nodes_of(g->chunk)[at];
        node = node_claim(g, candidate, w) ? candidate : NULL;
        at = at + 1 < g->chunk->primary ? at + 1 : 0;
    }
    return node;
}

/* Looks up the frames, the outermost first. *end: the innermost that has a node, NULL if there is none. False: it is
 * not the last. */
static bool path_find(struct generation *g, const uintptr_t *pcs, unsigned n, bool complete, struct tree_wanted *w,
                      struct attach_node **end)
{
    *end = NULL;
    w->parent = 0;
    for (unsigned left = n + !complete; left > 0; left--) {
        w->frame = (struct tree_frame){left > n ? PC_INCOMPLETE : pcs[left - 1], left == 1};
        /* Half of the last chunk is used. Then ticks of one function and path share a node, at the function's
         * beginning, instead of one node for each instruction: what is left serves for new paths. The histogram has the
         * instructions. */
        if (left == 1 && g == &generations[GENERATIONS - 1] &&
            __atomic_load_n(&g->filled, __ATOMIC_RELAXED) * 2 > g->chunk->primary) {
            uintptr_t begin = w->begin(pcs[0], false);
            w->frame.pc = begin ? begin : pcs[0];
        }
        struct attach_node *node = node_get(g, w);
        if (!node) {
            return false;
        }
        *end = node;
        w->parent = g->chunk->hash + (uint32_t)(node - nodes_of(g->chunk));
    }
    return true;
}

bool stack_tree_count(const uintptr_t *pcs, unsigned n, bool complete, uint64_t weight,
                      uintptr_t (*begin)(uintptr_t, bool))
{
    struct generation *g = generation_get();
    struct attach_node *node = NULL;
    struct tree_wanted w = {.begin = begin};
    n = !complete && n == STACK_TREE_FRAMES_MAX ? n - 1 : n; /* what stands for the others has the depth of one */
    bool whole = g && path_find(g, pcs, n, complete, &w, &node);
    for (uint32_t next = g ? (uint32_t)(g - generations) + 1 : GENERATIONS; !whole && next < GENERATIONS; next++) {
        struct attach_node *other;
        if (!generation_begin(next)) {
            break;
        }
        whole = path_find(&generations[next], pcs, n, complete, &w, &other);
        node = other ? other : node;
    }
    if (node) {
        __atomic_fetch_add(&node->count, weight, __ATOMIC_RELEASE);
    }
    return whole;
}

void stack_tree_retire_module(uint16_t id)
{
    uint32_t n = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++) {
        struct attach_chunk *c = generations[i].chunk;
        for (uint32_t k = 0; k < c->primary; k++) {
            struct attach_node *node = &nodes_of(c)[k];
            if (node->module == id) {
                __atomic_store_n(&node->key, STUB_TOMB, __ATOMIC_RELEASE);
            }
        }
    }
}

void stack_tree_reset(void)
{
    for (uint32_t i = 0; i < GENERATIONS; i++) {
        generations[i].chunk = NULL;
        generations[i].filled = 0;
    }
    newest = 0;
}
