/* Measured times: what stacks say, what is put in, what is cut, and where it stands in the report. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/report_graph.h"
#include "tests/unit/core/fixture.h"

#define RETURN COUNTS_NODE_RETURN
#define PC COUNTS_NODE_PC
#define MAIN 0x1000
#define WORK 0x1100
#define DEAR 0x1200
#define LEAF 0x1300

static struct fixture program, library;
static struct upload upload;
static struct fixture_stacks stacks;
static const char *const ids[] = {"0011223344556677", "8899aabbccddeeff", "deadbeef"};
static struct report_request request;
static const struct object *objects[3];
static uint64_t returns[8];

static void setup(void)
{
    static const char *const names[] = {"main", "work", "dear", "leaf"};
    fixture_init(&program, ids[0]);
    for (uint32_t i = 0; i < 4; i++) {
        fixture_function(&program, names[i], MAIN + i * 0x100, 0x100);
    }
    fixture_range(&program, OBJECT_RANGE_TEXT, MAIN, 0x1800);
    fixture_init(&library, ids[1]);
    fixture_function(&library, "callback", 0x100, 0x80);
    fixture_range(&library, OBJECT_RANGE_TEXT, 0x100, 0x400);
    upload_init(&upload);
    memset(&stacks, 0, sizeof stacks);
    objects[0] = &program.object;
    objects[1] = &library.object;
    request = (struct report_request){.objects = objects};
    stacks_tree(&stacks, 100, "seconds");
}

static struct report *report(struct arena *a, bool shares)
{
    struct profile *p = upload_profile(&upload, a, ids, 3);
    stacks_attach(&stacks, p, shares);
    request.profile = p;
    struct report *r = NULL;
    struct profd_error e;
    cr_assert_eq(report_build(a, &request, &r, &e), PROFD_OK, "%s", e.sentence);
    return r;
}

static void expect(const struct report *r, const char *name, uint64_t samples, double self, double total)
{
    const struct report_function *f = report_named(r, name);
    cr_assert_not_null(f, "%s", name);
    cr_assert_not_null(f->measured);
    cr_expect_eq(f->measured->samples, samples, "%s: %llu samples", name, (unsigned long long)f->measured->samples);
    cr_expect_float_eq(f->measured->self, self, 1e-12, "%s: self %f", name, f->measured->self);
    cr_expect_float_eq(f->measured->total, total, 1e-12, "%s: total %f", name, f->measured->total);
    cr_expect_leq(f->measured->low, total + 1e-12);
    cr_expect_geq(f->measured->high, total - 1e-12);
    cr_expect_neq(f->index, 0);
}

static const struct report_measured *arc(const struct report *r, const char *from, const char *to)
{
    const struct report_function *f = report_named(r, from), *t = report_named(r, to);
    cr_assert(f != NULL && t != NULL, "%s, %s", from, to);
    const struct report_arc *down = report_row(r, f->callees, f->callee_count, to);
    const struct report_arc *up = report_row(r, t->callers, t->caller_count, from);
    cr_assert_eq(down == NULL, up == NULL, "an arc stands at both ends");
    cr_assert(down == NULL || down->measured == up->measured);
    return down == NULL ? NULL : down->measured;
}

/* main → dear → work: 30, main → work: 10, main itself: 5; a node without room for its inner frames: 5. */
static void plain(void)
{
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x10, 5);
    stacks_node(&stacks, 1, RETURN, 0, DEAR + 0x10, 0);
    stacks_node(&stacks, 2, PC, 0, WORK + 0x20, 20);
    stacks_node(&stacks, 2, PC, 0, WORK + 0x24, 10);
    stacks_node(&stacks, 1, PC, 0, WORK + 0x30, 10);
    stacks_node(&stacks, 0, PC, 0, MAIN + 0x30, 5);
}

static void histogram(uint64_t main, uint64_t work)
{
    upload_histogram(&upload, 0, MAIN, 0x1400, 0x400, 100);
    upload_bin(&upload, 0x30, main);
    upload_bin(&upload, 0x120, work);
}

