/* Live processes: their snapshots, and which differences are taken. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "tests/contract/store/harvest_fixture.h"

STORE_TEST(stale_difference_changes_nothing)
{
    struct made_harvest x[3];
    struct store_upload list[3];
    enum store_outcome outcomes[3];
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
    for (int i = 0; i < 3; i++) {
        list[i] = x[i].h;
    }
    OK(f, store_put_uploads(f->w, list, 3, outcomes, &f->e));
    cr_assert(outcomes[0] == STORE_STORED && outcomes[1] == STORE_STALE && outcomes[2] == STORE_STORED);
    for (int i = 0; i < 3; i++) {
        free_harvest(&x[i]);
    }
    cr_assert_eq(totals(f).uploads, 3);
    expect_clean(f);
}

static struct store_living unread(struct fixture *f, struct store_scope scope, const char *build, int64_t until)
{
    const struct store_filter filter = {.build_id = build ? full_id(build) : NULL, .until = until};
    struct store_living out;
    OK(f, store_get_living(f->r, STORE_UNREAD, &scope, &filter, &out, &f->e));
    return out;
}

static struct store_living read_in(struct fixture *f, const char *build, int64_t since, int64_t until)
{
    const struct store_filter filter = {.build_id = full_id(build), .since = since, .until = until};
    struct store_living out;
    OK(f, store_get_living(f->r, STORE_READ, &everybody, &filter, &out, &f->e));
    return out;
}

static void begin_run(struct fixture *f, uint64_t run)
{
    store_set_run(f->w, run);
    store_set_run(f->r, run);
}

STORE_TEST(unread_in_a_later_run)
{
    struct made_harvest x;
    const struct store_scope eight = {.uid = 8};
    harvest_one(f, 7, 1, 0, START, 10);
    cr_assert_eq(unread(f, everybody, NULL, 0).processes, 0, "a handle without a run tells of nothing");
    begin_run(f, 5);
    harvest_one(f, 7, 2, 0, START + 1, 10);
    harvest_one(f, 7, 3, 0, START + 2, 10);
    cr_assert_eq(unread(f, everybody, NULL, 0).processes, 1, "only the one of no run");
    begin_run(f, 3);
    struct store_living u = unread(f, everybody, "aa01", 0);
    cr_assert(u.processes == 3 && u.earliest == START, "%llu since %lld", (unsigned long long)u.processes,
              (long long)u.earliest);
    cr_assert_eq(unread(f, everybody, "ffff", 0).processes, 0, "another build");
    cr_assert_eq(unread(f, eight, "aa01", 0).processes, 0, "another user");
    cr_assert_eq(unread(f, everybody, "aa01", START + 1).processes, 1, "only what could have counted before");
    make_harvest(&x, 7, 1, 1, START + 3, 0);
    cr_assert_eq(harvest(f, &x), STORE_STORED, "read again, nothing new");
    u = unread(f, everybody, "aa01", 0);
    cr_assert(u.processes == 2 && u.earliest == START + 1);
    make_harvest(&x, 7, 2, 1, START + 3, 0);
    x.h.ended = true;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    cr_assert_eq(unread(f, everybody, "aa01", 0).processes, 1, "one that has ended is expected to say nothing more");
    begin_run(f, 5);
    cr_assert_eq(unread(f, everybody, "aa01", 0).processes, 1, "3 was read in run 5, 1 in run 3");
    expect_clean(f);
}

STORE_TEST(read_in_this_run)
{
    struct made_harvest x;
    begin_run(f, 5);
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 2, 0, START + 4, 10);
    struct store_living l = read_in(f, "aa01", 0, 0);
    cr_assert(l.processes == 2 && l.earliest == START && l.latest == START + 4, "%llu of %lld to %lld",
              (unsigned long long)l.processes, (long long)l.earliest, (long long)l.latest);
    cr_assert_eq(read_in(f, "ffff", 0, 0).processes, 0, "another build");
    l = read_in(f, "aa01", 0, START + 4);
    cr_assert(l.processes == 1 && l.latest == START, "until is exclusive");
    l = read_in(f, "aa01", START + 4, 0);
    cr_assert(l.processes == 1 && l.earliest == START + 4, "since is inclusive");
    begin_run(f, 6);
    l = read_in(f, "aa01", 0, 0);
    cr_assert(l.processes == 0 && l.latest == 0, "a later run has not read them");
    make_harvest(&x, 7, 1, 1, START + 9, 0);
    uint64_t epoch = epoch_of(f, everybody, "aa01");
    cr_assert_eq(harvest(f, &x), STORE_STORED, "read again, nothing new");
    l = read_in(f, "aa01", 0, 0);
    cr_assert(l.processes == 1 && l.latest == START + 9);
    cr_assert_gt(epoch_of(f, everybody, "aa01"), epoch, "what reports say of it has changed");
    epoch = epoch_of(f, (struct store_scope){.uid = 7}, "aa01");
    uint64_t other = epoch_of(f, everybody, "ffff");
    make_harvest(&x, 7, 1, 2, START + 10, 0);
    x.h.ended = true;
    cr_assert_eq(harvest(f, &x), STORE_STORED, "an end without news");
    cr_assert_eq(read_in(f, "aa01", 0, 0).processes, 0, "is not live");
    cr_assert_gt(epoch_of(f, (struct store_scope){.uid = 7}, "aa01"), epoch, "nor is that in a report of before");
    cr_assert_eq(epoch_of(f, everybody, "ffff"), other, "reports on other builds are as before");
    expect_clean(f);
}

/* A harvest that speaks of children and of a parent. */
static void harvest_kin(struct fixture *f, unsigned process, uint64_t base, int64_t end, uint64_t children,
                        unsigned parent)
{
    struct made_harvest x, of;
    make_harvest(&x, 7, process, base, end, base == 0 ? 10 : 0);
    make_harvest(&of, 7, parent, 0, end, 0);
    x.h.children = children;
    x.h.parents = of.h.instance;
    x.h.parent_count = parent ? 1 : 0;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
}

