#include "compat/compat_arcs.h"

#include <stdbool.h>

/* One record, or one call in the machine code, between two symbols. */
struct met {
    uint32_t child;
    uint32_t number; /* in order of arrival */
    uint64_t calls;
};

/* State of all steps. from and to are the ends of all records in order of arrival; COMPAT_NONE: dropped. */
struct tally {
    const struct counts *counts;
    const struct compat_symbols *symbols;
    const struct compat_filter *filter;
    const struct compat_calls *code; /* may be NULL */
    struct compat_arcs *r;
    uint32_t *from, *to;
    uint32_t met;     /* how many */
    uint32_t *arc_of; /* arc that each record created */
    bool by_parent;   /* parents ascend, as in the file of one process */
    uint32_t *symbol; /* a number for each symbol */
    struct met *list; /* dealt out by parent */
};

/* By symbol: the function that counts the calls to it, which is the symbol itself or the nearest function before it. */
static void callees_fill(const struct compat_symbols *s, uint32_t *callee)
{
    uint32_t last = COMPAT_NONE;
    for (uint32_t i = 0; i < s->count; i++) {
        if ((s->flags[i] & COMPAT_SYMBOL_FUNCTION) != 0) {
            last = i;
        }
        callee[i] = last;
    }
}

static uint64_t calls_of(const struct tally *t, uint32_t number)
{
    return number < t->counts->arc_count ? t->counts->calls[number] : 0;
}

/* The owner of an address. Tries the previous owner first, because records come sorted by caller. */
static uint32_t owner_find(const struct compat_symbols *s, uint64_t address, uint32_t before)
{
    if (before != COMPAT_NONE && before + 1 < s->count && address >= s->address[before] && address <= s->end[before] &&
        address < s->address[before + 1]) {
        return before;
    }
    return compat_symbols_find(s, address);
}

static void ends_find(struct tally *t)
{
    const struct counts *c = t->counts;
    const struct compat_symbols *s = t->symbols;
    const uint32_t *callee = t->symbol;
    uint32_t from = COMPAT_NONE, last = 0;
    t->by_parent = t->met == c->arc_count;
    for (uint32_t i = 0; i < c->arc_count; i++) {
        t->from[i] = COMPAT_NONE;
        if (c->from_build[i] == COUNTS_NOWHERE || c->to_build[i] == COUNTS_NOWHERE) {
            continue;
        }
        from = owner_find(s, c->from[i], from);
        uint32_t to = compat_symbols_find(s, c->to[i]);
        if (to != COMPAT_NONE) {
            to = callee[to];
        }
        if (from == COMPAT_NONE || to == COMPAT_NONE ||
            (t->filter != NULL && !compat_filter_arc(t->filter, s, from, to))) {
            continue;
        }
        t->r->total[to] += c->calls[i];
        t->by_parent = t->by_parent && from >= last;
        last = from;
        t->from[i] = from;
        t->to[i] = to;
    }
    for (uint32_t i = c->arc_count; i < t->met; i++) {
        t->from[i] = t->code->parent[i - c->arc_count];
        t->to[i] = t->code->child[i - c->arc_count];
    }
}

/* Lists the records of each parent in order of arrival. Leaves the beginnings of the lists in child_first. */
static void records_deal(struct tally *t)
{
    uint32_t *first = t->r->child_first, symbols = t->symbols->count;
    for (uint32_t i = 0; i < t->met; i++) {
        if (t->from[i] != COMPAT_NONE) {
            first[t->from[i]]++;
        }
    }
    for (uint32_t v = 0, sum = 0; v <= symbols; v++) {
        uint32_t n = first[v];
        first[v] = sum;
        sum += n;
    }
    uint32_t *at = t->symbol;
    for (uint32_t v = 0; v < symbols; v++) {
        at[v] = first[v];
    }
    for (uint32_t i = 0; i < t->met; i++) {
        if (t->from[i] != COMPAT_NONE) {
            t->list[at[t->from[i]]++] = (struct met){t->to[i], i, calls_of(t, i)};
        }
    }
}

/* Makes one arc of all records of a pair. list then holds each arc's first record, at the arc's place. */
static void pairs_join(struct tally *t)
{
    struct compat_arcs *r = t->r;
    uint32_t *arc = t->symbol; /* by child: the latest arc to it */
    for (uint32_t v = 0; v < t->symbols->count; v++) {
        arc[v] = COMPAT_NONE;
    }
    for (uint32_t v = 0, i = 0; v < t->symbols->count; v++) {
        uint32_t begin = r->count, end = r->child_first[v + 1];
        for (; i < end; i++) {
            struct met m = t->list[i];
            uint32_t known = arc[m.child];
            if (known != COMPAT_NONE && known >= begin) {
                r->calls[known] += m.calls;
                continue;
            }
            arc[m.child] = r->count;
            r->child[r->count] = m.child;
            r->calls[r->count] = m.calls;
            t->list[r->count++].number = m.number;
        }
        r->child_first[v] = begin;
    }
    r->child_first[t->symbols->count] = r->count;
}

