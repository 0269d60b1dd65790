/* What the report says beside the cycle example: static arcs, all of time, several builds, what nobody owns. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/core/fixture.h"

#define ID "0011223344556677"
#define LIB "8899aabbccddeeff"

static struct fixture program, library;
static struct upload upload, other;
static const char *const ids[] = {ID, LIB, "deadbeef"};

static void setup(void)
{
    static const char *const names[] = {"main", "f", "g", "h"};
    fixture_init(&program, ID);
    for (uint32_t i = 0; i < 4; i++) {
        fixture_function(&program, names[i], 0x1000 + i * 0x100, 0x100);
    }
    fixture_range(&program, OBJECT_RANGE_TEXT, 0x1000, 0x1800);
    fixture_range(&program, OBJECT_RANGE_PLT, 0x800, 0x900);
    fixture_plt(&program, 0x810, 16, "lib_one@@V2");
    fixture_plt(&program, 0x820, 16, "nowhere");
    fixture_init(&library, LIB);
    fixture_function(&library, "lib_one", 0x100, 0x80);
    fixture_function(&library, "lib_two", 0x180, 0x80);
    fixture_range(&library, OBJECT_RANGE_TEXT, 0x100, 0x400);
    upload_init(&upload);
    upload_init(&other);
}

static struct report *report(struct arena *a, uint32_t builds, struct report_request *request)
{
    static const struct object *objects[3];
    objects[0] = &program.object;
    objects[1] = &library.object;
    objects[2] = NULL;
    if (request->profile == NULL) {
        request->profile = upload_profile(&upload, a, ids, builds);
    }
    if (request->objects == NULL) {
        request->objects = objects;
    }
    struct report *r = NULL;
    struct profd_error e;
    cr_assert_eq(report_build(a, request, &r, &e), PROFD_OK, "%s", e.sentence);
    double self = 0;
    for (uint32_t i = 0; i < r->function_count; i++) {
        self += r->functions[i].self;
        cr_assert_leq(r->functions[i].build, r->build_count);
    }
    cr_assert_float_eq(self, r->total, 1e-9 * (1 + r->total), "Σ self %f is not the total %f", self, r->total);
    return r;
}

static void chain(void) /* main → f → g, with time in each */
{
    upload_arc(&upload, 0, 0x1010, 0, 0x1104, 4);
    upload_arc(&upload, 0, 0x1110, 0, 0x1204, 8);
    upload_histogram(&upload, 0, 0x1000, 0x1400, 0x400, 1000);
    upload_bin(&upload, 0x10, 100);
    upload_bin(&upload, 0x110, 200);
    upload_bin(&upload, 0x210, 400);
}

/* g → f closes a cycle in the 1982 mode; h is never called. */
static void chain_static(void)
{
    chain();
    fixture_arc(&program, 0x1010, 0x1100, NULL);
    fixture_arc(&program, 0x1220, 0x1100, NULL);
    fixture_arc(&program, 0x1230, 0x1300, NULL);
}

Test(report, without_static_arcs_there_are_no_rows_of_count_zero, .init = setup)
{
    struct arena *a = arena_new(0);
    chain_static();
    struct report *r = report(a, 1, &(struct report_request){0});
    cr_assert(r->cycle_count == 0 && r->function_count == 3 && r->order_count == 3, "h is not there");
    for (uint32_t i = 0; i < r->function_count; i++) {
        cr_assert_eq(r->functions[i].static_callee_count + r->functions[i].static_caller_count, 0);
    }
    arena_free(a);
}

