/* Who gets the ticks of a bin that two functions share. */
#include <criterion/criterion.h>

#include "tests/unit/core/fixture.h"

static struct fixture program;
static struct upload upload;
static const char *const ids[] = {"0011223344556677"};

static void setup(void)
{
    fixture_init(&program, ids[0]);
    fixture_range(&program, OBJECT_RANGE_TEXT, 0x1000, 0x2000);
    upload_init(&upload);
}

static struct report *report(struct arena *a)
{
    const struct object *objects[] = {&program.object};
    struct report_request request = {.profile = upload_profile(&upload, a, ids, 1), .objects = objects};
    struct report *r = NULL;
    struct profd_error e;
    double self = 0;
    cr_assert_eq(report_build(a, &request, &r, &e), PROFD_OK, "%s", e.sentence);
    for (uint32_t i = 0; i < r->function_count; i++) {
        self += r->functions[i].self;
    }
    cr_assert_float_eq(self, r->total, 1e-9);
    return r;
}

/* What a function's self time may be, and whether its mark says so. */
static void bounds(const struct report *r, const char *name, double least, double most, bool estimated)
{
    const struct report_function *f = report_named(r, name);
    cr_assert_float_eq(f->self_least, least, 1e-12, "%s: at least %f", name, f->self_least);
    cr_assert_float_eq(f->self_most, most, 1e-12, "%s: at most %f", name, f->self_most);
    cr_assert_eq(f->self_estimated, estimated, "%s", name);
}

static double self(const struct report *r, const char *name)
{
    const struct report_function *f = report_named(r, name);
    return f == NULL ? 0 : f->self;
}

/* A bin of f, one that f and g share (4 bytes of each), a bin of g; f has [0x1000, 0x100c), g [0x100c, 0x1018). */
static void two(uint64_t of_f, uint64_t shared, uint64_t of_g)
{
    fixture_function(&program, "f", 0x1000, 0xc);
    fixture_function(&program, "g", 0x100c, 0xc);
    upload_histogram(&upload, 0, 0x1000, 0x1018, 3, 100);
    const uint64_t ticks[] = {of_f, shared, of_g};
    for (uint32_t i = 0; i < 3; i++) {
        if (ticks[i] > 0) {
            upload_bin(&upload, i, ticks[i]);
        }
    }
}

/* The text of a small program: fib stands behind crt's frame_dummy, whose size is 0. Bin 1143 counts 0x11d6-0x11d9, not
 * 0x11d4.35-0x11d8.34 as gprof reads it. */
Test(bins, of_glibc_behind_a_symbol_of_size_0, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_function(&program, "frame_dummy", 0x11d0, 0);
    fixture_function(&program, "fib", 0x11d9, 52);
    upload_histogram(&upload, 0, 0, 0x12a8, 1196, 100);
    upload_bin(&upload, 1143, 11);
    upload_bin(&upload, 1144, 9);
    upload_arc(&upload, 0, 0x11e8, 0, 0x11d9, 1000);
    struct report *r = report(a);
    cr_assert_float_eq(self(r, "fib"), 0.20, 1e-12);
    cr_assert_null(report_named(r, "frame_dummy"));
    bounds(r, "fib", 0.20, 0.20, false);
    arena_free(a);
}

Test(bins, of_a_symbol_of_size_0_alone, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_function(&program, "label", 0x1002, 0);
    fixture_function(&program, "f", 0x1010, 8);
    upload_histogram(&upload, 0, 0x1000, 0x1020, 8, 100);
    upload_bin(&upload, 0, 3); /* two bytes of nobody, two of the label */
    upload_bin(&upload, 4, 4);
    struct report *r = report(a);
    cr_assert_float_eq(self(r, "label"), 0.03, 1e-12);
    cr_assert_float_eq(self(r, "f"), 0.04, 1e-12);
    arena_free(a);
}

Test(bins, by_density, .init = setup)
{
    struct arena *a = arena_new(0);
    two(90, 100, 10);
    upload_arc(&upload, 0, 0x1010, 0, 0x100c, 1000000); /* calls say nothing where densities are known */
    struct report *r = report(a);
    cr_assert_float_eq(self(r, "f"), 1.80, 1e-12);
    cr_assert_float_eq(self(r, "g"), 0.20, 1e-12);
    bounds(r, "f", 0.90, 1.90, true);
    bounds(r, "g", 0.10, 1.10, true);
    cr_assert(r->estimated);
    arena_free(a);
}