Test(report_stacks, functions_and_arcs, .init = setup)
{
    struct arena *a = arena_new(0);
    plain();
    histogram(5, 45);
    struct report *r = report(a, false);
    expect(r, "main", 50, 0.05, 0.5);
    expect(r, "work", 40, 0.4, 0.4);
    expect(r, "dear", 30, 0, 0.3);
    cr_expect_float_eq(arc(r, "dear", "work")->total, 0.3, 1e-12);
    cr_expect_float_eq(arc(r, "main", "work")->total, 0.1, 1e-12);
    cr_expect_float_eq(arc(r, "main", "dear")->total, 0.3, 1e-12);
    cr_expect_float_eq(arc(r, "main", "dear")->self, 0, 1e-12);
    cr_expect_eq(r->stacks->ticks, 50);
    cr_expect_eq(r->stacks->folded, 5);
    cr_expect_float_eq(r->stacks->coverage, 1, 1e-12);
    cr_expect(r->time_measured && r->stacks->inferred == 0 && r->stacks->cut == 0 && r->stacks->incomplete == 0);
    cr_expect_str_eq(r->functions[r->order[0]].name, "main");
    cr_expect_not(report_named(r, "dear")->spontaneous);
    /* Today's fields are what calls say: here nothing. What is shown is measured. */
    cr_expect_eq(report_named(r, "main")->children, 0);
    cr_expect_float_eq(report_named(r->shown, "main")->children, 0.45, 1e-12);
    cr_expect_float_eq(report_named(r->shown, "main")->percent, 100, 1e-9);
    cr_expect_not(report_named(r, "main")->measured->differs, "without calls there is nothing to compare");
    arena_free(a);
}

Test(report_stacks, the_choice, .init = setup)
{
    struct arena *a = arena_new(0);
    plain();
    histogram(5, 48);
    cr_expect_not(report(a, false)->time_measured, "50 of 53 ticks");
    request.time = REPORT_TIME_MEASURED;
    cr_expect(report(a, false)->time_measured);
    upload.bin_ticks[1] = 47;
    request.time = REPORT_TIME_BEST;
    cr_expect(report(a, false)->time_measured, "50 of 52");
    request.time = REPORT_TIME_CALLS;
    struct report *r = report(a, false);
    cr_expect(!r->time_measured && r->shown == r);
    request.dimension = "cycles";
    request.dimension_may_lack = true;
    r = report(a, false);
    cr_expect(r->stacks == NULL && r->function_count == 0);
    arena_free(a);
}

/* A recursion counts once, and the arc that begins it has its time. */
Test(report_stacks, recursion, .init = setup)
{
    struct arena *a = arena_new(0);
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x10, 0);
    stacks_node(&stacks, 1, RETURN, 0, DEAR + 0x10, 0);
    stacks_node(&stacks, 2, RETURN, 0, DEAR + 0x20, 0);
    stacks_node(&stacks, 3, RETURN, 0, WORK + 0x20, 0);
    stacks_node(&stacks, 4, PC, 0, DEAR + 0x20, 7);
    upload_arc(&upload, 0, MAIN + 0x10, 0, DEAR, 4);
    struct report *r = report(a, false);
    expect(r, "dear", 7, 0.07, 0.07);
    expect(r, "work", 7, 0, 0.07);
    cr_expect_float_eq(arc(r, "main", "dear")->total, 0.07, 1e-12);
    cr_expect_eq(arc(r, "work", "dear")->samples, 0);
    cr_expect_eq(r->cycle_count, 0, "where calls are known, they shape cycles");
    setup();
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x10, 0);
    stacks_node(&stacks, 1, RETURN, 0, DEAR + 0x10, 0);
    stacks_node(&stacks, 2, RETURN, 0, WORK + 0x20, 0);
    stacks_node(&stacks, 3, PC, 0, DEAR + 0x20, 7);
    r = report(a, false);
    cr_assert_eq(r->cycle_count, 1, "else stacks do");
    cr_expect_eq(r->cycles[0].member_count, 2);
    cr_expect_eq(r->cycles[0].measured->samples, 7);
    cr_assert_eq(r->cycles[0].caller_count, 1);
    cr_expect_float_eq(r->cycles[0].callers[0].measured->total, 0.07, 1e-12);
    arena_free(a);
}