STORE_TEST(children_are_missing_until_they_are_read)
{
    begin_run(f, 5);
    harvest_kin(f, 1, 0, START, 0, 0);
    harvest_kin(f, 1, 1, START + 10, 2, 0);
    struct store_living u = unread(f, everybody, "aa01", 0);
    cr_assert(u.processes == 2 && u.earliest == START, "%llu since %lld", (unsigned long long)u.processes,
              (long long)u.earliest);
    cr_assert_eq(unread(f, everybody, "aa01", START).processes, 0, "born after that");
    harvest_kin(f, 2, 0, START + 20, 0, 1);
    harvest_kin(f, 2, 1, START + 21, 0, 0);
    cr_assert_eq(unread(f, everybody, "aa01", 0).processes, 1, "one was read");
    harvest_kin(f, 3, 0, START + 30, 0, 1);
    cr_assert_eq(unread(f, everybody, "aa01", 0).processes, 0, "the other");
    harvest_kin(f, 4, 0, START + 31, 0, 1);
    cr_assert_eq(unread(f, everybody, "aa01", 0).processes, 0, "read before its parent says that it was born");
    harvest_kin(f, 1, 2, START + 40, 2, 0);
    u = unread(f, everybody, "aa01", 0);
    cr_assert(u.processes == 1 && u.earliest == START + 10, "%llu since %lld", (unsigned long long)u.processes,
              (long long)u.earliest);
    harvest_kin(f, 6, 0, START + 50, 0, 5);
    harvest_kin(f, 5, 0, START + 51, 1, 0);
    cr_assert_eq(unread(f, everybody, "aa01", 0).processes, 1, "a child that was read before its parent was known");
    expect_clean(f);
}

STORE_TEST(missing_children_outlive_their_parent)
{
    struct made_harvest x;
    begin_run(f, 5);
    harvest_kin(f, 1, 0, START, 1, 0);
    make_harvest(&x, 7, 1, 1, START + 1, 0);
    x.h.ended = true;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    cr_assert_eq(unread(f, everybody, "aa01", 0).processes, 1, "although the parent has ended");
    cr_assert_str_eq(list_living(f), "7/1 ");
    OK(f, store_remove_ids(f->w, START + 40 * DAY, &f->e));
    cr_assert_str_eq(durable(f, 7, 1), "2 7/1/2");
    make_harvest(&x, 7, 1, 2, START + 2, 0);
    x.h.ended = x.h.told = true;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    cr_assert_eq(unread(f, everybody, "aa01", 0).processes, 0, "a harvest told of it");
    cr_assert_str_eq(list_living(f), "");
    OK(f, store_remove_ids(f->w, START + 40 * DAY, &f->e));
    cr_assert_str_eq(durable(f, 7, 1), "0");
    expect_clean(f);
}

static bool note_user(void *context, const struct store_instance *i)
{
    *(unsigned *)context += i->uid;
    return true;
}

STORE_TEST(namesakes_of_all_users)
{
    struct made_harvest x;
    unsigned users = 0;
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 80, 1, 0, START, 10);
    harvest_one(f, 900, 2, 0, START, 10);
    make_harvest(&x, 80, 1, 1, START + 1, 0);
    x.h.ended = true;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    OK(f, store_each_namesake(f->r, x.h.instance, note_user, &users, &f->e));
    cr_assert_eq(users, 87, "ended or not");
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
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    cr_assert_str_eq(list_living(f), "7/2 ");
    cr_assert_str_eq(durable(f, 7, 1), "2 7/1/2");
    make_harvest(&x, 7, 2, 1, START + 1, 0);
    x.h.ended = true;
    cr_assert_eq(harvest(f, &x), STORE_STORED, "an end without news");
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
    for (unsigned i = 1; i <= 5; i++) {
        harvest_one(f, 7, i, 0, START, 10);
    }
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

