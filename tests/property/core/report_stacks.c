/* Measured times on random trees against an implementation that looks at one stack after the other; and how often 95 %
 * intervals hold the truth. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/rounds.h"
#include "tests/unit/core/fixture.h"

#define BUILDS 3 /* the last one has no object */
#define FUNCTIONS 10
#define NODES 60
#define NAMES 64
#define DEEP 400

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static struct fixture objects[BUILDS];
static const struct object *pointers[BUILDS];
static const char *const ids[BUILDS] = {"aa01", "bb02", "cc03"};
static uint64_t returns[BUILDS][64], signals[BUILDS][1];
static struct fixture_stacks stacks;
static struct upload upload;

/* Functions of 32 bytes, gaps between some; calls at random places, some through registers. */
static void make_objects(void)
{
    for (uint32_t b = 0; b + 1 < BUILDS; b++) {
        struct fixture *f = &objects[b];
        fixture_init(f, ids[b]);
        for (uint32_t i = 0; i < FUNCTIONS; i++) {
            char name[16];
            snprintf(name, sizeof name, "f%u_%u", b, i);
            fixture_symbol(f, name, 0x1000 + i * 40, 32, OBJECT_BIND_GLOBAL,
                           draw(8) == 0 ? OBJECT_TYPE_IFUNC : OBJECT_TYPE_FUNCTION);
        }
        fixture_range(f, OBJECT_RANGE_TEXT, 0x1000, 0x1000 + FUNCTIONS * 40);
        f->object.knows_returns = draw(3) != 0;
        f->object.returns = returns[b];
        f->object.signal_returns = signals[b];
        signals[b][0] = 0x1000 + draw(FUNCTIONS) * 40;
        f->object.signal_return_count = 1;
        for (uint64_t at = 0x1000 + draw(8); at < 0x1000 + FUNCTIONS * 40; at += 6 + draw(12)) {
            if (draw(2) == 0) {
                char import[16];
                snprintf(import, sizeof import, "f%u_%u", draw(2), draw(FUNCTIONS));
                fixture_arc(f, at, 0x1000 + draw(FUNCTIONS) * 40, draw(4) == 0 ? import : NULL);
                f->arcs[f->object.arc_count - 1].kind = draw(6) == 0 ? OBJECT_ARC_TAIL : OBJECT_ARC_CALL;
            }
            if (draw(3) == 0) {
                returns[b][f->object.return_count++] = at + 6;
            }
        }
        pointers[b] = &f->object;
    }
}

static void make_tree(uint32_t rate)
{
    uint32_t depth = 0, n = 1 + draw(NODES);
    stacks_tree(&stacks, rate, "seconds");
    for (uint32_t i = 0; i < n; i++) {
        bool pc = draw(3) == 0, nowhere = draw(12) == 0;
        uint32_t b = nowhere ? COUNTS_NOWHERE : draw(8) == 0 ? 2 : draw(2);
        uint64_t address = 0x1000 + draw(FUNCTIONS * 40);
        if (b < 2 && !pc && draw(3) != 0 && objects[b].object.arc_count > 0) {
            address = objects[b].arcs[draw(objects[b].object.arc_count)].from + 5 + draw(2);
        }
        if (nowhere) {
            address = depth == 0 && !pc && draw(2) == 0 ? COUNTS_FRAME_INCOMPLETE : COUNTS_FRAME_OUTSIDE;
        }
        uint32_t at = stacks_node(&stacks, depth, pc ? COUNTS_NODE_PC : COUNTS_NODE_RETURN, b, address,
                                  pc             ? 1 + draw(100)
                                  : draw(4) == 0 ? draw(50)
                                                 : 0);
        stacks.shares[at * 16 + draw(16)] = stacks.ticks[at];
        depth = draw(pc ? depth + 1 : depth + 2);
        depth = !pc && draw(2) == 0 ? stacks.depth[at] + 1u : depth;
    }
}

/* The naive implementation. */

static const char *function_at(uint32_t b, uint64_t address)
{
    const struct object *o = pointers[b];
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        if (address >= o->symbols[i].address && address < o->symbols[i].address + 32) {
            return object_name(o, o->symbols[i].name);
        }
    }
    return b == 0 ? "[gap]" : "[gap] of the other";
}

