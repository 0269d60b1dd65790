/* Cycles, their members' order and the topological order against gprof's own way of finding them, written down
 * literally (reference 3.5, A2): recursive, with linked lists and linear search. */
#include "compat/compat_run.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/rounds.h"

#define MOST 40

struct literal {
    uint32_t n;
    unsigned arcs[MOST][MOST]; /* children, newest first */
    unsigned arc_count[MOST];
    unsigned top[MOST], head[MOST];
    int next[MOST];
    bool busy[MOST];
    unsigned stack[MOST], depth, counter;
};

static void literal_collapse(struct literal *l, unsigned v)
{
    unsigned at = l->depth - 1;
    while (l->stack[at] != v && !(l->head[v] != v && l->stack[at] == l->head[v])) {
        cr_assert(at > 0);
        at--;
    }
    if (at == l->depth - 1) {
        return;
    }
    unsigned head = l->head[l->stack[at]], tail = l->stack[at];
    while (l->next[tail] >= 0) {
        tail = (unsigned)l->next[tail];
    }
    for (unsigned i = at + 1; i < l->depth; i++) {
        unsigned x = l->stack[i];
        if (l->head[x] != x) {
            cr_assert_eq(l->head[x], head);
            continue;
        }
        l->next[tail] = (int)x;
        for (int m = (int)x; m >= 0; m = l->next[m]) {
            l->head[m] = head;
            tail = (unsigned)m;
        }
    }
}

