/* Processes by random group: they add up, and their encoding keeps every number. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/spread.h"

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> (1 + (state >> 58) % 63);
}

static struct random_groups draw_groups(void)
{
    struct random_groups g;
    for (unsigned i = 0; i < RANDOM_GROUPS; i++) {
        g.of[i] = draw();
    }
    g.unknown = draw();
    return g;
}

Test(core_random_groups, what_is_encoded_is_decoded)
{
    for (int i = 0; i < 2000; i++) {
        const struct random_groups g = draw_groups();
        struct random_groups back = draw_groups();
        uint8_t bytes[RANDOM_GROUPS_BYTES + 1];
        size_t n = random_groups_encode(&g, bytes);
        cr_assert_leq(n, RANDOM_GROUPS_BYTES);
        cr_assert(random_groups_decode(bytes, n, &back));
        cr_assert_eq(memcmp(&g, &back, sizeof g), 0);
        bytes[n] = 0;
        cr_assert(!random_groups_decode(bytes, n - 1, &back) && !random_groups_decode(bytes, n + 1, &back));
        cr_assert_eq(memcmp(&g, &back, sizeof g), 0, "untouched");
    }
    uint8_t large[RANDOM_GROUPS_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    struct random_groups g;
    cr_assert(!random_groups_decode(large, 10 + RANDOM_GROUPS, &g), "more than 2^63-1");
}

Test(core_random_groups, adding_is_in_any_order)
{
    for (int i = 0; i < 2000; i++) {
        const struct random_groups a = draw_groups(), b = draw_groups(), c = draw_groups();
        struct random_groups left = a, right = c;
        random_groups_add(&left, &b);
        random_groups_add(&left, &c);
        random_groups_add(&right, &b);
        random_groups_add(&right, &a);
        cr_assert_eq(memcmp(&left, &right, sizeof left), 0);
        cr_assert_leq(random_groups_known(&left), (uint64_t)INT64_MAX);
    }
    const struct random_groups one = {.of = {1, 2, [15] = 4}, .unknown = 7};
    cr_assert_eq(random_groups_known(&one), 7);
}
