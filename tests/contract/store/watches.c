/* Counts and verdicts of the watch list: replaced and removed by key, listed by key, and of verdicts a limited number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/store/fixture.h"

static void put_one(struct fixture *f, enum store_watch_kind kind, const char *key, int64_t changed,
                    const char *document)
{
    const struct store_watch_row row = {kind, key, changed, document};
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

static void expect_rows(struct fixture *f, enum store_watch_kind kind, size_t most, const char *text)
{
    struct listed l = {.most = most};
    OK(f, store_each_watch_row(f->r, kind, take_text, &l, &f->e));
    cr_assert_str_eq(l.text, text);
}

STORE_TEST(rows_of_the_watch_list)
{
    expect_rows(f, STORE_WATCH_COUNT, 10, "");
    put_one(f, STORE_WATCH_COUNT, "b", 1, "1");
    put_one(f, STORE_WATCH_VERDICT, "b", 2, "2");
    put_one(f, STORE_WATCH_COUNT, "c", 3, "3");
    put_one(f, STORE_WATCH_COUNT, "a\nx", 4, "4");
    expect_rows(f, STORE_WATCH_COUNT, 10, "a\nx@4=4 b@1=1 c@3=3 ");
    expect_rows(f, STORE_WATCH_VERDICT, 10, "b@2=2 ");
    expect_rows(f, STORE_WATCH_COUNT, 2, "a\nx@4=4 b@1=1 "); /* each ends it */
    put_one(f, STORE_WATCH_COUNT, "b", 5, "five");
    put_one(f, STORE_WATCH_COUNT, "c", 6, NULL);
    put_one(f, STORE_WATCH_VERDICT, "never", 7, NULL); /* the removal of nothing */
    fixture_reopen(f);
    expect_rows(f, STORE_WATCH_COUNT, 10, "a\nx@4=4 b@5=five ");
    expect_rows(f, STORE_WATCH_VERDICT, 10, "b@2=2 ");
}

/* Rows of one call are put in their order. */
STORE_TEST(several_rows_of_the_watch_list)
{
    char *longest = malloc(STORE_WATCH_DOCUMENT + 1);
    memset(longest, '7', STORE_WATCH_DOCUMENT);
    longest[STORE_WATCH_DOCUMENT] = '\0';
    const struct store_watch_row rows[] = {
        {STORE_WATCH_COUNT, "k", 1, longest},
        {STORE_WATCH_COUNT, "k", 2, NULL},
        {STORE_WATCH_VERDICT, "k", 3, "3"},
        {STORE_WATCH_VERDICT, "k", 4, "4"},
    };
    OK(f, store_put_watch_rows(f->w, rows, 4, &f->e));
    expect_rows(f, STORE_WATCH_COUNT, 10, "");
    expect_rows(f, STORE_WATCH_VERDICT, 10, "k@4=4 ");
    OK(f, store_put_watch_rows(f->w, rows, 0, &f->e));
    OK(f, store_put_watch_rows(f->w, rows, 1, &f->e));
    struct listed l = {.most = 10};
    OK(f, store_each_watch_row(f->r, STORE_WATCH_COUNT, take_text, &l, &f->e));
    cr_assert_eq(l.count, 1);
    free(longest);
}

struct range {
    size_t count;
    int64_t first, last;
};

static bool measure(void *context, const struct store_watch_row *row)
{
    struct range *r = context;
    r->first = r->count == 0 || row->changed < r->first ? row->changed : r->first;
    r->last = r->count == 0 || row->changed > r->last ? row->changed : r->last;
    r->count++;
    return true;
}

/* Of more verdicts those that changed last remain, whatever their keys are; counts have no limit. */
STORE_TEST(verdicts_are_limited)
{
    enum { BEYOND = 7, ALL = STORE_VERDICTS_MOST + BEYOND };
    static char keys[ALL][12];
    static struct store_watch_row rows[2 * ALL];
    for (unsigned i = 0; i < ALL; i++) {
        snprintf(keys[i], sizeof keys[i], "%u", i * 7919u % 100000u);
        rows[i] = (struct store_watch_row){STORE_WATCH_VERDICT, keys[i], 1000 + i, "0"};
        rows[ALL + i] = (struct store_watch_row){STORE_WATCH_COUNT, keys[i], 1, "0"};
    }
    OK(f, store_put_watch_rows(f->w, rows, ALL - BEYOND, &f->e));
    put_one(f, STORE_WATCH_VERDICT, keys[0], 1000000, "1"); /* the oldest is now the newest */
    OK(f, store_put_watch_rows(f->w, rows + ALL - BEYOND, BEYOND, &f->e));
    OK(f, store_put_watch_rows(f->w, rows + ALL, ALL, &f->e));
    struct range verdicts = {0}, counts = {0};
    OK(f, store_each_watch_row(f->r, STORE_WATCH_VERDICT, measure, &verdicts, &f->e));
    OK(f, store_each_watch_row(f->r, STORE_WATCH_COUNT, measure, &counts, &f->e));
    cr_assert(verdicts.count == STORE_VERDICTS_MOST && counts.count == ALL, "%zu, %zu", verdicts.count, counts.count);
    cr_assert(verdicts.first == 1000 + 1 + BEYOND && verdicts.last == 1000000, "%lld … %lld", (long long)verdicts.first,
              (long long)verdicts.last);
}