static const struct object_symbol *symbol_named(const char *name, uint32_t *build)
{
    for (*build = 0; *build + 1 < BUILDS; ++*build) {
        const struct object *o = pointers[*build];
        for (uint32_t i = 0; i < o->symbol_count; i++) {
            if (strcmp(object_name(o, o->symbols[i].name), name) == 0) {
                return &o->symbols[i];
            }
        }
    }
    return NULL;
}

/* The call that ends at the address: 5 bytes, or 6 if the address is in the list. */
static const struct object_arc *call_before(const struct object *o, uint64_t address, bool *possible)
{
    const struct object_arc *wide = NULL;
    *possible = false;
    for (uint32_t i = 0; i < o->arc_count; i++) {
        if (o->arcs[i].kind == OBJECT_ARC_CALL && o->arcs[i].from + 5 == address) {
            return &o->arcs[i];
        }
        wide = o->arcs[i].kind == OBJECT_ARC_CALL && o->arcs[i].from + 6 == address ? &o->arcs[i] : wide;
    }
    for (uint32_t i = 0; i < o->return_count; i++) {
        *possible |= o->returns[i] == address;
    }
    return *possible ? wide : NULL;
}

struct naive {
    const char *frames[DEEP];
    uint32_t count;
    bool cut, inferred;
};

static void naive_add(struct naive *n, uint32_t i, const struct object_arc **call, uint32_t *call_build)
{
    uint32_t b = stacks.build[i];
    uint64_t address = stacks.address[i];
    const struct object_arc *before = *call;
    *call = NULL;
    if (b >= 2) {
        n->frames[n->count++] = b == 2                               ? "[unknown cc03]"
                                : address == COUNTS_FRAME_INCOMPLETE ? "[incomplete]"
                                                                     : "[outside]";
        return;
    }
    if (stacks.kind[i] == COUNTS_NODE_RETURN) {
        const struct object *o = pointers[b];
        bool possible;
        *call = call_before(o, address, &possible);
        bool signal = *call == NULL && !possible && address == o->signal_returns[0];
        bool inside = false;
        if (*call == NULL && !possible && !signal && o->knows_returns) { /* the last byte of the call */
            *call = call_before(o, address + 1, &inside);
            possible = inside;
            address += *call != NULL || inside;
        }
        bool entry = *call == NULL && !signal && !(possible && o->knows_returns) && address >= 0x1000 &&
                     address < 0x1000 + FUNCTIONS * 40 && (address - 0x1000) % 40 <= 1;
        if (!entry && *call == NULL && !possible && !signal && o->knows_returns) {
            *n = (struct naive){.frames = {"[incomplete]"}, .count = 1, .cut = true};
            return;
        }
        if (signal && (n->count == 0 || strcmp(n->frames[n->count - 1], "[incomplete]") != 0)) {
            *n = (struct naive){.frames = {"[incomplete]"}, .count = 1, .cut = n->count > 0};
            before = NULL;
        }
        address -= !signal && !entry;
    }
    const char *name = function_at(b, address);
    if (before != NULL && name[0] != '[') {
        uint32_t to_build = *call_build;
        const char *target =
            before->import != 0 ? object_name(pointers[to_build], before->import) : function_at(to_build, before->to);
        const struct object_symbol *s = symbol_named(target, &to_build);
        if (s->type != OBJECT_TYPE_IFUNC && to_build == b && strcmp(target, name) != 0) {
            n->frames[n->count++] = target;
            n->inferred = true;
        }
    }
    *call_build = b;
    n->frames[n->count++] = name;
}

/* The stack that ends at node i of its tree. */
static struct naive naive_stack(uint32_t first, uint32_t i)
{
    struct naive n = {.count = 0};
    const struct object_arc *call = NULL;
    uint32_t build = 0;
    for (uint32_t depth = 0; depth <= stacks.depth[i]; depth++) {
        uint32_t at = i;
        while (stacks.depth[at] != depth) {
            cr_assert_gt(at, first);
            at--;
        }
        naive_add(&n, at, &call, &build);
    }
    return n;
}

static uint32_t position_of(const struct report *r, const char *name)
{
    bool other = strcmp(name, "[gap] of the other") == 0;
    for (uint32_t i = 0; i < r->function_count; i++) {
        const struct report_function *f = &r->functions[i];
        if (f->kind == REPORT_GAP ? f->build == other && strncmp(name, "[gap]", 5) == 0 : strcmp(f->name, name) == 0) {
            return i;
        }
    }
    cr_assert_fail("%s is not in the report", name);
    return 0;
}

static uint64_t self[NAMES], total[NAMES], along[NAMES][NAMES], whole[NAMES];

