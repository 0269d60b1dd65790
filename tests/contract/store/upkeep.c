/* Upkeep changes no answer but what it says: sums stand for their uploads, what is removed is gone from everything. */
#include <stdio.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/counts.h"
#include "tests/contract/store/upkeep_fixture.h"

#define CLOCKS UINT64_C(20) /* uploads of fill: one every hour from midnight */

static void fill(struct fixture *f, uint32_t uid, unsigned senders)
{
    struct made m;
    for (unsigned sender = 1; sender <= senders; sender++) {
        for (uint32_t i = 0; i < CLOCKS; i++) {
            make_counted(&m, uid, sender, i + 1, MIDNIGHT + i * HOUR + 5, sender * 100 + i);
            snprintf(m.u.host, sizeof m.u.host, "%032u", sender % 3);
            put_counted(f, &m);
        }
    }
}

static void expect_same(struct seen a, struct seen b)
{
    cr_assert_eq(a.uploads, b.uploads, "%llu uploads, %llu before", (unsigned long long)b.uploads,
                 (unsigned long long)a.uploads);
    cr_assert_eq(a.processes, b.processes);
    cr_assert_eq(a.ticks, b.ticks);
    cr_assert_eq(a.calls, b.calls);
    cr_assert_eq(a.first, b.first);
    cr_assert_eq(a.last, b.last);
    cr_assert_eq(a.inexact, b.inexact);
    cr_assert_eq(memcmp(&a.groups, &b.groups, sizeof a.groups), 0, "processes by group");
}

STORE_TEST(rolled_up_uploads_give_the_same_answers)
{
    fill(f, 1, 5);
    struct seen all = look_window(f, 0, 0), some = look_window(f, MIDNIGHT + 3 * HOUR, MIDNIGHT + 9 * HOUR);
    cr_assert_eq(all.uploads, 5 * CLOCKS);
    cr_assert_eq(some.uploads, 5 * 6);
    uint64_t rolled = compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + 30 * DAY);
    expect_same(all, look_window(f, 0, 0));
    expect_same(some, look_window(f, MIDNIGHT + 3 * HOUR, MIDNIGHT + 9 * HOUR));
    struct seen sum = look_window(f, 0, 0), day = look_window(f, MIDNIGHT, MIDNIGHT + DAY);
    cr_assert_eq(rolled, 5 * CLOCKS);
    cr_assert_eq(sum.rows, 1, "one sum of all time, not %llu rows", (unsigned long long)sum.rows);
    cr_assert_eq(sum.hosts, 3, "distinct ones");
    cr_assert_eq(day.rows, 1);
    expect_same(all, day);
    cr_assert_eq(look_window(f, MIDNIGHT + 3 * HOUR, MIDNIGHT + 9 * HOUR).rolled, 6);
    expect_clean(f);
    fixture_reopen(f);
    expect_same(all, look_window(f, 0, 0));
    expect_clean(f);
}

/* What each random group brought, of rows and of sums with their spread. */
struct brought {
    uint64_t ticks[COUNTS_GROUPS], calls[COUNTS_GROUPS];
    bool spread;
};

static enum profd_status add_brought(void *context, const struct store_row *row, struct profd_error *e)
{
    struct brought *b = context;
    struct arena *a = arena_new(0);
    struct counts r;
    struct counts_shares spread;
    struct counts c;
    cr_assert_eq(row->spread != NULL, row->rolled && b->spread, "a spread where one is asked for");
    if (row->spread != NULL) {
        const uint32_t builds = (uint32_t)row->build_count;
        cr_assert_eq(rollup_decode(a, row->counts, row->counts_size, builds, false, &r, e), PROFD_OK);
        cr_assert_eq(rollup_decode_spread(a, &r, row->spread, row->spread_size, &spread, e), PROFD_OK);
        for (size_t i = 0; i < (size_t)r.bin_count * COUNTS_GROUPS; i++) {
            b->ticks[i % COUNTS_GROUPS] += spread.bins[i];
        }
        for (size_t i = 0; i < (size_t)r.arc_count * COUNTS_GROUPS; i++) {
            b->calls[i % COUNTS_GROUPS] += spread.arcs[i];
        }
    } else if (!row->rolled) {
        uint64_t ticks, calls;
        cr_assert_eq(counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c, e), PROFD_OK);
        counts_totals(&c, &ticks, &calls);
        b->ticks[row->group] += ticks;
        b->calls[row->group] += calls;
        counts_done(&c);
    }
    arena_free(a);
    return PROFD_OK;
}