/* The call in main names dear; the frame below is of work: dear stood between. */
Test(report_stacks, skipped_frames, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_arc(&program, MAIN + 0x10, DEAR, NULL);
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x15, 0);
    stacks_node(&stacks, 1, PC, 0, WORK + 0x20, 20);
    stacks_node(&stacks, 1, PC, 0, DEAR + 0x20, 3);
    stacks_node(&stacks, 1, PC, 1, 0x110, 2);
    struct report *r = report(a, false);
    expect(r, "dear", 23, 0.03, 0.23);
    cr_expect_float_eq(arc(r, "main", "dear")->total, 0.23, 1e-12);
    cr_expect_float_eq(arc(r, "dear", "work")->total, 0.2, 1e-12);
    cr_expect_null(arc(r, "main", "work"));
    cr_expect_float_eq(arc(r, "main", "callback")->total, 0.02, 1e-12, "the run-time linker may stand between");
    cr_expect_eq(r->stacks->inferred, 20);
    uint32_t inferred = 0;
    for (uint32_t i = 0; i < r->stacks->frame_count; i++) {
        inferred += r->stacks->frames[i].inferred;
        cr_expect(r->stacks->frames[i].parent == REPORT_FRAME_ROOT || r->stacks->frames[i].parent < i);
    }
    cr_expect_eq(inferred, 1);
    program.symbols[2].type = OBJECT_TYPE_IFUNC;
    r = report(a, false);
    cr_expect_eq(r->stacks->inferred, 0, "which function an indirect one becomes is not known");
    arena_free(a);
}

/* No call stands before WORK + 0x20: the frames inside it are known, those outside are not. */
Test(report_stacks, cut, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_arc(&program, MAIN + 0x10, WORK, NULL);
    program.object.knows_returns = true;
    program.object.returns = returns;
    program.object.return_count = 1;
    program.object.signal_returns = returns + 1;
    program.object.signal_return_count = 1;
    returns[0] = DEAR + 0x10;
    returns[1] = LEAF;
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x15, 0);
    stacks_node(&stacks, 1, RETURN, 0, WORK + 0x20, 4);
    stacks_node(&stacks, 2, RETURN, 0, DEAR + 0x10, 0);
    stacks_node(&stacks, 3, PC, 0, LEAF + 0x20, 9);
    stacks_node(&stacks, 1, PC, 0, WORK + 0x20, 20);
    stacks_node(&stacks, 0, RETURN, 0, LEAF, 0);
    stacks_node(&stacks, 1, PC, 1, 0x110, 2);
    stacks_node(&stacks, 0, RETURN, COUNTS_NOWHERE, COUNTS_FRAME_OUTSIDE, 0);
    stacks_node(&stacks, 1, PC, 0, DEAR + 0x20, 1);
    stacks_node(&stacks, 0, RETURN, COUNTS_NOWHERE, COUNTS_FRAME_INCOMPLETE, 0);
    stacks_node(&stacks, 1, PC, 0, MAIN + 0x20, 3);
    struct report *r = report(a, false);
    expect(r, "main", 23, 0.03, 0.23);
    expect(r, "work", 20, 0.2, 0.2);
    expect(r, "[incomplete]", 18, 0, 0.18);
    expect(r, "[outside]", 1, 0, 0.01);
    expect(r, "dear", 10, 0.01, 0.1);
    expect(r, "leaf", 11, 0.09, 0.11);
    cr_expect_float_eq(arc(r, "[incomplete]", "dear")->total, 0.09, 1e-12);
    cr_expect_float_eq(arc(r, "leaf", "callback")->total, 0.02, 1e-12, "a signal handler");
    cr_expect_eq(r->stacks->cut, 13);
    cr_expect_eq(r->stacks->folded, 4);
    cr_expect_eq(r->stacks->incomplete, 18);
    stacks.address[1] = WORK; /* the function is known, and no address in it */
    r = report(a, false);
    expect(r, "work", 33, 0.2, 0.33);
    cr_expect_eq(r->stacks->cut, 0);
    stacks.address[1] = WORK + 0x20;
    program.object.knows_returns = false;
    r = report(a, false);
    cr_expect_eq(r->stacks->cut, 0, "an object that does not know its calls");
    expect(r, "main", 36, 0.03, 0.36);
    arena_free(a);
}

