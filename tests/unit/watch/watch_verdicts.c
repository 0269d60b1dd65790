/* Verdicts that are stored: of each watch a limited number remains, the oldest go first. */
#include "watch/watch_verdicts.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define BEYOND 9u
#define ALL (WATCH_VERDICTS_MOST + BEYOND)

static struct profd_error error;

static void put(struct store *s, const char *watch, unsigned n, int64_t decided)
{
    char key[80], document[300];
    snprintf(key, sizeof key, "%s\nprogram\n%u\nf", watch, n * 7919u % 1000u);
    snprintf(document, sizeof document,
             "{\"watch\":\"%s\",\"program\":\"program\",\"function\":\"f\",\"verdict\":\"%s\",\"decided\":%lld}", watch,
             decided != 0 ? "no-difference" : "waiting", (long long)decided);
    const struct store_watch_row row = {STORE_WATCH_VERDICT, key, decided, document};
    cr_assert_eq(store_put_watch_rows(s, &row, 1, &error), PROFD_OK);
}

struct seen {
    size_t a, b, waiting;
    int64_t first;
};

static bool see(void *context, const struct store_watch_row *row)
{
    struct seen *seen = context;
    const bool a = strncmp(row->key, "a=1\n", 4) == 0, waits = strstr(row->document, "\"waiting\"") != NULL;
    seen->a += a;
    seen->b += !a;
    seen->waiting += waits;
    seen->first = a && !waits && row->changed < seen->first ? row->changed : seen->first;
    return true;
}

static struct seen look(struct store *s, const struct watch *w)
{
    const struct watch_ask ask = {.store = s, .now = 5000};
    const struct watch_judging judging = {"self", 0.02};
    struct arena *a = arena_new(0);
    struct watch_rows rows;
    struct seen seen = {.first = INT64_MAX};
    cr_assert_eq(watch_rows_read(&rows, a, s, &error), PROFD_OK);
    cr_assert_eq(watch_verdicts_look(&ask, w, &judging, &rows, &error), PROFD_OK, "%s", error.sentence);
    cr_assert_eq(store_put_watch_rows(s, rows.changed, rows.count, &error), PROFD_OK);
    watch_rows_done(&rows);
    arena_free(a);
    cr_assert_eq(store_each_watch_row(s, STORE_WATCH_VERDICT, see, &seen, &error), PROFD_OK);
    return seen;
}

Test(watch_verdicts, the_oldest_of_a_watch_go)
{
    const struct watch w = {
        .name = "a=1", .label_count = 1, .function_count = 1, .labels = {"a=1"}, .functions = {"f"}};
    struct store *s;
    cr_assert_eq(store_memory_open(&s, &error), PROFD_OK);
    for (unsigned i = 0; i < WATCH_VERDICTS_MOST; i++) {
        put(s, "a=1", i, i == 0 ? 0 : 1000 + i);
        put(s, "b=1", i, 1);
    }
    struct seen seen = look(s, &w);
    cr_assert(seen.a == WATCH_VERDICTS_MOST && seen.b == WATCH_VERDICTS_MOST, "%zu, %zu", seen.a, seen.b);
    for (unsigned i = WATCH_VERDICTS_MOST; i < ALL; i++) {
        put(s, "a=1", i, 1000 + i);
        put(s, "b=1", i, 1);
    }
    seen = look(s, &w);
    cr_assert(seen.a == WATCH_VERDICTS_MOST && seen.b == ALL, "of the other watch nothing: %zu, %zu", seen.a, seen.b);
    cr_assert(seen.first == 1000 + 1 + BEYOND, "%lld", (long long)seen.first);
    cr_assert_eq(seen.waiting, 1, "it waits, and is older than all");
    store_close(s);
}
