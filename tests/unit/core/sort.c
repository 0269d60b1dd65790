/* Sorts: by radix, by merging, and keys of doubles. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "proto/sort.h"

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
