/* Live processes: their snapshots, and which differences are taken. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_backup.h"
#include "tests/contract/store_harvest_fixture.h"

STORE_TEST(stale_difference_changes_nothing)
{
    struct made_harvest x[3];
    struct store_harvest list[3];
    enum store_harvest_outcome outcomes[3];
    uint64_t bases[] = {0, 1, 3, UINT64_MAX};
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 1, 1, START, 10);
    struct store_totals before = totals(f);
    uint64_t epoch = epoch_of(f, everybody, "aa01");
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        make_harvest(&x[0], 7, 1, bases[i], START + 1, 99);
        x[0].h.ended = true;
        cr_assert_eq(harvest(f, &x[0]), STORE_STALE, "base %llu", (unsigned long long)bases[i]);
        make_harvest(&x[0], 7, 1, bases[i], START + 1, 0);
        x[0].h.ended = true;
        cr_assert_eq(harvest(f, &x[0]), STORE_STALE, "nothing new, base %llu", (unsigned long long)bases[i]);
    }
    make_harvest(&x[0], 7, 9, 1, START, 10);
    cr_assert_eq(harvest(f, &x[0]), STORE_STALE, "never seen");
    cr_assert_str_eq(durable(f, 7, 1), "2 7/1/2");
    cr_assert_str_eq(durable(f, 7, 9), "0");
    cr_assert_str_eq(list_living(f), "7/1 ");
    struct store_totals t = totals(f);
    cr_assert(t.ticks == before.ticks && t.uploads == before.uploads && t.raw_bytes == before.raw_bytes);
    cr_assert_eq(epoch_of(f, everybody, "aa01"), epoch);
    /* Its neighbours in the list are none the worse for it. */
    make_harvest(&x[0], 7, 2, 0, START, 10);
    make_harvest(&x[1], 7, 1, 0, START, 10);
    make_harvest(&x[2], 7, 3, 0, START, 10);
    for (int i = 0; i < 3; i++)
        list[i] = x[i].h;
    OK(f, store_put_harvests(f->w, list, 3, outcomes, &f->e));
    cr_assert(outcomes[0] == STORE_HARVESTED && outcomes[1] == STORE_STALE && outcomes[2] == STORE_HARVESTED);
    for (int i = 0; i < 3; i++)
        free_harvest(&x[i]);
    cr_assert_eq(totals(f).uploads, 3);
    expect_clean(f);
}

STORE_TEST(ended_and_reopened)
{
    struct made_harvest x;
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 2, 0, START, 10);
    cr_assert_str_eq(list_living(f), "7/1 7/2 ");
    make_harvest(&x, 7, 1, 1, START + 1, 20);
    x.h.ended = true;
    cr_assert_eq(harvest(f, &x), STORE_HARVESTED);
    cr_assert_str_eq(list_living(f), "7/2 ");
    cr_assert_str_eq(durable(f, 7, 1), "2 7/1/2");
    make_harvest(&x, 7, 2, 1, START + 1, 0);
    x.h.ended = true;
    cr_assert_eq(harvest(f, &x), STORE_HARVESTED, "an end without news");
    cr_assert_str_eq(list_living(f), "");
    harvest_one(f, 7, 1, 2, START + 2, 30); /* it was not dead */
    cr_assert_str_eq(list_living(f), "7/1 ");
    cr_assert_eq(look_window(f, 0, 0).uploads, 2);
    expect_clean(f);
}

static bool stop_at_once(void *context, const struct store_instance *i)
{
    (void)i;
    ++*(int *)context;
    return false;
}

STORE_TEST(each_stops_when_told)
{
    int calls = 0;
    for (unsigned i = 1; i <= 5; i++)
        harvest_one(f, 7, i, 0, START, 10);
    OK(f, store_each_instance(f->r, stop_at_once, &calls, &f->e));
    cr_assert_eq(calls, 1);
    harvest_one(f, 7, 1, 1, START, 10);
    cr_assert_str_eq(list_living(f), "7/1 7/2 7/3 7/4 7/5 ");
}