STORE_TEST(rolled_up_uploads_keep_their_groups)
{
    const struct store_filter plain = {.build_id = full_id("aa01")},
                              with = {.build_id = full_id("aa01"), .spread = true};
    struct brought raw = {.spread = true}, sums = {.spread = true}, none = {.spread = false};
    fill(f, 1, 5);
    OK(f, store_each_upload(f->r, &everybody, &with, add_brought, &raw, &f->e));
    for (unsigned g = 0; g < COUNTS_GROUPS; g++) {
        cr_assert_eq(raw.ticks[g] > 0, g >= 1 && g <= 5, "senders 1 to 5 are in groups 1 to 5");
    }
    compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + 30 * DAY);
    OK(f, store_each_upload(f->r, &everybody, &with, add_brought, &sums, &f->e));
    OK(f, store_each_upload(f->r, &everybody, &plain, add_brought, &none, &f->e));
    cr_assert_eq(memcmp(&raw, &sums, sizeof raw), 0);
}

STORE_TEST(a_late_retry_stays_nothing_and_a_late_upload_lands_in_its_hour)
{
    struct made m;
    fill(f, 1, 2);
    compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + 30 * DAY);
    make_counted(&m, 1, 1, 4, MIDNIGHT + 3 * HOUR + 5, 103);
    snprintf(m.u.host, sizeof m.u.host, "%032u", 1);
    cr_assert_eq(put_counted(f, &m), STORE_DUPLICATE);
    make_counted(&m, 1, 77, 1, MIDNIGHT + 3 * HOUR + 9, 5000);
    m.u.received = MIDNIGHT + 29 * DAY;
    cr_assert_eq(put_counted(f, &m), STORE_STORED);
    struct seen hour = look_window(f, MIDNIGHT + 3 * HOUR, MIDNIGHT + 4 * HOUR), all = look_window(f, 0, 0);
    cr_assert_eq(hour.uploads, 3);
    cr_assert_eq(all.uploads, 2 * CLOCKS + 1);
    expect_clean(f);
    compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + 31 * DAY);
    expect_same(hour, look_window(f, MIDNIGHT + 3 * HOUR, MIDNIGHT + 4 * HOUR));
    expect_same(all, look_window(f, 0, 0));
    expect_same(all, look_window(f, MIDNIGHT, MIDNIGHT + DAY));
    cr_assert_eq(look_window(f, 0, 0).rows, 1);
    expect_clean(f);
}

STORE_TEST(only_what_the_policy_names_is_rolled_up)
{
    fill(f, 1, 3);
    /* Accepted when their windows ended: three uploads are older than an hour at 00:30 + 1 h. */
    cr_assert_eq(compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + HOUR + HOUR / 2), 3);
    cr_assert_eq(look_window(f, 0, 0).rolled, 1);
    struct store_totals t;
    OK(f, store_get_totals(f->r, &t, &f->e));
    uint64_t kept = t.raw_bytes / 2;
    cr_assert_gt(compact_all(f, 100 * DAY, kept, MIDNIGHT + DAY), 0, "the oldest beyond so many bytes");
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert_leq(t.raw_bytes, kept);
    cr_assert_gt(t.raw_bytes, kept / 2);
    cr_assert_eq(look_window(f, MIDNIGHT + 15 * HOUR, 0).rolled, 0, "the youngest are single");
    cr_assert_eq(t.raw_uploads + 1, t.raw_uploads + look_window(f, MIDNIGHT, MIDNIGHT + HOUR).rows);
    expect_clean(f);
}