static bool together(const struct report *r, uint32_t x, uint32_t y)
{
    return x == y || (r->functions[x].cycle != 0 && r->functions[x].cycle == r->functions[y].cycle);
}

static void naive_count(const struct report *r, const struct naive *n, uint64_t ticks, bool pc)
{
    uint32_t at[DEEP];
    for (uint32_t k = 0; k < n->count; k++) {
        at[k] = position_of(r, n->frames[k]);
    }
    for (uint32_t k = 0; k < n->count; k++) {
        bool first = true, first_of_component = true;
        for (uint32_t j = 0; j < k; j++) {
            first &= at[j] != at[k];
            first_of_component &= !together(r, at[j], at[k]);
        }
        total[at[k]] += first ? ticks : 0;
        if (first_of_component && r->functions[at[k]].cycle != 0) {
            whole[r->functions[at[k]].cycle] += ticks;
        }
        if (first_of_component && k > 0) {
            along[at[k - 1]][at[k]] += ticks;
        }
    }
    self[at[n->count - 1]] += pc ? ticks : 0;
}

static void check_rows(const struct report *r, uint32_t v)
{
    const struct report_function *f = &r->functions[v];
    uint64_t rows = 0, naive = 0, inside = 0;
    for (uint32_t i = 0; i < f->caller_count; i++) {
        const struct report_arc *arc = &f->callers[i];
        cr_assert_eq(arc->measured == NULL, arc->inside);
        if (!arc->inside) {
            cr_assert_eq(arc->measured->samples, along[arc->other][v], "%s → %s", r->functions[arc->other].name,
                         f->name);
            rows += arc->measured->samples;
        }
    }
    for (uint32_t u = 0; u < r->function_count; u++) {
        naive += together(r, u, v) ? 0 : along[u][v];
        inside += together(r, u, v) ? along[u][v] : 0;
    }
    cr_assert_eq(rows, naive, "%s: a row is missing", f->name);
    cr_assert_eq(inside, 0);
}

static void check(const struct report *r)
{
    uint64_t cut = 0, inferred = 0, ticks = 0;
    memset(self, 0, sizeof self);
    memset(total, 0, sizeof total);
    memset(along, 0, sizeof along);
    memset(whole, 0, sizeof whole);
    for (uint32_t t = 0; t < stacks.tree_count; t++) {
        for (uint32_t i = stacks.trees[t].first; i < stacks.trees[t].first + stacks.trees[t].used; i++) {
            if (stacks.ticks[i] > 0) {
                struct naive n = naive_stack(stacks.trees[t].first, i);
                naive_count(r, &n, stacks.ticks[i], stacks.kind[i] == COUNTS_NODE_PC);
                ticks += stacks.ticks[i];
                cut += n.cut ? stacks.ticks[i] : 0;
                inferred += n.inferred ? stacks.ticks[i] : 0;
            }
        }
    }
    cr_assert_eq(r->stacks->ticks, ticks);
    cr_assert_eq(r->stacks->cut, cut);
    cr_assert_eq(r->stacks->inferred, inferred);
    double seconds = 0;
    for (uint32_t i = 0; i < r->stacks->frame_count; i++) {
        seconds += r->stacks->frames[i].self;
    }
    for (uint32_t v = 0; v < r->function_count; v++) {
        const struct report_measured *m = r->functions[v].measured;
        cr_assert_eq(m->samples, total[v], "%s: %llu and not %llu", r->functions[v].name,
                     (unsigned long long)m->samples, (unsigned long long)total[v]);
        cr_assert(m->low <= m->total * (1 + 1e-9) && m->total <= m->high * (1 + 1e-9));
        cr_assert_leq(m->high, seconds * (1 + 1e-9));
        check_rows(r, v);
    }
    for (uint32_t c = 0; c < r->cycle_count; c++) {
        cr_assert_eq(r->cycles[c].measured->samples, whole[r->cycles[c].number]);
    }
}