/* A tool that follows unwind information may give the last byte of the call in place of the return address. */
Test(report_stacks, last_byte_of_call, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_arc(&program, MAIN + 0x10, WORK, NULL);
    program.object.knows_returns = true;
    program.object.returns = returns;
    program.object.return_count = 1;
    returns[0] = WORK + 0x20;
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x14, 0);
    stacks_node(&stacks, 1, RETURN, 0, WORK + 0x1f, 0);
    stacks_node(&stacks, 2, PC, 0, LEAF + 0x20, 9);
    struct report *r = report(a, false);
    cr_expect_eq(r->stacks->cut, 0);
    cr_expect_eq(r->stacks->incomplete, 0);
    expect(r, "main", 9, 0, 0.09);
    expect(r, "work", 9, 0, 0.09);
    stacks.address[1] = WORK + 0x1e;
    r = report(a, false);
    cr_expect_eq(r->stacks->cut, 9, "no other byte of a call");
    arena_free(a);
}

/* A handler on top of work, and another one on top of that: frame pointers have main, which called work, and the code
 * that handlers return to. main called no handler, and that code was not called by itself. */
Test(report_stacks, signals, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_arc(&program, MAIN + 0x10, WORK, NULL);
    program.object.knows_returns = true;
    program.object.signal_returns = returns;
    program.object.signal_return_count = 1;
    returns[0] = LEAF;
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x15, 0);
    stacks_node(&stacks, 1, RETURN, 0, LEAF, 0);
    stacks_node(&stacks, 2, RETURN, 0, LEAF, 0);
    stacks_node(&stacks, 3, PC, 0, DEAR + 0x20, 5);
    stacks_node(&stacks, 2, PC, 1, 0x110, 2);
    stacks_node(&stacks, 1, PC, 0, WORK + 0x20, 20);
    struct report *r = report(a, false);
    expect(r, "main", 20, 0, 0.2);
    expect(r, "leaf", 7, 0, 0.07);
    expect(r, "[incomplete]", 7, 0, 0.07);
    cr_expect_null(arc(r, "main", "leaf"), "nobody called it");
    cr_expect_null(arc(r, "leaf", "leaf"));
    cr_expect_float_eq(arc(r, "[incomplete]", "leaf")->total, 0.07, 1e-12);
    cr_expect_float_eq(arc(r, "leaf", "dear")->total, 0.05, 1e-12);
    cr_expect_float_eq(arc(r, "leaf", "callback")->total, 0.02, 1e-12);
    cr_expect_float_eq(arc(r, "main", "work")->total, 0.2, 1e-12);
    cr_expect_eq(r->stacks->cut, 7);
    cr_expect_eq(r->stacks->incomplete, 7);
    cr_expect_eq(r->stacks->inferred, 0);
    arena_free(a);
}

/* A frame of a process above one of the kernel is where the thread was: no call stands before it. */
Test(report_stacks, kernel, .init = setup)
{
    struct arena *a = arena_new(0);
    static const char *const names[] = {"/bin/program", "[kernel]", NULL};
    program.object.knows_returns = true;
    request.names = names;
    stacks_node(&stacks, 0, RETURN, 0, WORK, 0);
    stacks_node(&stacks, 1, PC, 1, 0x110, 9);
    struct report *r = report(a, false);
    expect(r, "work", 9, 0, 0.09);
    cr_expect_float_eq(arc(r, "work", "callback")->total, 0.09, 1e-12);
    stacks.address[0] = WORK + 0x20;
    r = report(a, false);
    expect(r, "work", 9, 0, 0.09);
    cr_expect_eq(r->stacks->cut, 0);
    arena_free(a);
}

