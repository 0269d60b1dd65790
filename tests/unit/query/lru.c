/* Protects: both caches of queries stay within their limits, and what was used last stays longest. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "query/query_internal.h"

struct thing {
    struct lru_entry lru;
    int number;
};

static bool put(struct lru *l, int number)
{
    struct thing *t = calloc(1, sizeof *t);
    t->number = number;
    bool kept = lru_put(l, &number, sizeof number, t, 100 - sizeof number);
    if (!kept) {
        free(t);
    }
    return kept;
}

static int find(struct lru *l, int number)
{
    const struct thing *t = lru_find(l, &number, sizeof number);
    return t != NULL ? t->number : -1;
}

Test(lru, the_least_recently_used_goes_first)
{
    static const struct query_lock none;
    struct lru l;
    int first = 0;
    lru_init(&l, 1000, 5, &none);
    for (int i = 0; i < 5; i++) {
        cr_assert(put(&l, i));
    }
    lru_use(&l, lru_find(&l, &first, sizeof first));
    cr_assert(put(&l, 5));
    cr_assert_eq(find(&l, 0), 0);
    cr_assert_eq(find(&l, 1), -1, "at most 5 entries");
    cr_assert_eq(l.entries, 5);
    cr_assert_eq(l.bytes, 500);
    lru_remove(&l, lru_find(&l, &first, sizeof first));
    cr_assert_eq(find(&l, 0), -1);
    cr_assert_eq(l.bytes, 400);
    lru_clear(&l);
    lru_init(&l, 250, 5, &none);
    for (int i = 0; i < 5; i++) {
        cr_assert(put(&l, i));
        cr_assert_leq(l.bytes, 250);
    }
    cr_assert_eq(find(&l, 4), 4);
    cr_assert_eq(find(&l, 3), 3);
    cr_assert_eq(find(&l, 2), -1);
    l.limit = 99;
    cr_assert(!put(&l, 9), "larger than all that may be held");
    lru_clear(&l);
}
