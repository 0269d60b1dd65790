/* The sum of profiles: by geometry and by arc, stable, saturating, and NO_MEMORY when the arena is too small. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "proto/sort.h"
#include "proto/sum.h"
#include "tests/unit/core/fixture.h"

static struct upload u;

Test(profile, adds_by_geometry_and_pair)
{
    struct arena *a = arena_new(0);
    struct profile_sum *s = profile_sum_new(a);
    uint32_t map[3];
    map[0] = profile_sum_build(s, "bb");
    map[1] = profile_sum_build(s, "aa");
    map[2] = profile_sum_build(s, "bb");
    cr_assert(map[0] == 0 && map[1] == 1 && map[2] == 0, "introduced once");
    upload_init(&u);
    upload_histogram(&u, 0, 0, 400, 100, 100);
    upload_bin(&u, 3, 1);
    upload_bin(&u, 99, 2);
    upload_histogram(&u, 0, 0, 400, 200, 100); /* another geometry stays beside it */
    upload_bin(&u, 3, 4);
    upload_histogram(&u, 0, 0, 400, 100, 100); /* the same as the first */
    upload_bin(&u, 3, 8);
    upload_histogram(&u, 0, 0, 400, 100, 50); /* another rate */
    upload_bin(&u, 3, 16);
    upload_histogram(&u, 1, 0, 100000000, 100000000, 100); /* sparse */
    upload_bin(&u, 77, 32);
    upload_bin(&u, 99999999, 64);
    upload_arc(&u, 1, 50, 0, 60, 5);
    upload_arc(&u, 0, 50, COUNTS_NOWHERE, 60, 6);
    upload_arc(&u, 0, 50, 1, 60, 7);
    upload_arc(&u, 1, 50, 0, 60, 9);
    for (uint64_t commit = 10; commit-- > 7;) {
        profile_sum_add(s, &u.counts, map, commit, false);
    }
    struct profile *p = NULL;
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    cr_assert(p->build_count == 2 && p->histogram_count == 4 && p->arc_count == 3 && !p->saturated);
    const struct profile_histogram *h = p->histograms;
    cr_assert(h[0].bins == 100 && h[0].rate == 50 && h[0].ticks[0] == 48 && h[0].used == 1 && h[0].order.rank == 3);
    cr_assert(h[1].rate == 100 && h[1].used == 2 && h[1].index[0] == 3 && h[1].ticks[0] == 27 && h[1].ticks[1] == 6);
    cr_assert(h[1].order.commit == 7 && h[1].order.rank == 0);
    cr_assert(h[2].bins == 200 && h[2].ticks[0] == 12);
    cr_assert(h[3].build == 1 && h[3].used == 2 && h[3].index[1] == 99999999 && h[3].ticks[1] == 192);
    cr_assert(p->arcs[0].from_build == 0 && p->arcs[0].to_build == 1 && p->arcs[0].calls == 21 &&
              p->arcs[0].order.rank == 2);
    cr_assert(p->arcs[1].to_build == COUNTS_NOWHERE && p->arcs[1].calls == 18);
    cr_assert(p->arcs[2].from_build == 1 && p->arcs[2].calls == 42 && p->arcs[2].order.commit == 7 &&
              p->arcs[2].order.rank == 0);
    cr_assert(p->ticks == 3 * 127 && p->calls == 3 * 27);
    arena_free(a);
}

Test(profile, arcs_only_leaves_histograms_out)
{
    struct arena *a = arena_new(0);
    struct profile_sum *s = profile_sum_new(a);
    uint32_t map[1];
    map[0] = profile_sum_build(s, "bb");
    upload_init(&u);
    upload_histogram(&u, 0, 0, 400, 100, 100);
    upload_bin(&u, 3, 1);
    upload_arc(&u, 0, 1, 0, 2, 0);
    profile_sum_add(s, &u.counts, map, 1, true);
    struct profile *p = NULL;
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    cr_assert(p->histogram_count == 0 && p->arc_count == 1 && p->ticks == 0);
    arena_free(a);
}

Test(profile, sums_stop_and_say_so)
{
    struct arena *a = arena_new(0);
    struct profile_sum *s = profile_sum_new(a);
    uint32_t map[1];
    map[0] = profile_sum_build(s, "bb");
    upload_init(&u);
    upload_arc(&u, 0, 1, 0, 2, SUM_MAX - 1);
    profile_sum_add(s, &u.counts, map, 1, false);
    struct profile *p = NULL;
    u.calls[0] = 1;
    profile_sum_add(s, &u.counts, map, 2, false);
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    cr_assert(!p->saturated && p->arcs[0].calls == SUM_MAX, "full is not over");
    profile_sum_add(s, &u.counts, map, 3, false);
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    cr_assert(p->saturated && p->arcs[0].calls == SUM_MAX && p->calls == SUM_MAX);
    upload_init(&u);
    upload_histogram(&u, 0, 0, 400, 100, 100);
    upload_bin(&u, 3, UINT64_MAX);
    s = profile_sum_new(a);
    map[0] = profile_sum_build(s, "bb");
    profile_sum_add(s, &u.counts, map, 1, false);
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    cr_assert(p->saturated && p->ticks == SUM_MAX);
    arena_free(a);
}

