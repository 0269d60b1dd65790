/* The cycle example of gprof's manual: every number that true mode must say. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/core/fixture.h"

#define ID "00112233445566778899aabbccddeeff00112233"

static struct fixture fixture;
static struct upload upload;

/* start 0x1000, main 0x1100, a 0x1200, b 0x1300, c 0x1400, each 256 bytes; bins of 4 bytes. */
static struct report *example(struct arena *a)
{
    static const char *const names[] = {"start", "main", "a", "b", "c"}, *const ids[] = {ID},
                             *const paths[] = {"/bin/example"};
    static const struct object *objects[1];
    static struct report_request request;
    fixture_init(&fixture, ID);
    for (uint32_t i = 0; i < 5; i++) {
        fixture_function(&fixture, names[i], 0x1000 + i * 0x100, 0x100);
    }
    fixture_range(&fixture, OBJECT_RANGE_TEXT, 0x1000, 0x1500);
    upload_init(&upload);
    upload_histogram(&upload, 0, 0x1000, 0x1500, 0x500 / 4, 100);
    upload_bin(&upload, 0x110 / 4, 16);
    upload_bin(&upload, 0x210 / 4, 70);
    upload_bin(&upload, 0x2f0 / 4, 5);
    upload_bin(&upload, 0x310 / 4, 100);
    upload_bin(&upload, 0x320 / 4, 2);
    upload_arc(&upload, 0, 0x1010, 0, 0x1104, 1); /* start → main */
    upload_arc(&upload, 0, 0x1120, 0, 0x1204, 1); /* main → a */
    upload_arc(&upload, 0, 0x1220, 0, 0x1304, 3); /* a → b */
    upload_arc(&upload, 0, 0x1320, 0, 0x1204, 2); /* b → a */
    upload_arc(&upload, 0, 0x1230, 0, 0x1404, 2); /* a → c, from two call sites */
    upload_arc(&upload, 0, 0x1240, 0, 0x1404, 1);
    upload_arc(&upload, 0, 0x1330, 0, 0x1404, 3); /* b → c */
    objects[0] = &fixture.object;
    request =
        (struct report_request){.profile = upload_profile(&upload, a, ids, 1), .objects = objects, .names = paths};
    struct report *r = NULL;
    struct profd_error e;
    cr_assert_eq(report_build(a, &request, &r, &e), PROFD_OK, "%s", e.sentence);
    return r;
}

static void near(double got, double want)
{
    cr_assert_float_eq(got, want, 1e-12, "%.17g is not %.17g", got, want);
}

/* Rounded to two decimals, as reports print percents. */
static void percent(double got, double want)
{
    cr_assert_eq(round(got * 100), round(want * 100), "%f is not %f", got, want);
}

static void row(const struct report *r, const struct report_arc *rows, uint32_t n, const char *name, uint64_t calls,
                uint64_t of_calls, double self, double children, bool inside)
{
    const struct report_arc *arc = report_row(r, rows, n, name);
    cr_assert_not_null(arc, "no row of %s", name);
    cr_assert_eq(arc->calls, calls, "%s", name);
    cr_assert_eq(arc->of_calls, of_calls, "%s: of %llu", name, (unsigned long long)arc->of_calls);
    near(arc->self, self);
    near(arc->children, children);
    cr_assert_eq(arc->inside, inside, "%s", name);
}

Test(report_cycle, totals)
{
    struct arena *a = arena_new(0);
    struct report *r = example(a);
    near(r->total, 1.93);
    cr_assert(r->ticks == 193 && r->calls == 13 && r->rate_count == 1 && r->rates[0] == 100);
    cr_assert(r->function_count == 5 && r->cycle_count == 1 && r->order_count == 6 && r->unnamed_builds == 0);
    cr_assert(!r->saturated && !r->static_arcs);
    cr_assert_str_eq(r->dimension, "seconds");
    cr_assert_str_eq(r->builds[0], ID);
    cr_assert_str_eq(r->build_names[0], "/bin/example");
    arena_free(a);
}

