/* Laws of reports on random programs, fleets and windows. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/property/core/serialize.h"
#include "tests/rounds.h"
#include "tests/unit/core/fixture.h"

#define BUILDS 3
#define FUNCTIONS 24

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static struct fixture objects[BUILDS];
static const char *const ids[BUILDS] = {"aa01", "bb02", "cc03"};

/* Builds with functions of 16 … 64 bytes, gaps between some, static arcs and imports. The third has no names at times.
 */
static void make_objects(void)
{
    for (uint32_t b = 0; b < BUILDS; b++) {
        struct fixture *f = &objects[b];
        fixture_init(f, ids[b]);
        uint64_t address = 0x1000;
        for (uint32_t i = 0; i < FUNCTIONS && !(b == 2 && state % 4 == 0); i++) {
            char name[16];
            snprintf(name, sizeof name, "%sf%u_%u", draw(4) == 0 ? "_" : "", b, draw(3) == 0 ? i : i / 2);
            uint64_t size = 16 * (draw(4) + 1);
            fixture_symbol(f, name, address, draw(6) == 0 ? 0 : size,
                           draw(3) == 0 ? OBJECT_BIND_LOCAL : OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
            address += size + (draw(3) == 0 ? 8 : 0);
        }
        fixture_range(f, OBJECT_RANGE_TEXT, 0x1000, 0x1800);
        fixture_range(f, OBJECT_RANGE_PLT, 0x800, 0x880);
        fixture_plt(f, 0x810, 16, "f1_3");
        fixture_plt(f, 0x820, 16, "f0_2");
        uint64_t from = 0x1000;
        for (uint32_t i = 0; i < 20; i++) {
            from += draw(80);
            fixture_arc(f, from, 0x1000 + draw(0x800), draw(4) == 0 ? "f1_5" : NULL);
            if (f->arcs[i].import != 0) {
                f->arcs[i].to = 0;
            }
        }
    }
}

/* An upload whose own table lists the builds from `first` on, in a circle: its i-th build is ids[(first + i) % BUILDS].
 */
static void make_upload(struct upload *u, bool one_rate)
{
    upload_init(u);
    for (uint32_t i = draw(3) + 1; i > 0; i--) {
        uint64_t low = 0x1000 + 4 * draw(100), high = low + 4 * (draw(300) + 1);
        uint32_t kind = draw(3), bins = kind == 0 ? draw(50) + 1
                                        : kind == 1
                                            ? (uint32_t)(high - low) / 4
                                            : ((uint32_t)(high - low) / 2 + 7) / 8 * 4; /* as glibc lays them out */
        upload_histogram(u, draw(BUILDS), low, high, bins, one_rate || draw(3) > 0 ? 100 : 977);
        uint32_t bin = draw(5);
        for (; bin < bins && u->counts.bin_count < FIXTURE_MOST - 10; bin += draw(20) + 1) {
            upload_bin(u, bin, draw(1000) + 1);
        }
    }
    uint32_t hub = draw(4) == 0 ? 0x1000 + draw(0x800) : 0; /* somebody whom everybody calls: long lists */
    for (uint32_t i = hub == 0 ? draw(60) : 150; i > 0; i--) {
        uint32_t from = draw(BUILDS + 1), to = draw(20) == 0 ? BUILDS : draw(BUILDS);
        upload_arc(u, from == BUILDS ? COUNTS_NOWHERE : from, 0x1000 + draw(0x800), to == BUILDS ? COUNTS_NOWHERE : to,
                   hub != 0        ? hub
                   : draw(10) == 0 ? 0x810 + 16 * draw(3)
                                   : 0x1000 + draw(0x800),
                   draw(8) == 0 ? 0 : draw(1000));
    }
}

static struct report *make_report(struct arena *a, const struct profile *p, const struct profile *ever,
                                  bool static_arcs)
{
    const struct object *known[BUILDS];
    for (uint32_t i = 0; i < p->build_count; i++) {
        known[i] = NULL;
        for (uint32_t b = 0; b < BUILDS - (state % 5 == 0); b++) {
            if (strcmp(p->builds[i], ids[b]) == 0) {
                known[i] = &objects[b].object;
            }
        }
    }
    struct report_request request = {.profile = p, .ever = ever, .objects = known, .static_arcs = static_arcs};
    struct report *r = NULL;
    struct profd_error e;
    cr_assert_eq(report_build(a, &request, &r, &e), PROFD_OK, "%s", e.sentence);
    return r;
}

static void near(double a, double b, const char *law, uint64_t seed)
{
    cr_assert(fabs(a - b) <= 1e-9 * (1 + fabs(a) + fabs(b)), "seed %llu: %s: %.17g and %.17g", (unsigned long long)seed,
              law, a, b);
}

/* Negative if row x comes before y in a list that ascends; self is the entry's own position. */
static int compare_rows(const struct report_arc *x, const struct report_arc *y, uint32_t self)
{
    int class_x = x->other == self ? 0 : x->inside ? 1 : 2, class_y = y->other == self ? 0 : y->inside ? 1 : 2;
    double time_x = x->self + x->children, time_y = y->self + y->children;
    if (class_x != class_y) {
        return class_x - class_y;
    }
    if (time_x != time_y) {
        return time_x < time_y ? -1 : 1;
    }
    return x->calls < y->calls ? -1 : x->calls > y->calls;
}

static void check_rows(const struct report_arc *rows, uint32_t n, uint32_t self, int sign)
{
    for (uint32_t i = 1; i < n; i++) {
        int order = sign * compare_rows(&rows[i - 1], &rows[i], self);
        cr_assert(order < 0 || (order == 0 && rows[i - 1].other < rows[i].other));
    }
}

/* A class of addresses is in no cycle, hands its own time to its callers and keeps what it calls; it counts its own
 * time once. Returns what starts in it. */
static double check_class(const struct report *r, const struct report_function *f, double in, double below,
                          uint64_t seed)
{
    double all = f->self + f->children;
    cr_assert(f->cycle == 0, "seed %llu: %s is in a cycle", (unsigned long long)seed, f->name);
    if (f->calls_outside > 0) {
        near(in, f->self, "callers share the self time of a class of addresses", seed);
    }
    cr_assert(f->children <= below + 1e-9 && f->children >= below - f->self - 1e-9 && f->children >= 0);
    cr_assert(all <= r->total + 1e-9, "seed %llu: %s has %f of %f", (unsigned long long)seed, f->name, all, r->total);
    return below + (f->calls_outside == 0 ? f->self : 0);
}

/* All seconds are owned, and all arrive at roots. */
static void check_time(const struct report *r, uint64_t seed)
{
    double self = 0, roots = 0;
    uint64_t calls = 0;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        double in_self = 0, in_children = 0, out = 0;
        uint64_t in_calls = 0;
        check_rows(f->callers, f->caller_count, i, 1);
        check_rows(f->callees, f->callee_count, i, -1);
        self += f->self;
        calls += f->calls + f->self_calls;
        bool class = f->kind != REPORT_FUNCTION && f->kind != REPORT_ADDRESS;
        if (!class && f->cycle == 0 && f->calls_outside == 0) {
            roots += f->self + f->children;
        }
        for (uint32_t k = 0; k < f->caller_count; k++) {
            in_self += f->callers[k].self;
            in_children += f->callers[k].children;
            in_calls += f->callers[k].calls;
            cr_assert(!f->callers[k].inside || (f->callers[k].self == 0 && f->callers[k].of_calls == 0));
        }
        for (uint32_t k = 0; k < f->callee_count; k++) {
            out += f->callees[k].self + f->callees[k].children;
        }
        if (class) {
            roots += check_class(r, f, in_self + in_children, out, seed);
        } else {
            near(out, f->children, "children are what callees hand over", seed);
        }
        if (!class && f->cycle == 0 && f->calls_outside > 0) {
            near(in_self, f->self, "callers share all of self", seed);
            near(in_children, f->children, "callers share all of children", seed);
        }
        cr_assert_eq(in_calls, f->calls + f->self_calls);
        cr_assert_eq(f->calls + f->self_calls, f->calls_outside + f->calls_inside);
        cr_assert(f->index != 0 || (f->self == 0 && f->calls == 0 && f->self_calls == 0 && f->callee_count == 0));
    }
    for (uint32_t i = 0; i < r->cycle_count; i++) {
        const struct report_cycle *c = &r->cycles[i];
        double in = 0, out = 0, members = 0;
        check_rows(c->callers, c->caller_count, UINT32_MAX, 1);
        check_rows(c->callees, c->callee_count, UINT32_MAX, -1);
        for (uint32_t k = 0; k < c->caller_count; k++) {
            in += c->callers[k].self + c->callers[k].children;
        }
        for (uint32_t k = 0; k < c->callee_count; k++) {
            out += c->callees[k].self + c->callees[k].children;
        }
        for (uint32_t k = 0; k < c->member_count; k++) {
            members += c->members[k].self;
        }
        near(members, c->self, "members make up the cycle's self", seed);
        near(out, c->children, "a cycle's children are what its callees hand over", seed);
        if (c->calls_outside > 0) {
            near(in, c->self + c->children, "callers share all of the cycle", seed);
        } else {
            roots += c->self + c->children;
        }
    }
    near(self, r->total, "sum of self is the total", seed);
    near(roots, r->total, "what enters the roots is the total", seed);
    cr_assert_eq(calls, r->calls, "seed %llu: every call is somebody's", (unsigned long long)seed);
}