/* 100 calls of work by main take as long as one by dear: by calls dear has a hundredth. */
Test(report_stacks, differs_from_calls, .init = setup)
{
    struct arena *a = arena_new(0);
    histogram(1, 400);
    upload_arc(&upload, 0, MAIN + 0x10, 0, WORK, 100);
    upload_arc(&upload, 0, DEAR + 0x10, 0, WORK, 1);
    upload_arc(&upload, 0, MAIN + 0x20, 0, DEAR, 1);
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x10, 0);
    stacks_node(&stacks, 1, PC, 0, WORK + 0x20, 200);
    stacks_node(&stacks, 0, RETURN, 0, MAIN + 0x20, 0);
    stacks_node(&stacks, 1, RETURN, 0, DEAR + 0x10, 0);
    stacks_node(&stacks, 2, PC, 0, WORK + 0x20, 200);
    stacks_node(&stacks, 0, PC, 0, MAIN + 0x20, 1);
    struct report *r = report(a, false);
    cr_expect(arc(r, "main", "work")->differs && arc(r, "dear", "work")->differs);
    cr_expect(report_named(r, "dear")->measured->differs);
    cr_expect_not(report_named(r, "main")->measured->differs);
    cr_expect_not(report_named(r, "work")->measured->differs);
    cr_expect_float_eq(report_named(r, "dear")->children, 4.0 / 101, 1e-9, "today's field");
    cr_expect_str_eq(r->functions[report_named(r, "work")->callers[0].other].name, "dear", "least first: a tie");
    arena_free(a);
}

Test(report_stacks, groups, .init = setup)
{
    struct arena *a = arena_new(0);
    plain();
    for (uint32_t i = 0; i < stacks.count; i++) {
        stacks.shares[i * 16] = stacks.ticks[i] / 2;
        stacks.shares[i * 16 + 5] = stacks.ticks[i] - stacks.ticks[i] / 2;
    }
    struct report *r = report(a, true);
    cr_expect(r->stacks->by_groups && r->stacks->groups == 2);
    cr_expect(report_named(r, "work")->measured->by_groups);
    cr_expect_eq(report_named(r, "leaf") == NULL, true);
    stacks.shares[5] = 0; /* the group of some ticks is not known */
    r = report(a, true);
    cr_expect(!r->stacks->by_groups && !report_named(r, "work")->measured->by_groups);
    arena_free(a);
}

Test(report_stacks, rates_and_dimensions, .init = setup)
{
    struct arena *a = arena_new(0);
    plain();
    stacks_tree(&stacks, 50, "seconds");
    plain();
    stacks_tree(&stacks, 7, "wall");
    plain();
    struct report *r = report(a, false);
    expect(r, "main", 100, 0.15, 1.5);
    cr_expect_float_eq(arc(r, "dear", "work")->total, 0.9, 1e-12);
    arena_free(a);
}

Test(report_stacks, overdispersion_and_wilson)
{
    double low, high;
    cr_expect_float_eq(report_measure_overdispersion(19, 1), 1.12, 1e-12);
    cr_expect_float_eq(report_measure_overdispersion(250, 1), 1.35, 1e-12);
    cr_expect_float_eq(report_measure_overdispersion(625, 1), (1.35 + 6.3) / 2, 1e-12);
    cr_expect_float_eq(report_measure_overdispersion(2000, 1), 12.6, 1e-12);
    cr_expect_float_eq(report_measure_overdispersion(250, 0.25), 4, 1e-12, "a sample stood for four ticks");
    report_measure_wilson(0, 100, &low, &high);
    cr_expect(low == 0 && fabs(high - 0.0370) < 5e-5);
    report_measure_wilson(100, 100, &low, &high);
    cr_expect(high == 1 && fabs(low - 0.9630) < 5e-5);
    report_measure_wilson(20, 100, &low, &high);
    cr_expect(fabs(low - 0.1334) < 5e-5 && fabs(high - 0.2888) < 5e-5);
}