STORE_TEST(an_edge_inside_a_sum_moves_outward_for_all_rows)
{
    struct made m;
    struct store_filter filter = {
        .build_id = full_id("aa01"), .since = MIDNIGHT + 3 * HOUR + 7, .until = MIDNIGHT + 9 * HOUR + 3};
    int64_t since, until;
    fill(f, 1, 2);
    compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + 30 * DAY);
    make_counted(&m, 1, 9, 1, MIDNIGHT + 3 * HOUR + 2, 7);
    put_counted(f, &m);
    OK(f, store_get_range(f->r, &everybody, &filter, &since, &until, &f->e));
    struct seen seen = look(f, everybody, &filter);
    cr_assert_eq(since, MIDNIGHT + 3 * HOUR);
    cr_assert_eq(until, MIDNIGHT + 10 * HOUR);
    cr_assert_eq(seen.uploads, 2 * 7 + 1, "the single upload before the edge that was asked for, too");
    filter.build_id = full_id("bb02");
    filter.matchers = &(struct store_matcher){.name = "host", .value = "elsewhere", .match = STORE_MATCH_EQUAL};
    filter.matcher_count = 1;
    OK(f, store_get_range(f->r, &everybody, &filter, &since, &until, &f->e));
    cr_assert_eq(since, filter.since, "no series matches, no edge moves");
    cr_assert_eq(until, filter.until);
}

STORE_TEST(whole_days_are_retired_by_age)
{
    struct made m;
    struct store_totals t;
    struct store_epoch epoch[2];
    fill(f, 1, 2);
    make_counted(&m, 1, 50, 1, MIDNIGHT + 2 * DAY + HOUR, 9);
    put_counted(f, &m);
    make_counted(&m, 2, 50, 1, MIDNIGHT + HOUR, 11);
    put_counted(f, &m);
    compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + DAY + HOUR);
    OK(f, store_epoch(f->r, &everybody, full_id("aa01"), &epoch[0], &f->e));
    cr_assert_eq(retire_all(f, 2 * DAY, 0, MIDNIGHT + 3 * DAY - 1), 0, "the day did not end two days ago");
    cr_assert_eq(retire_all(f, 2 * DAY, 0, MIDNIGHT + 3 * DAY), 2 * CLOCKS + 1);
    OK(f, store_epoch(f->r, &everybody, full_id("aa01"), &epoch[1], &f->e));
    cr_assert_neq(epoch[0].number, epoch[1].number, "answers changed");
    cr_assert_eq(look_window(f, 0, 0).uploads, 1);
    cr_assert_eq(look_window(f, 0, 0).ticks, 10);
    cr_assert_str_eq(list_builds(f, everybody, "", 10), "aa01=/usr/bin/program:1 bb02=libone.so:1 ");
    cr_assert_str_eq(list_builds(f, only(2), "", 10), "", "a build without data is not listed");
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert_eq(t.uploads, 2 * CLOCKS + 2);
    cr_assert_eq(t.retired_uploads, 2 * CLOCKS + 1);
    expect_clean(f);
    make_counted(&m, 1, 1, 4, MIDNIGHT + 3 * HOUR + 5, 103);
    snprintf(m.u.host, sizeof m.u.host, "%032u", 1);
    cr_assert_eq(put_counted(f, &m), STORE_DUPLICATE, "ids stay");
    cr_assert_eq(retire_all(f, 2 * DAY, 0, MIDNIGHT + 30 * DAY), 1);
    cr_assert_str_eq(list_builds(f, everybody, "", 10), "");
    OK(f, store_epoch(f->r, &everybody, full_id("aa01"), &epoch[1], &f->e));
    cr_assert_eq(epoch[1].number, 0);
    expect_clean(f);
    fill(f, 3, 1);
    cr_assert_eq(look_window(f, 0, 0).uploads, CLOCKS, "life goes on");
    expect_clean(f);
}