STORE_TEST(nothing_new_adds_nothing)
{
    harvest_one(f, 7, 1, 0, START, 0); /* the very first */
    cr_assert_str_eq(durable(f, 7, 1), "1 7/1/1");
    cr_assert_str_eq(list_living(f), "7/1 ");
    cr_assert_str_eq(list_builds(f, everybody, "", 9), "");
    harvest_one(f, 7, 1, 1, START, 10);
    struct store_totals before = totals(f);
    uint64_t epoch = epoch_of(f, everybody, "aa01");
    for (unsigned i = 2; i < 5; i++) {
        harvest_one(f, 7, 1, i, START + i * HOUR, 0);
    }
    cr_assert_str_eq(durable(f, 7, 1), "5 7/1/5");
    cr_assert_gt(epoch_of(f, everybody, "aa01"), epoch, "reports say when it was read last");
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
        cr_assert_eq(harvest(f, &x), STORE_STORED);
    }
    int64_t now = START + 3 * HOUR + DAY;
    OK(f, store_remove_ids(f->w, now - 30 * DAY, &f->e));
    cr_assert_str_eq(durable(f, 7, 2), "0");
    cr_assert_str_eq(durable(f, 7, 3), "1 7/3/1", "a day ago to the nanosecond");
    OK(f, store_remove_ids(f->w, now + 1 - 30 * DAY, &f->e));
    cr_assert_str_eq(durable(f, 7, 3), "0");
    cr_assert_str_eq(durable(f, 7, 4), "1 7/4/1");
    OK(f, store_remove_ids(f->w, now + 300 * DAY, &f->e));
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
    struct store_upload *list = calloc(MANY, sizeof *list);
    enum store_outcome *outcomes = calloc(MANY, sizeof *outcomes);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            make_harvest(&x[i], 7, i, round, START + round * (MINUTE / 6), 10 + i);
            list[i] = x[i].h;
        }
        OK(f, store_put_uploads(f->w, list, MANY, outcomes, &f->e));
        for (unsigned i = 0; i < MANY; i++) {
            cr_assert_eq(outcomes[i], STORE_STORED);
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

STORE_TEST(of_an_instance_that_is_listed_twice_the_second_is_stale)
{
    struct made_harvest x[2];
    struct store_upload list[2];
    enum store_outcome outcomes[2];
    for (unsigned i = 0; i < 2; i++) {
        make_harvest(&x[i], 7, 1, 0, START, 10);
        list[i] = x[i].h;
    }
    OK(f, store_put_uploads(f->w, list, 2, outcomes, &f->e));
    cr_assert(outcomes[0] == STORE_STORED && outcomes[1] == STORE_STALE);
    cr_assert_eq(look_window(f, 0, 0).uploads, 1);
    for (unsigned i = 0; i < 2; i++) {
        free_harvest(&x[i]);
    }
    expect_clean(f);
}

STORE_TEST(lists_that_break_the_rules_are_refused_whole)
{
    struct made_harvest x[3];
    struct store_upload list[3];
    enum store_outcome outcomes[3];
    for (unsigned i = 0; i < 3; i++) {
        make_harvest(&x[i], 7, i, 0, START, 10);
        list[i] = x[i].h;
    }
    list[1].program = 2;
    FAILS(f, PROFD_INTERNAL, store_put_uploads(f->w, list, 2, outcomes, &f->e));
    list[1].program = 0;
    list[1].group = 16;
    FAILS(f, PROFD_INTERNAL, store_put_uploads(f->w, list, 2, outcomes, &f->e));
    cr_assert_eq(totals(f).uploads, 0);
    cr_assert_str_eq(list_living(f), "");
    OK(f, store_put_uploads(f->w, list, 0, outcomes, &f->e));
    for (unsigned i = 0; i < 3; i++) {
        free_harvest(&x[i]);
    }
    /* Counts that are none are found out where they are added to others; then nothing at all was done. */
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 2, 0, START, 10);
    make_harvest(&x[0], 7, 1, 1, START, 10);
    make_harvest(&x[1], 7, 2, 1, START, 10);
    x[1].h.counts_size--;
    list[0] = x[0].h;
    list[1] = x[1].h;
    FAILS(f, PROFD_INTERNAL, store_put_uploads(f->w, list, 2, outcomes, &f->e));
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
    fixture_open(&f);
    fixture_open(&g);
    harvest_one(&f, 7, 1, 0, START, 10);
    snprintf(path, sizeof path, "%s/copy.db", g.directory);
    OK(&f, store_backup_begin(f.w, path, &b, &f.e));
    harvest_one(&f, 7, 1, 1, START + 1, 20);
    for (int i = 0; left > 0 && i < 10000; i++) {
        OK(&f, store_backup_step(b, 1 << 20, &left, &f.e));
    }
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