static bool before(const struct report *r, uint32_t x, uint32_t y)
{
    bool cx = (x & REPORT_CYCLE) != 0, cy = (y & REPORT_CYCLE) != 0;
    const struct report_function *f = &r->functions[x & ~REPORT_CYCLE], *g = &r->functions[y & ~REPORT_CYCLE];
    double tx = cx ? r->cycles[x & ~REPORT_CYCLE].self + r->cycles[x & ~REPORT_CYCLE].children : f->self + f->children;
    double ty = cy ? r->cycles[y & ~REPORT_CYCLE].self + r->cycles[y & ~REPORT_CYCLE].children : g->self + g->children;
    if (tx != ty) {
        return tx > ty;
    }
    if (cx || cy) {
        return cx && (!cy || x < y);
    }
    if ((f->raw[0] == '_') != (g->raw[0] == '_')) {
        return g->raw[0] == '_';
    }
    if (f->calls != g->calls) {
        return f->calls > g->calls;
    }
    return strcmp(f->raw, g->raw) != 0 ? strcmp(f->raw, g->raw) < 0 : x < y;
}

static void check_order(const struct report *r)
{
    for (uint32_t i = 0; i < r->order_count; i++) {
        uint32_t item = r->order[i];
        cr_assert_eq((item & REPORT_CYCLE) != 0 ? r->cycles[item & ~REPORT_CYCLE].index : r->functions[item].index,
                     i + 1);
        cr_assert(i == 0 || before(r, r->order[i - 1], item));
    }
    for (uint32_t i = 1; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i - 1], *g = &r->functions[i];
        cr_assert(f->build < g->build || (f->build == g->build && f->address <= g->address));
    }
}