STORE_TEST(two_users_with_the_same_instance)
{
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 8, 1, 0, START, 20);
    harvest_one(f, 7, 1, 1, START + 1, 30);
    cr_assert_str_eq(durable(f, 7, 1), "2 7/1/2");
    cr_assert_str_eq(durable(f, 8, 1), "1 8/1/1");
    cr_assert_str_eq(list_living(f), "7/1 8/1 ");
    struct store_filter filter = {.build_id = full_id("aa01")};
    cr_assert_eq(look(f, only(7), &filter).ticks, 42);
    cr_assert_eq(look(f, only(8), &filter).ticks, 21);
    expect_clean(f);
}

STORE_TEST(nothing_new_renews_the_snapshot_only)
{
    harvest_one(f, 7, 1, 0, START, 0); /* the very first */
    cr_assert_str_eq(durable(f, 7, 1), "1 7/1/1");
    cr_assert_str_eq(list_living(f), "7/1 ");
    cr_assert_str_eq(list_builds(f, everybody, "", 9), "");
    harvest_one(f, 7, 1, 1, START, 10);
    struct store_totals before = totals(f);
    uint64_t epoch = epoch_of(f, everybody, "aa01");
    for (unsigned i = 2; i < 5; i++)
        harvest_one(f, 7, 1, i, START + i * HOUR, 0);
    cr_assert_str_eq(durable(f, 7, 1), "5 7/1/5");
    cr_assert_eq(epoch_of(f, everybody, "aa01"), epoch);
    cr_assert_eq(totals(f).raw_bytes, before.raw_bytes);
    cr_assert_eq(totals(f).uploads, 1);
    harvest_one(f, 7, 1, 5, START + 1, 20);
    cr_assert_eq(look_window(f, 0, 0).rows, 1, "the upload of the hour is still known");
    expect_clean(f);
}

STORE_TEST(ended_are_forgotten_after_a_day_the_living_never)
{
    struct made_harvest x;
    harvest_one(f, 7, 1, 0, START, 10);
    for (unsigned i = 2; i <= 4; i++) {
        make_harvest(&x, 7, i, 0, START + i * HOUR, 10);
        x.h.ended = true;
        cr_assert_eq(harvest(f, &x), STORE_HARVESTED);
    }
    int64_t now = START + 3 * HOUR + DAY;
    OK(f, store_forget_ids(f->w, now - 30 * DAY, &f->e));
    cr_assert_str_eq(durable(f, 7, 2), "0");
    cr_assert_str_eq(durable(f, 7, 3), "1 7/3/1", "a day ago to the nanosecond");
    OK(f, store_forget_ids(f->w, now + 1 - 30 * DAY, &f->e));
    cr_assert_str_eq(durable(f, 7, 3), "0");
    cr_assert_str_eq(durable(f, 7, 4), "1 7/4/1");
    OK(f, store_forget_ids(f->w, now + 300 * DAY, &f->e));
    cr_assert_str_eq(durable(f, 7, 4), "0");
    cr_assert_str_eq(durable(f, 7, 1), "1 7/1/1");
    cr_assert_str_eq(list_living(f), "7/1 ");
    make_harvest(&x, 7, 4, 1, START + 5 * HOUR, 10);
    cr_assert_eq(harvest(f, &x), STORE_STALE, "nobody remembers what it was");
    cr_assert_eq(totals(f).uploads, 4, "what was counted stays");
    expect_clean(f);
}

STORE_TEST(thousand_processes_at_once)
{
    enum { MANY = 1000 };
    struct made_harvest *x = calloc(MANY, sizeof *x);
    struct store_harvest *list = calloc(MANY, sizeof *list);
    enum store_harvest_outcome *outcomes = calloc(MANY, sizeof *outcomes);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            make_harvest(&x[i], 7, i, round, START + round * MINUTE, 10 + i);
            list[i] = x[i].h;
        }
        OK(f, store_put_harvests(f->w, list, MANY, outcomes, &f->e));
        for (unsigned i = 0; i < MANY; i++) {
            cr_assert_eq(outcomes[i], STORE_HARVESTED);
            free_harvest(&x[i]);
        }
    }
    cr_assert_eq(look_window(f, 0, 0).rows, MANY);
    cr_assert_eq(look_window(f, 0, 0).ticks, 3 * (10 * MANY + MANY * (MANY - 1) / 2 + MANY));
    expect_clean(f);
    free(x);
    free(list);
    free(outcomes);
}