static void recorded_fill(struct tally *t)
{
    struct compat_arcs *r = t->r;
    for (uint32_t v = 0; v < t->symbols->count; v++) {
        uint32_t end = r->child_first[v + 1];
        while (end > r->child_first[v] && t->list[end - 1].number >= t->counts->arc_count) {
            end--;
        }
        r->recorded[v] = end;
    }
}

static void parent_add(struct tally *t, uint32_t arc, uint32_t parent, uint32_t child)
{
    uint32_t to = t->symbol[child]++;
    t->r->parent[to] = parent;
    t->r->parent_calls[to] = t->r->calls[arc];
}

/* Lists the arcs of each child in order of arrival. */
static void parents_deal(struct tally *t)
{
    struct compat_arcs *r = t->r;
    uint32_t *first = r->parent_first, *at = t->symbol, symbols = t->symbols->count;
    for (uint32_t i = 0; i < r->count; i++) {
        first[r->child[i]]++;
    }
    for (uint32_t v = 0, sum = 0; v <= symbols; v++) {
        uint32_t n = first[v];
        first[v] = sum;
        if (v < symbols) {
            at[v] = sum;
        }
        sum += n;
    }
    if (t->by_parent) {
        for (uint32_t v = 0; v < symbols; v++) {
            for (uint32_t i = r->child_first[v]; i < r->child_first[v + 1]; i++) {
                parent_add(t, i, v, r->child[i]);
            }
        }
        return;
    }
    /* Uses for each record the arc that it created. */
    for (uint32_t i = 0; i < t->met; i++) {
        t->arc_of[i] = COMPAT_NONE;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        t->arc_of[t->list[i].number] = i;
    }
    for (uint32_t i = 0; i < t->met; i++) {
        if (t->arc_of[i] != COMPAT_NONE) {
            parent_add(t, t->arc_of[i], t->from[i], t->to[i]);
        }
    }
}

static bool arcs_take(struct compat_arcs *r, size_t arcs, size_t symbols, struct arena *a)
{
    r->child = ARENA_ARRAY(a, arcs, uint32_t);
    r->calls = ARENA_ARRAY(a, arcs, uint64_t);
    r->parent = ARENA_ARRAY(a, arcs, uint32_t);
    r->parent_calls = ARENA_ARRAY(a, arcs, uint64_t);
    r->total = ARENA_ARRAY(a, symbols, uint64_t);
    r->recorded = ARENA_ARRAY(a, symbols, uint32_t);
    r->child_first = ARENA_ARRAY(a, symbols + 1, uint32_t);
    r->parent_first = ARENA_ARRAY(a, symbols + 1, uint32_t);
    return r->child != NULL && r->calls != NULL && r->parent != NULL && r->parent_calls != NULL && r->total != NULL &&
           r->recorded != NULL && r->child_first != NULL && r->parent_first != NULL;
}

enum profd_status compat_arcs_tally(const struct counts *c, const struct compat_symbols *s,
                                    const struct compat_filter *f, const struct compat_calls *calls, struct arena *a,
                                    struct compat_arcs *out, struct profd_error *e)
{
    struct compat_arcs r = {0};
    uint64_t most = (uint64_t)c->arc_count + (calls != NULL ? calls->count : 0);
    if (most >= UINT32_MAX) {
        return profd_error_set(e, PROFD_LIMIT, "there may be at most 4294967294 arcs, not %llu",
                               (unsigned long long)most);
    }
    size_t n = (size_t)most + 1;
    struct tally t = {.counts = c, .symbols = s, .filter = f, .code = calls, .r = &r, .met = (uint32_t)most};
    t.from = ARENA_ARRAY(a, n, uint32_t);
    t.to = ARENA_ARRAY(a, n, uint32_t);
    t.arc_of = ARENA_ARRAY(a, n, uint32_t);
    t.symbol = ARENA_ARRAY(a, s->count, uint32_t);
    t.list = ARENA_ARRAY(a, n, struct met);
    if (t.from == NULL || t.to == NULL || t.arc_of == NULL || t.symbol == NULL || t.list == NULL ||
        !arcs_take(&r, n, s->count, a)) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %u arcs", c->arc_count);
    }
    callees_fill(s, t.symbol);
    ends_find(&t);
    records_deal(&t);
    pairs_join(&t);
    recorded_fill(&t);
    parents_deal(&t);
    *out = r;
    return PROFD_OK;
}