static bool keep_row(void *context, const struct build_row *row)
{
    *(struct build_row *)context = *row;
    return false;
}

STORE_TEST(lists_say_what_is_left)
{
    struct made m;
    struct build_row row;
    fill(f, 1, 2);
    make_counted(&m, 1, 50, 1, MIDNIGHT + 2 * DAY + HOUR, 9);
    m.u.inexact = 1;
    add_label(&m, "service", "web");
    put_counted(f, &m);
    make_counted(&m, 1, 50, 2, MIDNIGHT + 4 * DAY + HOUR, 12);
    put_counted(f, &m);
    compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + 2 * DAY);
    retire_all(f, DAY, 0, MIDNIGHT + 3 * DAY);
    OK(f, store_each_build(f->r, &everybody, "", 1, keep_row, &row, &f->e));
    cr_assert_eq(row.uploads, 2);
    cr_assert_eq(row.nanoseconds, 23 * 10000000);
    cr_assert_eq(row.calls, 4);
    cr_assert_eq(row.processes, 1);
    cr_assert_eq(row.first_seen, MIDNIGHT + 2 * DAY + HOUR - 1000);
    cr_assert_eq(row.last_seen, MIDNIGHT + 4 * DAY + HOUR);
    cr_assert_eq(row.inexact, 1);
    cr_assert(row.is_program);
    retire_all(f, DAY, 0, MIDNIGHT + 5 * DAY);
    OK(f, store_each_build(f->r, &everybody, "", 1, keep_row, &row, &f->e));
    cr_assert_eq(row.inexact, 0, "the inexact upload is gone");
    cr_assert_eq(row.uploads, 1);
    expect_clean(f);
}

STORE_TEST(the_oldest_days_go_when_there_is_too_much)
{
    struct made m;
    struct store_totals t;
    for (uint32_t day = 0; day < 10; day++) {
        for (uint32_t i = 0; i < 60; i++) {
            make_counted(&m, 1, 1, day * 60 + i + 1, MIDNIGHT + day * DAY + i * 60, 1000 + i);
            put_counted(f, &m);
        }
    }
    OK(f, store_get_totals(f->r, &t, &f->e));
    uint64_t bytes = t.file_bytes - t.free_bytes;
    retire_all(f, 0, bytes - 20000, MIDNIGHT + 9 * DAY + HOUR);
    struct seen left = look_window(f, 0, 0);
    cr_assert_lt(left.uploads, 600);
    cr_assert_gt(left.uploads, 60);
    cr_assert_eq(left.uploads % 60, 0, "whole days");
    cr_assert_eq(left.last, MIDNIGHT + 9 * DAY + 59 * 60, "the oldest first");
    expect_clean(f);
    retire_all(f, 0, 1, MIDNIGHT + 9 * DAY + HOUR);
    cr_assert_eq(look_window(f, 0, 0).uploads, 60, "today stays");
    expect_clean(f);
}