STORE_TEST(lists_that_break_the_rules_are_refused_whole)
{
    struct made_harvest x[3];
    struct store_harvest list[3];
    enum store_harvest_outcome outcomes[3];
    for (unsigned i = 0; i < 3; i++) {
        make_harvest(&x[i], 7, i == 2 ? 0 : i, 0, START, 10);
        list[i] = x[i].h;
    }
    FAILS(f, PROFD_INTERNAL, store_put_harvests(f->w, list, 3, outcomes, &f->e));
    cr_assert(strstr(f->e.sentence, "harvest 2"), "%s", f->e.sentence);
    list[1].upload.program = 2;
    FAILS(f, PROFD_INTERNAL, store_put_harvests(f->w, list, 2, outcomes, &f->e));
    list[1].upload.program = 0;
    list[1].upload.group = 16;
    FAILS(f, PROFD_INTERNAL, store_put_harvests(f->w, list, 2, outcomes, &f->e));
    cr_assert_eq(totals(f).uploads, 0);
    cr_assert_str_eq(list_living(f), "");
    OK(f, store_put_harvests(f->w, list, 0, outcomes, &f->e));
    for (unsigned i = 0; i < 3; i++)
        free_harvest(&x[i]);
    /* Counts that are none are found out where they are added to others; then nothing at all was done. */
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 2, 0, START, 10);
    make_harvest(&x[0], 7, 1, 1, START, 10);
    make_harvest(&x[1], 7, 2, 1, START, 10);
    x[1].h.upload.counts_size--;
    list[0] = x[0].h;
    list[1] = x[1].h;
    FAILS(f, PROFD_INTERNAL, store_put_harvests(f->w, list, 2, outcomes, &f->e));
    cr_assert_str_eq(durable(f, 7, 1), "1 7/1/1");
    cr_assert_eq(totals(f).ticks, 22);
    expect_clean(f);
    free_harvest(&x[0]);
    free_harvest(&x[1]);
}

STORE_TEST(harvests_survive_a_new_start)
{
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 1, 1, START + 1, 20);
    fixture_reopen(f);
    cr_assert_str_eq(durable(f, 7, 1), "2 7/1/2");
    harvest_one(f, 7, 1, 2, START + 2, 30);
    cr_assert_eq(look_window(f, 0, 0).rows, 1);
    cr_assert_eq(look_window(f, 0, 0).ticks, 63);
    fixture_reopen(f);
    cr_assert_str_eq(list_living(f), "7/1 ");
    expect_clean(f);
}

/* What a copy holds is one moment: the process goes on from its snapshot. */
Test(store_sqlite, backup_has_row_and_snapshot)
{
    struct fixture f, g;
    struct store_backup *b;
    uint64_t left = 1;
    char path[128];
    fixture_open(&f, true);
    fixture_open(&g, true);
    harvest_one(&f, 7, 1, 0, START, 10);
    snprintf(path, sizeof path, "%s/copy.db", g.directory);
    OK(&f, store_backup_begin(f.w, path, &b, &f.e));
    harvest_one(&f, 7, 1, 1, START + 1, 20);
    for (int i = 0; left > 0 && i < 10000; i++)
        OK(&f, store_backup_step(b, 1 << 20, &left, &f.e));
    store_backup_end(b);
    harvest_one(&f, 7, 1, 2, START + 2, 30);
    store_close(g.r);
    store_close(g.w);
    OK(&g, store_sqlite_open_writer(path, &g.w, &g.e));
    OK(&g, store_sqlite_open_reader(path, &g.r, &g.e));
    cr_assert_str_eq(durable(&g, 7, 1), "2 7/1/2");
    cr_assert_eq(look_window(&g, 0, 0).ticks, 32);
    harvest_one(&g, 7, 1, 2, START + 2, 30);
    cr_assert_eq(look_window(&g, 0, 0).ticks, 63);
    expect_clean(&g);
    fixture_close(&f);
    fixture_close(&g);
}