Test(report_cycle, the_cycle_as_a_whole)
{
    struct arena *a = arena_new(0);
    struct report *r = example(a);
    const struct report_cycle *c = &r->cycles[0];
    cr_assert(c->number == 1 && c->calls_outside == 1 && c->calls_inside == 5);
    cr_assert_eq(c->self, 1.77, "exactly 177 ticks at 100 Hz");
    near(c->children, 0);
    percent(c->percent, 91.71);
    cr_assert(c->caller_count == 1 && c->member_count == 2 && c->callee_count == 1);
    row(r, c->callers, 1, "main", 1, 1, 1.77, 0, false);
    row(r, c->callees, 1, "c", 6, 6, 0, 0, false);
    cr_assert_str_eq(r->functions[c->members[0].other].name, "b", "largest first");
    row(r, c->members, 2, "b", 3, 0, 1.02, 0, true);
    row(r, c->members, 2, "a", 2, 0, 0.75, 0, true);
    arena_free(a);
}

Test(report_cycle, members)
{
    struct arena *a = arena_new(0);
    struct report *r = example(a);
    const struct report_function *fa = report_named(r, "a"), *fb = report_named(r, "b");
    percent(fb->percent, 52.85);
    cr_assert(fb->calls == 3 && fb->calls_outside == 0 && fb->calls_inside == 3 && fb->self_calls == 0 &&
              fb->cycle == 1);
    cr_assert(fb->caller_count == 1 && fb->callee_count == 2 && !fb->spontaneous && fb->ticks_total == 102);
    row(r, fb->callers, 1, "a", 3, 0, 0, 0, true);
    row(r, fb->callees, 2, "a", 2, 0, 0, 0, true);
    row(r, fb->callees, 2, "c", 3, 6, 0, 0, false);
    cr_assert_str_eq(r->functions[fb->callees[1].other].name, "a", "arcs inside come below all others");
    percent(fa->percent, 38.86);
    cr_assert(fa->calls == 3 && fa->calls_outside == 1 && fa->calls_inside == 2 && fa->cycle == 1);
    cr_assert(fa->caller_count == 2 && fa->callee_count == 2 && fa->ticks_total == 75);
    row(r, fa->callers, 2, "main", 1, 1, 1.77, 0, false);
    row(r, fa->callers, 2, "b", 2, 0, 0, 0, true);
    cr_assert_str_eq(r->functions[fa->callers[0].other].name, "b", "callers ascend: inside first");
    row(r, fa->callees, 2, "b", 3, 0, 0, 0, true);
    row(r, fa->callees, 2, "c", 3, 6, 0, 0, false);
    arena_free(a);
}

Test(report_cycle, the_others)
{
    struct arena *a = arena_new(0);
    struct report *r = example(a);
    const struct report_function *m = report_named(r, "main"), *s = report_named(r, "start"), *c = report_named(r, "c");
    near(m->self, 0.16);
    near(m->children, 1.77);
    near(m->percent, 100);
    row(r, m->callers, m->caller_count, "start", 1, 1, 0.16, 1.77, false);
    row(r, m->callees, m->callee_count, "a", 1, 1, 1.77, 0, false);
    near(s->self, 0);
    near(s->children, 1.93);
    near(s->percent, 100);
    cr_assert(s->spontaneous && s->caller_count == 0 && s->calls == 0 && s->index != 0);
    row(r, s->callees, s->callee_count, "main", 1, 1, 0.16, 1.77, false);
    cr_assert(c->calls == 6 && c->calls_outside == 6 && c->calls_inside == 0 && c->cycle == 0 && !c->spontaneous);
    row(r, c->callers, c->caller_count, "a", 3, 6, 0, 0, false);
    row(r, c->callers, c->caller_count, "b", 3, 6, 0, 0, false);
    cr_assert_eq(c->caller_count, 2);
    arena_free(a);
}

/* main and start tie at 1.93: main is called, start is not. */
Test(report_cycle, order)
{
    static const char *const want[] = {"main", "start", NULL, "b", "a", "c"};
    struct arena *a = arena_new(0);
    struct report *r = example(a);
    for (uint32_t i = 0; i < 6; i++) {
        if (want[i] == NULL) {
            cr_assert_eq(r->order[i], REPORT_CYCLE | 0);
            cr_assert_eq(r->cycles[0].index, i + 1);
            continue;
        }
        cr_assert_str_eq(r->functions[r->order[i]].name, want[i], "entry %u", i + 1);
        cr_assert_eq(r->functions[r->order[i]].index, i + 1);
    }
    arena_free(a);
}