STORE_TEST(a_deleted_build_is_gone_at_once)
{
    struct made m;
    struct made_object o;
    struct store_totals t;
    uint64_t removed;
    fill(f, 1, 2);
    make_counted(&m, 2, 1, 1, MIDNIGHT + HOUR, 3);
    put_counted(f, &m);
    make_counted(&m, 1, 30, 1, MIDNIGHT + HOUR, 4);
    make_build(&m.builds[0], "cc03", "/usr/bin/other");
    m.builds[0].nanoseconds = 50000000;
    m.builds[0].calls = 2;
    put_counted(f, &m);
    make_object(&o, "aa01", "v", 1, true, "symbols");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    compact_all(f, HOUR, UINT64_MAX, MIDNIGHT + 10 * HOUR);
    struct store_scope one = only(1), two = only(2);
    FAILS(f, PROFD_NOT_FOUND, store_delete_build(f->w, &everybody, full_id("dd"), &removed, &f->e));
    FAILS(f, PROFD_REFUSED, store_delete_build(f->w, &everybody, full_id("bb02"), &removed, &f->e));
    cr_assert(strstr(f->e.sentence, "aa01") || strstr(f->e.sentence, "cc03"), "%s", f->e.sentence);
    FAILS(f, PROFD_NOT_FOUND, store_delete_build(f->w, &two, full_id("cc03"), &removed, &f->e));
    OK(f, store_delete_build(f->w, &one, full_id("aa01"), &removed, &f->e));
    cr_assert_eq(removed, 2 * CLOCKS);
    cr_assert_str_eq(list_builds(f, one, "", 9), "bb02=libone.so:1 cc03=/usr/bin/other:1 ");
    cr_assert_str_eq(list_builds(f, two, "", 9), "aa01=/usr/bin/program:1 bb02=libone.so:1 ");
    cr_assert_eq(look_window(f, 0, 0).uploads, 1);
    cr_assert_str_eq(get_content(f, "aa01", 1, (uint32_t[]){2}, NULL), "symbols", "somebody still has the build");
    expect_clean(f);
    fill(f, 1, 1);
    cr_assert_eq(look_window(f, 0, 0).uploads, 1, "ids stay");
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &removed, &f->e));
    cr_assert_eq(removed, 1);
    cr_assert_str_eq(get_content(f, "aa01", 1, (uint32_t[]){2}, NULL), "");
    FAILS(f, PROFD_NOT_FOUND, store_delete_build(f->w, &everybody, full_id("aa01"), &removed, &f->e));
    retire_all(f, 0, 0, MIDNIGHT + DAY);
    OK(f, store_get_totals(f->r, &t, &f->e));
    cr_assert_eq(t.uploads, t.retired_uploads + 1);
    cr_assert_eq(t.raw_uploads + t.rollups, 1);
    make_counted(&m, 1, 31, 1, MIDNIGHT + HOUR, 4);
    put_counted(f, &m);
    cr_assert_eq(look_window(f, 0, 0).uploads, 1, "it may come again");
    expect_clean(f);
}

STORE_TEST(symbols_of_what_nobody_has_seen_go_too)
{
    struct made m;
    struct made_object o;
    make_counted(&m, 1, 1, 1, MIDNIGHT + HOUR, 3);
    put_counted(f, &m);
    make_object(&o, "aa01", "v", 1, true, "symbols");
    o.o.received = MIDNIGHT;
    OK(f, store_put_object(f->w, &o.o, &f->e));
    make_object(&o, "ff07", "v", 1, true, "never run");
    o.o.received = MIDNIGHT + 5 * DAY;
    OK(f, store_put_object(f->w, &o.o, &f->e));
    retire_all(f, 7 * DAY, 0, MIDNIGHT + 7 * DAY + 2 * HOUR);
    cr_assert_str_eq(get_content(f, "aa01", 1, (uint32_t[]){1}, NULL), "symbols");
    retire_all(f, 7 * DAY, 0, MIDNIGHT + 8 * DAY + 2 * HOUR);
    cr_assert_eq(look_window(f, 0, 0).uploads, 0);
    cr_assert_str_eq(get_content(f, "aa01", 1, (uint32_t[]){1}, NULL), "", "not seen for a week");
    cr_assert_str_eq(get_content(f, "ff07", 1, (uint32_t[]){1}, NULL), "never run");
    retire_all(f, 7 * DAY, 0, MIDNIGHT + 13 * DAY);
    cr_assert_str_eq(get_content(f, "ff07", 1, (uint32_t[]){1}, NULL), "");
    expect_clean(f);
}