Test(report_stacks_laws, one_stack_after_the_other)
{
    struct arena *a = arena_new(0);
    uint32_t cycles = 0, cuts = 0, inferred = 0;
    for (uint64_t seed = 1; seed <= rounds(300); seed++) {
        state = seed * UINT64_C(0x9e3779b97f4a7c15);
        make_objects();
        memset(&stacks, 0, sizeof stacks);
        upload_init(&upload);
        make_tree(100);
        if (draw(2) == 0) {
            make_tree(19);
        }
        for (uint32_t i = draw(3) * 4; i > 0; i--) {
            upload_arc(&upload, draw(2), 0x1000 + draw(FUNCTIONS) * 40 + 7, draw(2), 0x1000 + draw(FUNCTIONS) * 40,
                       draw(9));
        }
        struct profile *p = upload_profile(&upload, a, ids, BUILDS);
        stacks_attach(&stacks, p, draw(2) == 0);
        struct report_request request = {.profile = p, .objects = pointers, .time = (enum report_time)draw(3)};
        struct report *r;
        struct profd_error e;
        cr_assert_eq(report_build(a, &request, &r, &e), PROFD_OK, "%s", e.sentence);
        if (r->stacks != NULL && r->stacks->ticks > 0) {
            check(r);
            cycles += r->cycle_count;
            cuts += r->stacks->cut > 0;
            inferred += r->stacks->inferred > 0;
        }
        arena_reset(a);
    }
    cr_expect(cycles > rounds(300) / 15 && cuts > 20 && inferred > 20, "%u, %u, %u", cycles, cuts, inferred);
    arena_free(a);
}

/* Intervals. A callee is called by four others with known shares of the time. */

static const uint32_t shares[] = {4, 11, 25, 60}; /* of 100 */

/* Ticks of one run in 64 processes, in bundles: of `small`, but `odd` of 10,000 are one larger. */
static void simulate(uint32_t ticks, uint32_t small, uint32_t odd)
{
    uint32_t at[4];
    memset(&stacks, 0, sizeof stacks);
    stacks_tree(&stacks, small > 1 ? 1000 : odd > 1000 ? 250 : 99, "seconds");
    for (uint32_t k = 0; k < 4; k++) {
        stacks_node(&stacks, 0, COUNTS_NODE_RETURN, 0, 0x1000 + k * 40 + 9, 0);
        at[k] = stacks_node(&stacks, 1, COUNTS_NODE_PC, 0, 0x1000 + 4 * 40 + 9, 0);
    }
    for (uint32_t n = 0; n < ticks;) {
        uint32_t bundle = small + (draw(10000) < odd), share = draw(100), k = 0, process = draw(64);
        while (share >= shares[k]) {
            share -= shares[k++];
        }
        stacks.ticks[at[k]] += bundle;
        stacks.shares[at[k] * 16 + process * 7 % 16] += bundle;
        n += bundle;
    }
}

static double coverage(uint32_t ticks, uint32_t small, uint32_t odd, bool groups)
{
    struct arena *a = arena_new(0);
    const uint32_t runs = rounds(1000);
    uint32_t held = 0;
    state = 12345;
    make_objects();
    objects[0].object.knows_returns = false;
    objects[0].object.arc_count = 0;
    upload_init(&upload);
    for (uint32_t run = 0; run < runs; run++) {
        simulate(ticks, small, odd);
        struct profile *p = upload_profile(&upload, a, ids, BUILDS);
        stacks_attach(&stacks, p, groups);
        struct report_request request = {.profile = p, .objects = pointers};
        struct report *r;
        cr_assert_eq(report_build(a, &request, &r, NULL), PROFD_OK);
        const struct report_function *callee = report_named(r, "f0_4");
        cr_assert_eq(callee->caller_count, 4);
        cr_assert_eq(r->stacks->by_groups, groups);
        for (uint32_t i = 0; i < 4; i++) {
            const struct report_measured *m = callee->callers[i].measured;
            uint32_t k = (uint32_t)(r->functions[callee->callers[i].other].address - 0x1000) / 40;
            double truth = shares[k] / 100.0 * callee->measured->total;
            held += m->low <= truth && truth <= m->high;
        }
        arena_reset(a);
    }
    arena_free(a);
    return held / (4.0 * runs);
}

Test(report_stacks_laws, intervals_hold_the_truth)
{
    static const struct {
        uint32_t ticks, small, odd;
        bool groups;
    } cases[] = {{2000, 1, 638, false}, {2000, 1, 2121, false}, {6000, 6, 2687, false},
                 {2000, 1, 638, true},  {6000, 6, 2687, true},  {400, 1, 638, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double share = coverage(cases[i].ticks, cases[i].small, cases[i].odd, cases[i].groups);
        cr_log_info("case %zu: %.1f %% of %u intervals hold the truth", i, 100 * share, 4 * rounds(1000));
        cr_expect(share >= 0.93 && share <= 0.97, "case %zu: %.1f %%", i, 100 * share);
    }
}
