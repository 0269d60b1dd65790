#include "compat/compat_arcs.h"

/* Open addressing over (parent, child); a slot holds the arc's number + 1. */
struct arc_table {
    uint32_t *slots;
    uint64_t mask;
};

static uint64_t pair_hash(uint32_t parent, uint32_t child)
{
    uint64_t x = ((uint64_t)parent << 32 | child) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static void arc_add(struct compat_arcs *r, struct arc_table *t, uint32_t parent, uint32_t child, uint64_t calls)
{
    uint64_t at = pair_hash(parent, child) & t->mask;
    for (; t->slots[at] != 0; at = (at + 1) & t->mask) {
        uint32_t arc = t->slots[at] - 1;
        if (r->parent[arc] == parent && r->child[arc] == child) {
            r->calls[arc] += calls;
            return;
        }
    }
    t->slots[at] = r->count + 1;
    r->parent[r->count] = parent;
    r->child[r->count] = child;
    r->calls[r->count++] = calls;
}

/* The function that is charged for calls to each symbol: itself, or the nearest function in front of it. */
static void callees_fill(const struct compat_symbols *s, uint32_t *callee)
{
    uint32_t last = COMPAT_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        if ((s->flags[i] & COMPAT_SYMBOL_FUNCTION) != 0)
            last = i;
        callee[i] = last;
    }
}

static void records_add(const struct counts *c, const struct compat_symbols *s, const struct compat_filter *f,
                        const uint32_t *callee, struct arc_table *t, struct compat_arcs *r)
{
    uint32_t from = COMPAT_NONE; /* owner of the last caller: records come sorted by caller */
    for (uint32_t i = 0; i < c->arc_count; i++) {
        if (c->from_build[i] == COUNTS_NOWHERE || c->to_build[i] == COUNTS_NOWHERE)
            continue;
        if (from == COMPAT_NONE || c->from[i] < s->address[from] || c->from[i] > s->end[from] ||
            (from + 1 < s->count && c->from[i] >= s->address[from + 1]))
            from = compat_symbols_find(s, c->from[i]);
        uint32_t to = compat_symbols_find(s, c->to[i]);
        if (to != COMPAT_NONE)
            to = callee[to];
        if (from == COMPAT_NONE || to == COMPAT_NONE || (f != NULL && !compat_filter_arc(f, s, from, to)))
            continue;
        r->total[to] += c->calls[i];
        arc_add(r, t, from, to, c->calls[i]);
    }
}

/* Lists of arcs by one of their ends, newest first. */
static void lists_fill(const uint32_t *end, uint32_t arcs, uint32_t symbols, uint32_t *first, uint32_t *list)
{
    for (uint32_t i = 0; i < arcs; i++)
        first[end[i] + 1]++;
    for (uint32_t i = 0; i < symbols; i++)
        first[i + 1] += first[i];
    /* Filled from the back, oldest arc first, each first[] moves from the end of its list to its begin, one place too high. */
    for (uint32_t i = 0; i < arcs; i++)
        list[--first[end[i] + 1]] = i;
    for (uint32_t i = 0; i < symbols; i++)
        first[i] = first[i + 1];
    first[symbols] = arcs;
}

enum profd_status compat_arcs_tally(const struct counts *c, const struct compat_symbols *s,
                                    const struct compat_filter *f, const struct compat_calls *calls, struct arena *a,
                                    struct compat_arcs *out, struct profd_error *e)
{
    struct compat_arcs r = {0};
    uint64_t most = (uint64_t)c->arc_count + (calls != NULL ? calls->count : 0);
    if (most >= UINT32_MAX)
        return profd_error_set(e, PROFD_LIMIT, "there may be at most 4294967294 arcs, not %llu", (unsigned long long)most);
    struct arc_table t = {.mask = 15};
    while (t.mask < most * 2)
        t.mask = t.mask * 2 + 1;
    t.slots = ARENA_ARRAY(a, t.mask + 1, uint32_t);
    uint32_t *callee = ARENA_ARRAY(a, s->count, uint32_t);
    size_t n = (size_t)most + 1, lists = (size_t)s->count + 1;
    r.parent = ARENA_ARRAY(a, n, uint32_t);
    r.child = ARENA_ARRAY(a, n, uint32_t);
    r.calls = ARENA_ARRAY(a, n, uint64_t);
    r.total = ARENA_ARRAY(a, s->count, uint64_t);
    r.child_first = ARENA_ARRAY(a, lists, uint32_t);
    r.parent_first = ARENA_ARRAY(a, lists, uint32_t);
    r.child_list = ARENA_ARRAY(a, n, uint32_t);
    r.parent_list = ARENA_ARRAY(a, n, uint32_t);
    if (t.slots == NULL || callee == NULL || r.parent == NULL || r.child == NULL || r.calls == NULL || r.total == NULL ||
        r.child_first == NULL || r.parent_first == NULL || r.child_list == NULL || r.parent_list == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u arcs", c->arc_count);
    callees_fill(s, callee);
    records_add(c, s, f, callee, &t, &r);
    r.recorded = r.count;
    for (uint32_t i = 0; calls != NULL && i < calls->count; i++)
        arc_add(&r, &t, calls->parent[i], calls->child[i], 0);
    lists_fill(r.parent, r.count, s->count, r.child_first, r.child_list);
    lists_fill(r.child, r.count, s->count, r.parent_first, r.parent_list);
    *out = r;
    return PROFD_OK;
}
