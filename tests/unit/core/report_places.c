/* Self time by address: which bins are places, and what they add up to. */
#include "core/report.h"

#include "tests/unit/core/fixture.h"

#define ID "00112233445566778899aabbccddeeff00112233"

static struct fixture fixture;
static struct upload upload;

/* first has 16 bytes, second 6, so that its last bin is shared with [gap]. Bins of 4 bytes, 100 ticks a second. */
static struct report *example(struct arena *a, struct profile **profile, unsigned second)
{
    static const char *const IDS[] = {ID};
    static const struct object *objects[1];
    static struct report_request request;
    struct report *r;
    fixture_init(&fixture, ID);
    fixture_function(&fixture, "first", 0x1000, 0x10);
    fixture_function(&fixture, "second", 0x1010, 6);
    fixture_range(&fixture, OBJECT_RANGE_TEXT, 0x1000, 0x1040);
    upload_init(&upload);
    upload_histogram(&upload, 0, 0x1000, 0x1040, 0x40 / 4, 100);
    upload_bin(&upload, 0, 7);
    upload_bin(&upload, 3, 20);
    upload_bin(&upload, 4, 5);
    upload_bin(&upload, 5, second);
    upload_bin(&upload, 8, 9);
    objects[0] = &fixture.object;
    *profile = upload_profile(&upload, a, IDS, 1);
    request = (struct report_request){.profile = *profile, .objects = objects};
    cr_assert_eq(report_build(a, &request, &r, NULL), PROFD_OK);
    return r;
}

static uint32_t position(const struct report *r, const char *name)
{
    return (uint32_t)(report_named(r, name) - r->functions);
}

static void expect(const struct report_places *p, uint32_t at, uint64_t address, double seconds)
{
    cr_assert_eq(p->list[at].address, address, "%llx", (unsigned long long)p->list[at].address);
    cr_assert_float_eq(p->list[at].seconds, seconds, 1e-12, "%g", p->list[at].seconds);
}

Test(report_places, bins_of_one_function)
{
    struct arena *a = arena_new(0);
    struct profile *profile;
    struct report *r = example(a, &profile, 8);
    struct report_places p;
    report_places_make(a, r, profile, &p);
    const uint32_t first = position(r, "first"), second = position(r, "second");
    cr_assert_eq(p.first[first + 1] - p.first[first], 2);
    expect(&p, p.first[first], 0x1000, 0.07);
    expect(&p, p.first[first] + 1, 0x100c, 0.20);
    cr_assert_eq(p.first[second + 1] - p.first[second], 1, "not the bin that reaches beyond its end");
    expect(&p, p.first[second], 0x1010, 0.05);
    cr_assert_gt(r->functions[second].self, 0.05, "of which its self time has a part");
    cr_assert_eq(p.first[r->function_count], 3, "a gap has no places");
    cr_assert_eq(p.bin_bytes, 4);
    arena_free(a);
}

Test(report_places, nothing_without_a_profile)
{
    struct arena *a = arena_new(0);
    struct profile *profile;
    struct report *r = example(a, &profile, 8);
    struct report_places p;
    report_places_make(a, r, NULL, &p);
    cr_assert(p.first[r->function_count] == 0 && p.bin_bytes == 0);
    arena_free(a);
}

/* From stacks, a function's places have all of its self time, in the same proportions. */
Test(report_places, measured_times_are_spread_over_the_places)
{
    struct arena *a = arena_new(0);
    struct profile *profile;
    struct report *r = example(a, &profile, 8);
    struct report measured = *r;
    struct report_function *f = ARENA_ARRAY(a, r->function_count, struct report_function);
    struct report_places p;
    const uint32_t first = position(r, "first"), second = position(r, "second");
    memcpy(f, r->functions, r->function_count * sizeof *f);
    f[first].self = 0.54;
    f[second].self = 0;
    measured.functions = f;
    measured.time_measured = true;
    report_places_make(a, &measured, profile, &p);
    cr_assert_eq(p.first[r->function_count], 2, "none of a function without time");
    expect(&p, p.first[first], 0x1000, 0.14);
    expect(&p, p.first[first] + 1, 0x100c, 0.40);
    arena_free(a);
}

/* Where another function owns a part of the bytes, the bins say more than the self time. */
Test(report_places, a_function_with_less_time_than_its_bins_has_none)
{
    struct arena *a = arena_new(0);
    struct profile *profile;
    struct report *r = example(a, &profile, 8);
    struct report less = *r;
    struct report_function *f = ARENA_ARRAY(a, r->function_count, struct report_function);
    struct report_places p;
    const uint32_t first = position(r, "first");
    memcpy(f, r->functions, r->function_count * sizeof *f);
    f[first].self = 0.26;
    less.functions = f;
    report_places_make(a, &less, profile, &p);
    cr_assert_eq(p.first[first + 1], p.first[first]);
    cr_assert_eq(p.first[r->function_count], 1);
    arena_free(a);
}