Test(report, static_arcs_are_rows_of_count_zero, .init = setup)
{
    struct arena *a = arena_new(0);
    chain_static();
    struct report *r = report(a, 1, &(struct report_request){.static_arcs = true});
    const struct report_function *f = report_named(r, "f"), *g = report_named(r, "g"), *h = report_named(r, "h");
    cr_assert(f->cycle == 1 && r->function_count == 4 && r->order_count == 4, "three functions and the cycle");
    cr_assert(g->static_callee_count == 2 && f->static_caller_count == 1 && g->callee_count == 0);
    cr_assert_eq(report_named(r, "main")->static_callee_count, 0, "an arc with calls is no static row");
    const struct report_arc *row = report_row(r, g->static_callees, 2, "h");
    cr_assert(row->calls == 0 && row->of_calls == 0 && row->self == 0 && !row->inside && !row->by_name);
    cr_assert(h->index == 0 && h->static_caller_count == 1 && h->caller_count == 0 && h->self == 0);
    arena_free(a);
}

Test(report, calls_of_run_time_support_are_no_static_arcs, .init = setup)
{
    struct arena *a = arena_new(0);
    chain();
    fixture_symbol(&program, "frame_dummy", 0x1480, 16, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    fixture_symbol(&program, "mcount", 0x1490, 16, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
    fixture_arc(&program, 0x1018, 0x1490, NULL);           /* main → mcount, statically linked */
    fixture_arc(&program, 0x1210, 0, "__libc_start_main"); /* nothing exports it */
    fixture_arc(&program, 0x1484, 0x1300, NULL);           /* frame_dummy → h */
    struct report *r = report(a, 1, &(struct report_request){.static_arcs = true});
    cr_assert(r->function_count == 3, "%u functions", r->function_count);
    cr_assert_eq(report_named(r, "main")->static_callee_count, 0);
    arena_free(a);
}

Test(report, functions_that_count_and_were_not_called, .init = setup)
{
    struct arena *a = arena_new(0);
    chain();
    fixture_arc(&program, 0x1004, 0, "mcount@GLIBC_2.2.5"); /* main */
    fixture_arc(&program, 0x1104, 0, "__fentry__");         /* f */
    fixture_arc(&program, 0x1304, 0, "mcount");             /* h: nothing calls it, no tick */
    struct report *r = report(a, 1, &(struct report_request){0});
    cr_assert(r->counted_functions == 3 && r->not_called_count == 1, "%u, %u", r->counted_functions,
              r->not_called_count);
    cr_assert_str_eq(r->not_called[0].name, "h");
    cr_assert_eq(r->not_called[0].address, 0x1300);
    cr_assert(report_named(r, "h") == NULL, "it is in no row");
    upload_bin(&upload, 0x310, 1); /* a tick in h */
    r = report(a, 1, &(struct report_request){0});
    cr_assert(r->counted_functions == 3 && r->not_called_count == 0);
    arena_free(a);
}

Test(report, static_arcs_close_cycles_in_the_1982_mode, .init = setup)
{
    struct arena *a = arena_new(0);
    chain();
    struct report *before = report(a, 1, &(struct report_request){0});
    fixture_arc(&program, 0x1220, 0x1100, NULL);
    struct report *r = report(a, 1, &(struct report_request){.static_arcs = true});
    const struct report_function *f = report_named(r, "f"), *g = report_named(r, "g"), *m = report_named(r, "main");
    cr_assert(r->cycle_count == 1 && f->cycle == 1 && g->cycle == 1 && m->cycle == 0 && r->static_arcs);
    cr_assert_eq(r->cycles[0].calls_outside, 4);
    cr_assert_eq(r->cycles[0].calls_inside, 8);
    cr_assert_float_eq(r->cycles[0].self, 0.6, 1e-12);
    cr_assert(g->static_callees[0].inside, "a static row inside a cycle");
    cr_assert_float_eq(m->children, report_named(before, "main")->children, 1e-12, "it moves no time");
    cr_assert_eq(r->total, before->total);
    arena_free(a);
}

/* Static arcs through functions that never ran may close a cycle in the 1982 mode. */
Test(report, a_cycle_through_what_never_ran, .init = setup)
{
    struct arena *a = arena_new(0);
    upload_arc(&upload, 0, 0x1010, 0, 0x1104, 1);
    fixture_arc(&program, 0x1110, 0x1200, NULL); /* f → g → h → f */
    fixture_arc(&program, 0x1210, 0x1300, NULL);
    fixture_arc(&program, 0x1310, 0x1100, NULL);
    struct report *r = report(a, 1, &(struct report_request){.static_arcs = true});
    cr_assert(r->cycle_count == 1 && r->cycles[0].member_count == 3 && r->cycles[0].calls_outside == 1);
    cr_assert(report_named(r, "h")->index == 0 && report_named(r, "h")->cycle == 1);
    r = report(a, 1, &(struct report_request){0});
    cr_assert(r->cycle_count == 0 && report_named(r, "g") == NULL && report_named(r, "h") == NULL);
    arena_free(a);
}

Test(report, the_cycle_of_another_window_is_in_every_window, .init = setup)
{
    struct arena *a = arena_new(0);
    chain();
    upload_arc(&other, 0, 0x1210, 0, 0x1104, 1); /* g → f, in another window */
    upload_arc(&other, 0, 0x1110, 0, 0x1204, 5);
    upload_arc(&other, 0, 0x1010, 1, 0x104, 5); /* to a build that is only there: left out */
    const struct profile *ever = upload_profile(&other, a, ids, 2);
    struct report *r = report(a, 1, &(struct report_request){.ever = ever});
    cr_assert(r->cycle_count == 1 && r->calls == 12);
    cr_assert(report_named(r, "f")->cycle == 1 && report_named(r, "g")->cycle == 1);
    cr_assert_eq(report_named(r, "f")->caller_count, 1, "without calls in the window there is no row");
    cr_assert_eq(report_named(r, "f")->calls, 4);
    cr_assert_eq(r->cycles[0].calls_inside, 8);
    cr_assert(!r->cycles[0].closed && r->open_cycles == 1, "its own calls do not close it");
    cr_assert_eq(r->build_count, 1);
    r = report(a, 1, &(struct report_request){0});
    cr_assert_eq(r->cycle_count, 0);
    arena_free(a);
}

/* Of a cycle closed at other times only f ran: the cycle is shown with all its members. */
Test(report, members_without_counts, .init = setup)
{
    struct arena *a = arena_new(0);
    upload_arc(&upload, 0, 0x1010, 0, 0x1104, 4);
    upload_arc(&other, 0, 0x1110, 0, 0x1204, 1);
    upload_arc(&other, 0, 0x1210, 0, 0x1104, 1);
    const struct profile *ever = upload_profile(&other, a, ids, 1);
    struct report *r = report(a, 1, &(struct report_request){.ever = ever});
    cr_assert(r->cycle_count == 1 && r->cycles[0].member_count == 2 && r->cycles[0].calls_inside == 0);
    cr_assert(report_named(r, "g")->cycle == 1 && report_named(r, "g")->index == 0 && report_named(r, "f")->index != 0);
    cr_assert_eq(r->order_count, 3, "main, the cycle, f");
    arena_free(a);
}

Test(report, by_name_through_the_plt, .init = setup)
{
    struct arena *a = arena_new(0);
    chain();
    upload_arc(&upload, 0, 0x1020, 0, 0x810, 7); /* an observed call into a PLT slot is passed on */
    upload_arc(&upload, 0, 0x1024, 0, 0x820, 3); /* nobody has that name */
    fixture_arc(&program, 0x1120, 0, "lib_two");
    fixture_arc(&program, 0x1124, 0, "unheard_of");
    upload_histogram(&upload, 0, 0x800, 0x900, 16, 1000);
    upload_bin(&upload, 1, 50);
    struct report *r = report(a, 2, &(struct report_request){.static_arcs = true});
    const struct report_function *m = report_named(r, "main"), *plt = report_named(r, "[plt]"),
                                 *f = report_named(r, "f");
    const struct report_arc *row = report_row(r, m->callees, m->callee_count, "lib_one");
    cr_assert(row != NULL && row->calls == 7 && !row->by_name);
    cr_assert(plt != NULL && plt->kind == REPORT_PLT && plt->calls == 3 && plt->address == 0x800);
    cr_assert_float_eq(plt->self, 0.05, 1e-12, "its own time remains");
    cr_assert_eq(f->static_callee_count, 1);
    cr_assert_str_eq(r->functions[f->static_callees[0].other].name, "lib_two");
    cr_assert(f->static_callees[0].by_name);
    cr_assert_eq(r->functions[f->static_callees[0].other].build, 1);
    arena_free(a);
}

Test(report, the_first_in_load_order_is_meant, .init = setup)
{
    struct arena *a = arena_new(0);
    static struct fixture preload;
    static const char *const three[] = {ID, "01", LIB};
    const struct object *objects[] = {&program.object, &preload.object, &library.object};
    fixture_init(&preload, "01");
    fixture_symbol(&preload, "lib_two", 0x100, 8, OBJECT_BIND_WEAK, OBJECT_TYPE_FUNCTION);
    fixture_range(&preload, OBJECT_RANGE_TEXT, 0x100, 0x200);
    upload_arc(&upload, 0, 0x1010, 0, 0x1104, 1);
    fixture_arc(&program, 0x1120, 0, "lib_two");
    struct report_request request = {
        .profile = upload_profile(&upload, a, three, 3), .objects = objects, .static_arcs = true};
    struct report *r = report(a, 3, &request);
    const struct report_arc *row = report_named(r, "f")->static_callees;
    cr_assert_str_eq(r->builds[r->functions[row->other].build], "01");
    arena_free(a);
}

Test(report, what_nobody_owns_is_kept, .init = setup)
{
    struct arena *a = arena_new(0);
    upload_arc(&upload, 2, 0x10, 0, 0x1004, 2);              /* from a build nobody has sent */
    upload_arc(&upload, COUNTS_NOWHERE, 0x99, 0, 0x1004, 3); /* from outside */
    upload_arc(&upload, 0, 0x1700, 0, 0x1104, 4);            /* from code without a symbol */
    upload_histogram(&upload, 0, 0x1000, 0x1800, 0x800, 100);
    upload_bin(&upload, 0x10, 1);
    upload_bin(&upload, 0x7f0, 2);
    upload_histogram(&upload, 2, 0x0, 0x100, 0x10, 100);
    upload_bin(&upload, 3, 4);
    struct report *r = report(a, 3, &(struct report_request){0});
    const struct report_function *gap = report_named(r, "[gap]"), *unknown = report_named(r, "[unknown deadbeef]"),
                                 *outside = report_named(r, "[outside]"), *m = report_named(r, "main");
    cr_assert(gap != NULL && gap->kind == REPORT_GAP && fabs(gap->self - 0.02) < 1e-12 && gap->callee_count == 1);
    cr_assert(unknown != NULL && unknown->kind == REPORT_UNKNOWN && fabs(unknown->self - 0.04) < 1e-12);
    cr_assert(outside != NULL && outside->build == 3 && outside->callee_count == 1);
    cr_assert_str_eq(r->builds[outside->build], "");
    cr_assert_str_eq(r->build_names[outside->build], "");
    cr_assert(m->calls == 5 && m->caller_count == 2 && !m->spontaneous);
    cr_assert_eq(r->unnamed_builds, 1);
    arena_free(a);
}

/* main → f ⇄ [gap]: the gap is no function. As a callee it has its own time; what it calls begins there. */
Test(report, a_class_of_addresses_is_in_no_cycle, .init = setup)
{
    struct arena *a = arena_new(0);
    chain();
    upload_histogram(&upload, 0, 0x1600, 0x1800, 0x200, 1000);
    upload_bin(&upload, 0x100, 300);
    upload_arc(&upload, 0, 0x1120, 0, 0x1700, 2);            /* f → [gap] */
    upload_arc(&upload, 0, 0x1708, 0, 0x1104, 12);           /* [gap] → f */
    upload_arc(&upload, 0, 0x1710, 0, 0x1720, 3);            /* [gap] → [gap] */
    upload_arc(&upload, 0, 0x1130, COUNTS_NOWHERE, 0x99, 5); /* f → [outside] */
    upload_arc(&upload, COUNTS_NOWHERE, 0x77, 0, 0x1104, 9); /* [outside] → f */
    upload_arc(&upload, 0, 0x1130, 2, 0x10, 5);              /* f → [unknown] → f */
    upload_arc(&upload, 2, 0x20, 0, 0x1104, 7);
    struct report *r = report(a, 3, &(struct report_request){0});
    const struct report_function *gap = report_named(r, "[gap]"), *f = report_named(r, "f"),
                                 *m = report_named(r, "main"), *outside = report_named(r, "[outside]");
    cr_assert_eq(r->cycle_count, 0);
    cr_assert(f->cycle == 0 && f->calls == 32 && f->calls_inside == 0);
    cr_assert_float_eq(f->children, 0.7, 1e-12, "%f: of g and [gap]", f->children);
    cr_assert(gap->calls == 2 && gap->self_calls == 3 && gap->callee_count == 2);
    const struct report_arc *up = report_row(r, gap->callers, gap->caller_count, "f");
    cr_assert(up->of_calls == 2 && fabs(up->self - 0.3) < 1e-12 && up->children == 0);
    const struct report_arc *down = report_row(r, gap->callees, gap->callee_count, "f");
    cr_assert(down->calls == 12 && down->of_calls == 32 && !down->inside);
    cr_assert_float_eq(down->self + down->children, 0.9 * 12 / 32, 1e-12);
    cr_assert_float_eq(gap->children, 0.6 * 12 / 32, 1e-12, "%f: f and g, and not its own time again", gap->children);
    cr_assert_float_eq(m->children, 0.9 * 4 / 32, 1e-12, "%f", m->children);
    cr_assert(outside->calls == 5 && outside->self == 0);
    cr_assert_float_eq(outside->children, 0.9 * 9 / 32, 1e-12, "%f", outside->children);
    arena_free(a);
}

Test(report, stripped_builds_show_addresses, .init = setup)
{
    struct arena *a = arena_new(0);
    program.object.symbol_count = 0;
    program.object.has_names = false;
    chain();
    upload_arc(&other, 0, 0x1010, 0, 0x1304, 1);
    const struct profile *ever = upload_profile(&other, a, ids, 1);
    struct report *r = report(a, 1, &(struct report_request){.ever = ever});
    cr_assert_not_null(report_named(r, "0x1000"), "before the first known entry: the range's start");
    cr_assert_not_null(report_named(r, "0x1104"));
    cr_assert_eq(report_named(r, "0x1204")->calls, 8);
    cr_assert_eq(report_named(r, "0x1104")->kind, REPORT_ADDRESS);
    cr_assert_eq(r->unnamed_builds, 1);
    arena_free(a);
}

Test(report, bins_are_shared_by_overlap, .init = setup)
{
    struct arena *a = arena_new(0);
    upload_histogram(&upload, 0, 0x10c0, 0x1180, 1, 100); /* 64 bytes of main, 128 of f */
    upload_bin(&upload, 0, 30);
    upload_histogram(&upload, 0, 0x13f0, 0x1440, 1, 100); /* the end of h and padding: padding is not executed */
    upload_bin(&upload, 0, 7);
    upload_histogram(&upload, 0, 0x1500, 0x1540, 1, 100); /* only padding */
    upload_bin(&upload, 0, 5);
    upload_histogram(&upload, 0, 0x11fe, 0x1201, 1, 100); /* two bytes of f, one of g */
    upload_bin(&upload, 0, 9);
    struct report *r = report(a, 1, &(struct report_request){0});
    cr_assert_float_eq(report_named(r, "main")->self, 0.10, 1e-12);
    cr_assert_float_eq(report_named(r, "f")->self, 0.26, 1e-12);
    cr_assert_float_eq(report_named(r, "g")->self, 0.03, 1e-12);
    cr_assert_float_eq(report_named(r, "h")->self, 0.07, 1e-12);
    cr_assert_float_eq(report_named(r, "[gap]")->self, 0.05, 1e-12);
    cr_assert_eq(report_named(r, "f")->ticks_total, 26);
    cr_assert_eq(r->ticks, 51);
    arena_free(a);
}

Test(report, rates_are_kept_apart, .init = setup)
{
    struct arena *a = arena_new(0);
    upload_histogram(&upload, 0, 0x1000, 0x1400, 0x400, 1000);
    upload_bin(&upload, 0x10, 400);
    upload_histogram(&upload, 0, 0x1000, 0x1400, 0x400, 100);
    upload_bin(&upload, 0x10, 100);
    struct report *r = report(a, 1, &(struct report_request){0});
    cr_assert(r->rate_count == 2 && r->rates[0] == 100 && r->rates[1] == 1000);
    cr_assert_eq(report_named(r, "main")->self, 100 / 100.0 + 400 / 1000.0);
    cr_assert_eq(r->total, 100 / 100.0 + 400 / 1000.0);
    cr_assert_eq(report_named(r, "main")->ticks_total, 0, "ticks of two rates are not one number");
    arena_free(a);
}

static void histogram_of(const char *dimension, uint32_t rate, uint32_t bin, uint64_t ticks)
{
    upload_histogram(&upload, 0, 0x1000, 0x1400, 0x400, rate);
    struct counts_histogram *h = &upload.histograms[upload.counts.histogram_count - 1];
    memset(h->dimension, 0, sizeof h->dimension);
    memcpy(h->dimension, dimension, strlen(dimension));
    upload_bin(&upload, bin, ticks);
}

Test(report, dimensions_are_not_mixed, .init = setup)
{
    struct arena *a = arena_new(0);
    struct profd_error e;
    histogram_of("misses", 1, 0x10, 7);
    histogram_of("seconds", 1000, 0x10, 400);
    histogram_of("cycles", 1, 0x10, 9);
    histogram_of("cycles", 2, 0x104, 8);
    struct report *r = report(a, 1, &(struct report_request){0}), *none = NULL;
    cr_assert_str_eq(r->dimension, "seconds");
    cr_assert(r->ticks == 400 && r->total == 0.4 && r->rate_count == 1 && r->rates[0] == 1000);
    cr_assert_eq(r->other_dimension_count, 2);
    cr_assert_str_eq(r->other_dimensions[0].name, "cycles");
    cr_assert_str_eq(r->other_dimensions[1].name, "misses");
    cr_assert(r->other_dimensions[0].ticks == 17 && r->other_dimensions[1].ticks == 7);
    r = report(a, 1, &(struct report_request){.dimension = "cycles"});
    cr_assert_str_eq(r->dimension, "cycles");
    cr_assert(r->ticks == 17 && r->total == 9 + 8 / 2.0 && report_named(r, "main")->self == 9 &&
              report_named(r, "f")->self == 4);
    cr_assert_str_eq(r->other_dimensions[1].name, "seconds");
    const struct object *objects[] = {&program.object};
    struct report_request request = {
        .profile = upload_profile(&upload, a, ids, 1), .objects = objects, .dimension = "Cycles"};
    cr_assert_eq(report_build(a, &request, &none, &e), PROFD_BAD_QUERY);
    cr_assert_null(none);
    cr_assert_str_eq(e.sentence, "dimension=Cycles: the samples have cycles, misses, seconds");
    arena_free(a);
}

Test(report, without_seconds_the_first_dimension_is_taken, .init = setup)
{
    struct arena *a = arena_new(0);
    histogram_of("wall", 1, 0x10, 3);
    histogram_of("cycles", 1, 0x10, 5);
    cr_assert_str_eq(report(a, 1, &(struct report_request){0})->dimension, "cycles");
    arena_free(a);
}

/* Nothing was sampled: an empty range of time, say. There is nothing to be told apart. */
Test(report, without_samples_any_dimension_will_do, .init = setup)
{
    struct arena *a = arena_new(0);
    upload_arc(&upload, 0, 0x1010, 0, 0x1104, 5);
    cr_assert_str_eq(report(a, 1, &(struct report_request){0})->dimension, "seconds");
    struct report *r = report(a, 1, &(struct report_request){.dimension = "cycles"});
    cr_assert(strcmp(r->dimension, "cycles") == 0 && r->other_dimension_count == 0 && r->ticks == 0 && r->calls == 5);
    arena_free(a);
}

Test(report, recursion_is_a_row_without_time, .init = setup)
{
    struct arena *a = arena_new(0);
    chain();
    upload_arc(&upload, 0, 0x1140, 0, 0x1104, 90);
    upload_arc(&upload, 0, 0x1010, 0, 0x1004, 5); /* main calls itself: still spontaneous */
    struct report *r = report(a, 1, &(struct report_request){0});
    const struct report_function *f = report_named(r, "f"), *m = report_named(r, "main");
    cr_assert(f->calls == 4 && f->self_calls == 90 && f->cycle == 0 && r->cycle_count == 0);
    cr_assert(f->callers[0].inside && f->callers[0].calls == 90 && f->callers[0].self == 0 && f->caller_count == 2);
    cr_assert(f->callees[1].inside && f->callees[1].calls == 90 && f->callees[1].of_calls == 0, "least, so last below");
    cr_assert(m->spontaneous && m->calls == 0 && m->self_calls == 5);
    cr_assert_float_eq(f->percent, 600 / 7.0, 1e-9);
    arena_free(a);
}

Test(report, arcs_of_count_zero_in_the_profile, .init = setup)
{
    struct arena *a = arena_new(0);
    chain();
    upload_arc(&upload, 0, 0x1210, 0, 0x1104, 0); /* known from the executable: shapes the cycle */
    struct report *r = report(a, 1, &(struct report_request){0});
    cr_assert(r->cycle_count == 1 && report_named(r, "g")->callee_count == 0);
    cr_assert_eq(report_named(r, "g")->static_callee_count, 0);
    r = report(a, 1, &(struct report_request){.static_arcs = true});
    cr_assert_eq(report_named(r, "g")->static_callee_count, 1);
    arena_free(a);
}

Test(report, a_cycle_without_callers_keeps_its_time, .init = setup)
{
    struct arena *a = arena_new(0);
    upload_arc(&upload, 0, 0x1010, 0, 0x1104, 4);
    upload_arc(&upload, 0, 0x1110, 0, 0x1004, 3);
    upload_histogram(&upload, 0, 0x1000, 0x1400, 0x400, 100);
    upload_bin(&upload, 0x10, 60);
    upload_bin(&upload, 0x110, 40);
    struct report *r = report(a, 1, &(struct report_request){0});
    cr_assert(r->cycles[0].caller_count == 0 && r->cycles[0].calls_outside == 0 && r->cycles[0].self == 1.0);
    cr_assert_eq(r->cycles[0].percent, 100);
    cr_assert_eq(r->order[0], REPORT_CYCLE | 0, "before its members");
    cr_assert_eq(report_named(r, "main")->self, 0.6);
    arena_free(a);
}

Test(report, nothing_at_all, .init = setup)
{
    struct arena *a = arena_new(0);
    struct report *r = report(a, 0, &(struct report_request){0});
    cr_assert(r->function_count == 0 && r->order_count == 0 && r->total == 0 && r->build_count == 0);
    r = report(a, 2, &(struct report_request){0});
    cr_assert(r->function_count == 0 && r->order_count == 0 && r->build_count == 2 && r->unnamed_builds == 0);
    arena_free(a);
}

Test(report, aliases_and_files, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_symbol(&program, "zeta", 0x1100, 0x100, OBJECT_BIND_WEAK, OBJECT_TYPE_FUNCTION);
    fixture_symbol(&program, "also", 0x1100, 0x100, OBJECT_BIND_WEAK, OBJECT_TYPE_FUNCTION);
    fixture_symbol(&program, "also", 0x1100, 0x100, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    program.symbols[1].file = fixture_name(&program, "src/f.c");
    program.symbols[1].demangled = fixture_name(&program, "f()");
    chain();
    struct report *r = report(a, 1, &(struct report_request){0});
    const struct report_function *f = report_named(r, "f()");
    cr_assert(f->alias_count == 2);
    cr_assert_str_eq(f->raw, "f");
    cr_assert_str_eq(f->aliases[0], "also");
    cr_assert_str_eq(f->aliases[1], "zeta");
    cr_assert_str_eq(f->file, "src/f.c");
    arena_free(a);
}

static enum profd_status build_bounded(struct arena *a, const struct report_request *request, struct report **r)
{
    struct profd_error e;
    ARENA_BOUNDARY(a, PROFD_NO_MEMORY);
    return report_build(a, request, r, &e);
}

Test(report, a_small_arena_is_no_memory, .init = setup)
{
    chain();
    struct arena *a = arena_new(0);
    const struct object *objects[] = {&program.object};
    struct report_request request = {.profile = upload_profile(&upload, a, ids, 1), .objects = objects};
    int refused = 0;
    for (size_t limit = 4096; limit < 1 << 20; limit += 4096) {
        struct arena *small = arena_new(limit);
        struct report *r = NULL;
        enum profd_status status = build_bounded(small, &request, &r);
        cr_assert(status == PROFD_OK ? r != NULL : status == PROFD_NO_MEMORY && r == NULL);
        refused += status != PROFD_OK;
        arena_free(small);
    }
    cr_assert(refused > 0 && refused < 255);
    arena_free(a);
}

/* The builds of the earliest commit come first, as it lists them; however uploads arrive, and whether arcs or samples
 * speak of them. Introduction and the order of ids would say otherwise. */
Test(report, builds_stand_in_load_order, .init = setup)
{
    static const char *const introduced[] = {"55", "88", "99"}, *const paths[] = {"late.so", NULL, "program"};
    static const struct object *const objects[3] = {NULL, NULL, NULL};
    for (int samples = 0; samples < 2; samples++) {
        struct arena *a = arena_new(0);
        struct profile_sum *s = profile_sum_new(a);
        struct profile *p = NULL;
        struct report *r = NULL;
        uint32_t index[3];
        for (uint32_t i = 0; i < 3; i++) {
            index[i] = profile_sum_build(s, introduced[i]);
        }
        for (uint64_t commit = 5; commit == 5 || commit == 2;
             commit -= 3) { /* 5 brings 55 and 88; 2 brings 99 and 88 */
            uint32_t map[] = {commit == 5 ? index[0] : index[2], index[1]};
            upload_init(&upload);
            for (uint32_t build = 0; build < 2; build++) {
                upload_histogram(&upload, build, 0x100, 0x1800, 0x1700, 100);
                upload_bin(&upload, 5, 1);
                upload_arc(&upload, build, 0x110, build, 0x120, 1);
            }
            if (samples == 0) {
                upload.counts.histogram_count = 0;
            } else {
                upload.counts.arc_count = 0;
            }
            profile_sum_add(s, &upload.counts, map, commit);
        }
        cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
        struct report_request request = {.profile = p, .objects = objects, .names = paths};
        cr_assert_eq(report_build(a, &request, &r, NULL), PROFD_OK);
        static const char *const want[] = {"99", "88", "55"}, *const names[] = {"program", "", "late.so"};
        for (uint32_t i = 0; i < 3; i++) {
            cr_assert_str_eq(r->builds[i], want[i]);
            cr_assert_str_eq(r->build_names[i], names[i]);
            cr_assert_eq(r->functions[i].build, i);
        }
        arena_free(a);
    }
}