Test(report, laws_on_random_fleets)
{
    static struct upload u;
    for (uint64_t seed = 1; seed <= rounds(1000); seed++) {
        state = seed * UINT64_C(0x9e3779b97f4a7c15);
        draw(1);
        struct arena *a = arena_new(0);
        make_objects();
        make_upload(&u, draw(2) == 0);
        const struct profile *p = upload_profile(&u, a, ids, BUILDS);
        make_upload(&u, false);
        const struct profile *ever = draw(2) == 0 ? NULL : upload_profile(&u, a, ids, BUILDS);
        for (int mode = 0; mode < 2; mode++) {
            struct report *r = make_report(a, p, ever, mode == 1);
            check_time(r, seed);
            check_order(r);
        }
        arena_free(a);
    }
}

#define NODES 9

/* calls[i][j]: of j by i. Functions that reach each other are in one cycle. */
static void check_called(const struct report *r, const uint64_t calls[NODES][NODES], uint64_t seed)
{
    bool reaches[NODES][NODES];
    for (uint32_t i = 0; i < NODES * NODES; i++) {
        reaches[i / NODES][i % NODES] = calls[i / NODES][i % NODES] > 0 || i / NODES == i % NODES;
    }
    for (uint32_t i = 0; i < NODES * NODES * NODES; i++) {
        uint32_t by = i / NODES / NODES, from = i / NODES % NODES, to = i % NODES;
        reaches[from][to] |= reaches[from][by] && reaches[by][to];
    }
    uint64_t outside[NODES + 1] = {0}, inside[NODES + 1] = {0}; /* by number of the cycle */
    for (uint32_t k = 0; k < r->function_count; k++) {
        const struct report_function *f = &r->functions[k];
        uint64_t from_outside = 0, from_inside = 0;
        uint32_t to = (uint32_t)(f->address - 0x1000) / 16;
        for (uint32_t from = 0; to < NODES && from < NODES; from++) {
            *(reaches[from][to] && reaches[to][from] ? &from_inside : &from_outside) += calls[from][to];
        }
        cr_assert(f->calls_outside == from_outside && f->calls_inside == from_inside,
                  "seed %llu: %s is called %llu+%llu", (unsigned long long)seed, f->name,
                  (unsigned long long)from_outside, (unsigned long long)from_inside);
        outside[f->cycle] += from_outside;
        inside[f->cycle] += from_inside;
    }
    for (uint32_t i = 0; i < r->cycle_count; i++) {
        const struct report_cycle *c = &r->cycles[i];
        uint64_t members = 0;
        for (uint32_t m = 0; m < c->member_count; m++) {
            members += c->members[m].calls;
        }
        cr_assert(c->calls_outside == outside[i + 1] && c->calls_inside == inside[i + 1] && members == c->calls_inside,
                  "seed %llu: cycle %u is called %llu+%llu", (unsigned long long)seed, i + 1,
                  (unsigned long long)outside[i + 1], (unsigned long long)inside[i + 1]);
    }
}