Test(profile, thousand_of_one_is_a_thousand_times_everything)
{
    struct arena *a = arena_new(0);
    struct profile_sum *s = profile_sum_new(a);
    uint32_t map[1];
    map[0] = profile_sum_build(s, "bb");
    upload_init(&u);
    upload_histogram(&u, 0, 0x1000, 0x9000, 0x2000, 100);
    for (uint32_t i = 0; i < 400; i++) {
        upload_bin(&u, i * 17, i + 1);
    }
    for (uint32_t i = 0; i < 500; i++) {
        upload_arc(&u, 0, 0x8000 - i * 3 % 700, 0, 0x1000 + i * 5, i);
    }
    uint64_t ticks, calls;
    counts_totals(&u.counts, &ticks, &calls);
    for (uint64_t commit = 0; commit < 1000; commit++) {
        profile_sum_add(s, &u.counts, map, commit, false);
    }
    struct profile *p = NULL;
    cr_assert_eq(profile_sum_finish(s, &p, NULL), PROFD_OK);
    cr_assert(p->ticks == 1000 * ticks && p->calls == 1000 * calls && p->arc_count == 500 &&
              p->histograms[0].used == 400);
    for (uint32_t i = 0; i < 400; i++) {
        cr_assert(p->histograms[0].index[i] == i * 17 && p->histograms[0].ticks[i] == 1000u * (i + 1));
    }
    for (uint32_t i = 1; i < 500; i++) {
        cr_assert(p->arcs[i - 1].from < p->arcs[i].from ||
                  (p->arcs[i - 1].from == p->arcs[i].from && p->arcs[i - 1].to < p->arcs[i].to));
    }
    arena_free(a);
}

static enum profd_status sum_bounded(struct arena *a, struct profile **p)
{
    ARENA_BOUNDARY(a, PROFD_NO_MEMORY);
    struct profile_sum *s = profile_sum_new(a);
    uint32_t map[] = {profile_sum_build(s, "bb")};
    profile_sum_add(s, &u.counts, map, 1, false);
    return profile_sum_finish(s, p, NULL);
}

Test(profile, a_small_arena_is_no_memory)
{
    upload_init(&u);
    upload_histogram(&u, 0, 0x1000, 0x9000, 0x2000, 100);
    upload_bin(&u, 5, 1);
    for (uint32_t i = 0; i < 500; i++) {
        upload_arc(&u, 0, i, 0, i, i);
    }
    int refused = 0;
    for (size_t limit = 1024; limit < 400000; limit += 1024) {
        struct arena *a = arena_new(limit);
        struct profile *p = NULL;
        enum profd_status status = sum_bounded(a, &p);
        cr_assert(status == PROFD_OK ? p != NULL : status == PROFD_NO_MEMORY && p == NULL);
        refused += status != PROFD_OK;
        arena_free(a);
    }
    cr_assert(refused > 0 && refused < 389);
}

static int compare_tens(const void *context, uint32_t a, uint32_t b)
{
    (void)context;
    return a / 10 < b / 10 ? -1 : a / 10 > b / 10;
}

Test(sort, is_stable_and_sorts)
{
    static struct sort_item items[2000], scratch[2000];
    static uint32_t list[2000], spare[2000];
    srand(5);
    for (int round = 0; round < 400; round++) {
        size_t n = (size_t)rand() % (round < 200 ? 60 : 2000);
        uint64_t mask = round % 3 == 0 ? 7 : round % 3 == 1 ? 0xff00ff : UINT64_MAX;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t key = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^ (uint64_t)rand();
            items[i] = (struct sort_item){key & mask, i};
            list[i] = (uint32_t)rand() % 500;
        }
        sort_radix(items, scratch, n);
        for (size_t i = 1; i < n; i++) {
            cr_assert(items[i - 1].key < items[i].key ||
                      (items[i - 1].key == items[i].key && items[i - 1].value < items[i].value));
        }
        uint64_t before = 0, after = 0;
        for (size_t i = 0; i < n; i++) {
            before += list[i] * (uint64_t)list[i];
        }
        sort_merge(list, spare, n, compare_tens, NULL);
        for (size_t i = 0; i < n; i++) {
            after += list[i] * (uint64_t)list[i];
            cr_assert(i == 0 || list[i - 1] / 10 <= list[i] / 10);
        }
        cr_assert_eq(before, after);
    }
}

Test(sort, double_keys_ascend)
{
    static const double values[] = {-1e300, -1.5, -1e-320, -0.0, 0.0, 5e-324, 1e-300, 0.1, 1, 1.0000000000000002,
                                    2,      1e300};
    for (size_t i = 1; i < sizeof values / sizeof *values; i++) {
        cr_assert_lt(sort_key_double(values[i - 1]), sort_key_double(values[i]));
    }
}
