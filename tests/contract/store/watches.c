/* Counters of the watch list: replaced and removed by key, listed by key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/store/fixture.h"

static void put_one(struct fixture *f, const char *key, int64_t changed, const char *document)
{
    const struct store_watch_row row = {key, changed, document};
    OK(f, store_put_watch_rows(f->w, &row, 1, &f->e));
}

struct listed {
    char text[400];
    size_t most, count;
};

static bool take_text(void *context, const struct store_watch_row *row)
{
    struct listed *l = context;
    const size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%s@%lld=%s ", row->key, (long long)row->changed, row->document);
    return ++l->count < l->most;
}

static void expect_rows(struct fixture *f, size_t most, const char *text)
{
    struct listed l = {.most = most};
    OK(f, store_each_watch_row(f->r, take_text, &l, &f->e));
    cr_assert_str_eq(l.text, text);
}

STORE_TEST(rows_of_the_watch_list)
{
    expect_rows(f, 10, "");
    put_one(f, "b", 1, "1");
    put_one(f, "c", 3, "3");
    put_one(f, "a\nx", 4, "4");
    expect_rows(f, 10, "a\nx@4=4 b@1=1 c@3=3 ");
    expect_rows(f, 2, "a\nx@4=4 b@1=1 "); /* each ends it */
    put_one(f, "b", 5, "five");
    put_one(f, "c", 6, NULL);
    put_one(f, "never", 7, NULL); /* the removal of nothing */
    fixture_reopen(f);
    expect_rows(f, 10, "a\nx@4=4 b@5=five ");
}

/* Rows of one call are put in their order. */
STORE_TEST(several_rows_of_the_watch_list)
{
    char *longest = malloc(STORE_WATCH_DOCUMENT + 1);
    memset(longest, '7', STORE_WATCH_DOCUMENT);
    longest[STORE_WATCH_DOCUMENT] = '\0';
    const struct store_watch_row rows[] = {
        {"k", 1, longest},
        {"k", 2, NULL},
        {"k", 3, "3"},
        {"k", 4, "4"},
    };
    OK(f, store_put_watch_rows(f->w, rows, 4, &f->e));
    expect_rows(f, 10, "k@4=4 ");
    OK(f, store_put_watch_rows(f->w, rows, 0, &f->e));
    OK(f, store_put_watch_rows(f->w, rows, 1, &f->e));
    struct listed l = {.most = 10};
    OK(f, store_each_watch_row(f->r, take_text, &l, &f->e));
    cr_assert_eq(l.count, 1);
    free(longest);
}
