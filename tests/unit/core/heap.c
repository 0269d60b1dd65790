/* core/heap and core/compare: what comes out of a heap ascends, whatever order it went in; a search finds the first row
 * that is not below its key. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "proto/sort.h"

#define MOST 300u

static bool before(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *keys = context;
    return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
}

/* Pushes and pops in turn, compared with a search through everything. */
Test(core_heap, the_first_is_on_top)
{
    srand(1);
    for (unsigned round = 0; round < 200; round++) {
        uint32_t keys[MOST], items[MOST], n = 0;
        bool in[MOST] = {false};
        struct heap h = {before, keys, items, 0};
        while (n < MOST || h.count > 0) {
            if (n < MOST && (h.count == 0 || rand() % 3 > 0)) {
                keys[n] = (uint32_t)rand() % 50;
                in[n] = true;
                heap_push(&h, n++);
                continue;
            }
            uint32_t first = MOST;
            for (uint32_t i = 0; i < n; i++) {
                first = in[i] && (first == MOST || before(keys, i, first)) ? i : first;
            }
            cr_assert_eq(h.items[0], first);
            cr_assert_eq(heap_pop(&h), first);
            in[first] = false;
        }
    }
}

Test(core_compare, numbers_and_pairs)
{
    cr_assert(compare_u64(1, 2) < 0 && compare_u64(UINT64_MAX, 2) > 0 && compare_u64(7, 7) == 0);
    cr_assert(compare_pairs(1, 2, 9, 0) < 0 && compare_pairs(2, 2, 9, 0) > 0 && compare_pairs(2, 2, 9, 9) == 0);
}

Test(core_compare, the_first_row_not_below)
{
    const struct {
        uint64_t key;
        uint32_t other;
    } rows[] = {{1, 0}, {4, 0}, {4, 1}, {UINT64_MAX, 0}};
    const uint64_t keys[] = {0, 1, 2, 4, 5, UINT64_MAX};
    const uint32_t found[] = {0, 0, 1, 1, 3, 3};
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
        cr_assert_eq(compare_find_first(rows, 4, sizeof *rows, keys[i]), found[i]);
    }
    cr_assert_eq(compare_find_first(rows, 3, sizeof *rows, 5), 3, "none");
    cr_assert_eq(compare_find_first(NULL, 0, sizeof *rows, 5), 0);
}