/* A twentieth of its time may be another's: no reason for a mark. */
Test(bins, of_few_shared_ticks, .init = setup)
{
    struct arena *a = arena_new(0);
    two(95, 5, 95);
    struct report *r = report(a);
    bounds(r, "f", 0.95, 1.00, false);
    bounds(r, "g", 0.95, 1.00, false);
    cr_assert(!r->estimated);
    arena_free(a);
}

/* g was called and got no tick of the bin that it shares with f. */
Test(bins, of_one_without_ticks, .init = setup)
{
    struct arena *a = arena_new(0);
    two(2000, 100, 0);
    upload_arc(&upload, 0, 0x1004, 0, 0x100c, 30);
    struct report *r = report(a);
    bounds(r, "f", 20, 21, false);
    bounds(r, "g", 0, 1, true);
    cr_assert(r->estimated);
    arena_free(a);
}

Test(bins, all_to_the_one_that_runs, .init = setup)
{
    struct arena *a = arena_new(0);
    two(0, 100, 10);
    struct report *r = report(a);
    cr_assert_null(report_named(r, "f"));
    cr_assert_float_eq(self(r, "g"), 1.10, 1e-12);
    cr_assert_eq(report_named(r, "g")->ticks_total, 110);
    bounds(r, "g", 0.10, 1.10, true);
    arena_free(a);
}

Test(bins, by_calls_where_no_density_is_known, .init = setup)
{
    struct arena *a = arena_new(0);
    two(0, 100, 0);
    upload_arc(&upload, 0, 0x1004, 0, 0x100c, 30);
    upload_arc(&upload, 0, 0x1010, 0, 0x1000, 10);
    struct report *r = report(a);
    cr_assert_float_eq(self(r, "f"), 0.25, 1e-12);
    cr_assert_float_eq(self(r, "g"), 0.75, 1e-12);
    arena_free(a);
}

Test(bins, by_bytes_where_nothing_is_known, .init = setup)
{
    struct arena *a = arena_new(0);
    two(0, 100, 0);
    struct report *r = report(a);
    cr_assert_float_eq(self(r, "f"), 0.50, 1e-12);
    cr_assert_float_eq(self(r, "g"), 0.50, 1e-12);
    arena_free(a);
}

/* leaf has no bin of its own: it gets what the density of f leaves of the shared one. */
Test(bins, of_a_function_without_a_whole_bin, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_function(&program, "f", 0x1000, 0xc);
    fixture_function(&program, "leaf", 0x100c, 2);
    fixture_function(&program, "idle", 0x100e, 2);
    upload_histogram(&upload, 0, 0x1000, 0x1018, 3, 100);
    upload_bin(&upload, 0, 8); /* one tick a byte: 4 in f's half of the shared bin */
    upload_bin(&upload, 1, 100);
    upload_arc(&upload, 0, 0x1004, 0, 0x100c, 30);
    struct report *r = report(a);
    cr_assert_float_eq(self(r, "f"), 0.12, 1e-12);
    cr_assert_float_eq(self(r, "leaf"), 0.96, 1e-12);
    cr_assert_null(report_named(r, "idle"));
    arena_free(a);
}

/* The cold part of a hot function stands elsewhere and has a density of its own. */
Test(bins, of_a_function_in_two_pieces, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_function(&program, "hot", 0x1000, 0x10);
    fixture_symbol(&program, "hot.cold", 0x1100, 0xc, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    fixture_function(&program, "other", 0x110c, 0xc);
    upload_histogram(&upload, 0, 0x1000, 0x1200, 64, 100);
    upload_bin(&upload, 0, 1000);
    upload_bin(&upload, 33, 10); /* 4 bytes of either */
    upload_bin(&upload, 34, 5);
    struct report *r = report(a);
    cr_assert_float_eq(self(r, "hot"), 10.00, 1e-12);
    cr_assert_float_eq(self(r, "other"), 0.15, 1e-12);
    arena_free(a);
}

Test(bins, of_broken_width, .init = setup)
{
    struct arena *a = arena_new(0);
    fixture_function(&program, "f", 0x1000, 5);
    fixture_function(&program, "g", 0x1005, 5);
    upload_histogram(&upload, 0, 0x1000, 0x100a, 4, 100); /* 2.5 bytes each */
    for (uint32_t i = 0; i < 4; i++) {
        upload_bin(&upload, i, 10 * (i + 1));
    }
    struct report *r = report(a);
    cr_assert_float_eq(self(r, "f"), 0.30, 1e-12);
    cr_assert_float_eq(self(r, "g"), 0.70, 1e-12);
    arena_free(a);
}