static void literal_visit(struct literal *l, unsigned v)
{
    if (l->top[v] != 0) {
        return;
    }
    if (l->busy[v]) {
        literal_collapse(l, v);
        return;
    }
    l->busy[v] = true;
    l->stack[l->depth++] = v;
    for (unsigned i = 0; i < l->arc_count[v]; i++) {
        literal_visit(l, l->arcs[v][i]);
    }
    if (l->head[v] == v) {
        l->counter++;
        for (int m = (int)v; m >= 0; m = l->next[m]) {
            l->top[m] = l->counter;
        }
    }
    l->depth--;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* n symbols of 16 bytes, the last one a bound. */
static struct compat_symbols make_symbols(struct arena *a, uint32_t n)
{
    struct compat_symbols s = {.count = n,
                               .address = ARENA_ARRAY(a, n, uint64_t),
                               .end = ARENA_ARRAY(a, n, uint64_t),
                               .flags = ARENA_ARRAY(a, n, uint8_t)};
    for (uint32_t i = 0; i < n; i++) {
        s.address[i] = 16 * (uint64_t)i;
        s.end[i] = s.address[i] + 15;
        s.flags[i] = COMPAT_SYMBOL_FUNCTION;
    }
    return s;
}

static void graph_check(struct literal *l, const struct compat_cycles *c, uint64_t seed)
{
    for (unsigned v = 0; v < l->n; v++) {
        l->head[v] = v;
        l->next[v] = -1;
    }
    for (unsigned v = 0; v < l->n; v++) {
        literal_visit(l, v);
    }
    uint32_t cycles = 0;
    for (unsigned v = 0; v < l->n; v++) {
        if (l->head[v] != v || l->next[v] < 0) {
            cr_assert(l->head[v] != v || c->number[v] == 0, "seed %lu: %u is in no cycle", seed, v);
            continue;
        }
        uint32_t at = c->member_first[cycles++];
        for (int m = (int)v; m >= 0; m = l->next[m], at++) {
            cr_assert_eq(c->members[at], (uint32_t)m, "seed %lu: member %u of cycle %u", seed, at, cycles);
            cr_assert_eq(c->number[m], cycles, "seed %lu", seed);
        }
        cr_assert_eq(at, c->member_first[cycles], "seed %lu: size of cycle %u", seed, cycles);
    }
    cr_assert_eq(c->count, cycles, "seed %lu", seed);
    for (unsigned i = 0; i + 1 < l->n; i++) {
        unsigned x = c->order[i], y = c->order[i + 1];
        cr_assert(l->top[x] < l->top[y] || (l->top[x] == l->top[y] && x < y), "seed %lu: order at %u", seed, i);
    }
}

Test(compat_cycles, like_gprof)
{
    for (uint64_t seed = 1; seed <= rounds(8000); seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15u;
        struct arena *a = arena_new(0);
        struct literal *l = ARENA_NEW(a, struct literal);
        l->n = 1 + (uint32_t)(next_random(&state) % MOST);
        bool has[MOST][MOST] = {{false}};
        uint32_t arcs = (uint32_t)(next_random(&state) % (3 * l->n + 1));
        uint64_t from[3 * MOST], to[3 * MOST], calls[3 * MOST] = {0};
        uint32_t builds[3 * MOST] = {0};
        for (uint32_t i = 0; i < arcs; i++) {
            unsigned p = (unsigned)(next_random(&state) % l->n), q = (unsigned)(next_random(&state) % l->n);
            from[i] = 16 * p + 3;
            to[i] = 16 * q;
            if (has[p][q]) {
                continue;
            }
            has[p][q] = true;
            for (unsigned j = l->arc_count[p]++; j > 0; j--) {
                l->arcs[p][j] = l->arcs[p][j - 1];
            }
            l->arcs[p][0] = q;
        }
        struct counts c = {
            .arc_count = arcs, .from = from, .to = to, .calls = calls, .from_build = builds, .to_build = builds};
        struct compat_symbols s = make_symbols(a, l->n);
        struct compat_arcs found;
        struct compat_cycles cycles;
        cr_assert_eq(compat_arcs_tally(&c, &s, NULL, NULL, a, &found, NULL), PROFD_OK);
        cycles = compat_cycles_find(&found, l->n, a);
        graph_check(l, &cycles, seed);
        arena_free(a);
    }
}

/* 400,000 calls deep, where gprof dies; with an arc from the end to the begin all of it is one cycle. */
Test(compat_cycles, deep_chain)
{
    enum { N = 400000 };
    struct counts c;
    cr_assert_eq(counts_init(&c, 0, 0, N, NULL), PROFD_OK);
    for (uint32_t i = 0; i < N; i++) {
        c.from[i] = 16 * (uint64_t)i;
        c.to[i] = 16 * (uint64_t)((i + 1) % N);
        c.calls[i] = 1;
    }
    for (unsigned closed = 0; closed < 2; closed++) {
        struct arena *a = arena_new(0);
        struct compat_symbols s = make_symbols(a, N);
        struct compat_arcs arcs;
        struct compat_cycles cycles;
        c.arc_count = N - 1 + closed;
        cr_assert_eq(compat_arcs_tally(&c, &s, NULL, NULL, a, &arcs, NULL), PROFD_OK);
        cycles = compat_cycles_find(&arcs, N, a);
        cr_expect_eq(cycles.count, closed);
        cr_expect_eq(cycles.order[0], closed ? 0 : N - 1);
        if (closed) {
            for (uint32_t i = 0; i < N; i++) {
                cr_assert_eq(cycles.members[i], i);
            }
        }
        arena_free(a);
    }
    counts_done(&c);
}

static int compare_high(const void *context, uint32_t a, uint32_t b)
{
    (void)context;
    return (int)(a >> 16) - (int)(b >> 16);
}

/* Equal keys keep their order, at every length. */
Test(compat_sort, stable)
{
    uint32_t items[600], scratch[600];
    uint64_t state = 1982;
    for (uint32_t n = 0; n <= 600; n++) {
        for (uint32_t i = 0; i < n; i++) {
            items[i] = (uint32_t)(next_random(&state) % 20) << 16 | i;
        }
        compat_sort(items, scratch, n, compare_high, NULL);
        for (uint32_t i = 1; i < n; i++) {
            cr_assert(items[i - 1] < items[i], "length %u, place %u", n, i);
        }
    }
}