/* The numbers around "+" against a count by brute force: calls from outside, and from inside with those of a function
 * to itself (GNU's manual, "Cycles"). */
Test(report, calls_from_outside_and_inside)
{
    static struct upload u;
    for (uint64_t seed = 1; seed <= rounds(1000); seed++) {
        uint64_t calls[NODES][NODES] = {{0}};
        state = seed * UINT64_C(0xbf58476d1ce4e5b9);
        fixture_init(&objects[0], ids[0]);
        for (uint32_t i = 0; i < NODES; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%u", i);
            fixture_symbol(&objects[0], name, 0x1000 + 16 * i, 16, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
        }
        fixture_range(&objects[0], OBJECT_RANGE_TEXT, 0x1000, 0x1000 + 16 * NODES);
        upload_init(&u);
        for (uint32_t n = draw(3 * NODES) + 1; n > 0; n--) {
            uint32_t from = draw(NODES), to = draw(4) == 0 ? from : draw(NODES);
            uint64_t count = draw(1000) + 1;
            upload_arc(&u, 0, 0x1000 + 16 * from + draw(15) + 1, 0, 0x1000 + 16 * to, count);
            calls[from][to] += count;
        }
        struct arena *a = arena_new(0);
        const struct object *known[] = {&objects[0].object};
        struct report_request request = {.profile = upload_profile(&u, a, ids, 1), .objects = known};
        struct report *r = NULL;
        struct profd_error e;
        cr_assert_eq(report_build(a, &request, &r, &e), PROFD_OK, "%s", e.sentence);
        check_called(r, (const uint64_t(*)[NODES])calls, seed);
        arena_free(a);
    }
}

#define UPLOADS 6

/* The report of all uploads added in the order given; builds are introduced as they come. */
static void sum_in_order(const struct upload *uploads, const uint32_t *first, const uint32_t *order, struct buffer *out)
{
    struct arena *a = arena_new(0);
    struct profile_sum *s = profile_sum_new(a);
    for (uint32_t i = 0; i < UPLOADS; i++) {
        uint32_t map[BUILDS], k = order[i];
        for (uint32_t b = 0; b < BUILDS; b++) {
            map[b] = profile_sum_build(s, ids[(first[k] + b) % BUILDS]);
        }
        profile_sum_add(s, &uploads[k].counts, map, k + 1);
    }
    struct profile *p = NULL;
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    out->size = 0;
    serialize_report(out, make_report(a, p, NULL, false));
    arena_free(a);
}

Test(report, any_order_of_arrival_gives_the_same_bytes)
{
    static struct upload uploads[UPLOADS];
    struct buffer want, got;
    buffer_init(&want, SIZE_MAX);
    buffer_init(&got, SIZE_MAX);
    for (uint64_t seed = 1; seed <= rounds(100); seed++) {
        uint32_t first[UPLOADS], order[UPLOADS];
        state = seed * UINT64_C(0xd1342543de82ef95);
        make_objects();
        for (uint32_t i = 0; i < UPLOADS; i++) {
            make_upload(&uploads[i], false);
            first[i] = draw(BUILDS);
            order[i] = i;
        }
        uint64_t kept = state;
        sum_in_order(uploads, first, order, &want);
        for (int round = 0; round < 5; round++) {
            for (uint32_t i = UPLOADS; i > 1; i--) {
                uint32_t k = draw(i), swap = order[i - 1];
                order[i - 1] = order[k];
                order[k] = swap;
            }
            uint64_t after = state;
            state = kept; /* make_report looks at it: the same objects are known */
            sum_in_order(uploads, first, order, &got);
            state = after;
            cr_assert(want.size == got.size && memcmp(want.data, got.data, want.size) == 0, "seed %llu",
                      (unsigned long long)seed);
        }
    }
    buffer_done(&want);
    buffer_done(&got);
}

/* A sum as an upload of its own, its arcs in order of first arrival. */
static void upload_from(struct upload *u, const struct profile *p)
{
    upload_init(u);
    const struct counts *c = &p->counts;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        upload_histogram(u, h->build, h->low, h->high, h->bins, h->rate);
        for (uint32_t k = 0; k < h->used; k++) {
            upload_bin(u, c->bin_index[h->first + k], c->bin_ticks[h->first + k]);
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        upload_arc(u, c->from_build[i], c->from[i], c->to_build[i], c->to[i], c->calls[i]);
    }
}

static const struct profile *sum_of(struct arena *a, const struct upload *const *uploads, uint32_t n)
{
    struct profile_sum *s = profile_sum_new(a);
    struct profile *p = NULL;
    uint32_t map[BUILDS];
    for (uint32_t b = 0; b < BUILDS; b++) {
        map[b] = profile_sum_build(s, ids[b]);
    }
    profile_sum_load_order(s, map, BUILDS, 0);
    for (uint32_t i = 0; i < n; i++) {
        profile_sum_add(s, &uploads[i]->counts, map, i);
    }
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    return p;
}

Test(report, sums_of_sums_give_the_same_bytes)
{
    static struct upload x, y, z, left, right;
    struct buffer want, got;
    buffer_init(&want, SIZE_MAX);
    buffer_init(&got, SIZE_MAX);
    for (uint64_t seed = 1; seed <= rounds(100); seed++) {
        struct arena *a = arena_new(0);
        state = seed * UINT64_C(0xda942042e4dd58b5);
        make_objects();
        make_upload(&x, false);
        make_upload(&y, false);
        make_upload(&z, false);
        upload_from(&left, sum_of(a, (const struct upload *const[]){&x, &y}, 2));
        upload_from(&right, sum_of(a, (const struct upload *const[]){&y, &z}, 2));
        want.size = got.size = 0;
        serialize_report(&want, make_report(a, sum_of(a, (const struct upload *const[]){&left, &z}, 2), NULL, false));
        serialize_report(&got, make_report(a, sum_of(a, (const struct upload *const[]){&x, &right}, 2), NULL, false));
        cr_assert(want.size == got.size && memcmp(want.data, got.data, want.size) == 0, "seed %llu",
                  (unsigned long long)seed);
        arena_free(a);
    }
    buffer_done(&want);
    buffer_done(&got);
}
