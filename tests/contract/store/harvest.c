/* Live processes: every difference counts once, in one upload for each slice of time and series. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"
#include "proto/collector.h"
#include "tests/contract/store/harvest_fixture.h"

STORE_TEST(harvests_grow_one_upload)
{
    struct store_scope mine = only(7);
    uint64_t epoch = 0, list = 0;
    for (unsigned i = 0; i < 5; i++) {
        struct store_epoch all;
        uint64_t now;
        harvest_one(f, 7, 1, i, START + i * (MINUTE / 5), 100 + i);
        now = epoch_of(f, mine, "bb02");
        OK(f, store_epoch_all(f->r, &everybody, &all, &f->e));
        cr_assert_gt(now, epoch, "harvest %u", i);
        cr_assert_gt(all.number, list);
        epoch = now;
        list = all.number;
        expect_clean(f);
    }
    struct seen seen = look_window(f, 0, 0);
    cr_assert_eq(seen.rows, 1);
    cr_assert_eq(seen.processes, 1);
    cr_assert_eq(seen.ticks, 510 + 5);
    cr_assert_eq(seen.calls, 510 + 10);
    cr_assert_eq(seen.first, START - 1000);
    cr_assert_eq(seen.last, START + 4 * (MINUTE / 5));
    cr_assert_eq(seen.commits, 1, "the number stays");
    struct store_totals t = totals(f);
    cr_assert_eq(t.uploads, 1);
    cr_assert_eq(t.ticks, 515);
    cr_assert_eq(t.calls, 520);
    cr_assert_eq(t.raw_uploads, 1);
    cr_assert_str_eq(list_builds(f, mine, "", 9), "aa01=/usr/bin/program:1 bb02=libone.so:1 ");
    cr_assert_str_eq(durable(f, 7, 1), "5 7/1/5");
}

static void note_build(void *context, const struct build_row *row)
{
    *(struct build_row *)context = *row;
}

/* Nanoseconds are rounded once for what the upload holds, not once a harvest. */
STORE_TEST(sums_are_as_if_everything_had_come_at_once)
{
    struct counts c;
    struct build_row row;
    for (unsigned i = 0; i < 7; i++) {
        struct made_harvest x;
        make_harvest(&x, 7, 1, i, START + i, 5);
        cr_assert_eq(counts_init(&c, 1, 1, 0, &f->e), PROFD_OK);
        c.histograms[0] = (struct counts_histogram){.bins = 10,
                                                    .low = 0x1000,
                                                    .high = 0x2000,
                                                    .rate = 7,
                                                    .dimension = "seconds",
                                                    .abbreviation = 's',
                                                    .used = 1};
        c.bin_ticks[0] = 1;
        replace_counts(&x, &c);
        counts_done(&c);
        cr_assert_eq(harvest(f, &x), STORE_STORED);
        expect_clean(f);
    }
    OK(f, store_get_build(f->r, &everybody, full_id("aa01"), note_build, &row, &f->e));
    cr_assert_eq(row.nanoseconds, 1000000000, "%llu", (unsigned long long)row.nanoseconds);
    cr_assert_eq(row.uploads, 1);
    cr_assert_eq(row.processes, 1);
}

STORE_TEST(new_arcs_stand_behind_old_ones)
{
    harvest_one(f, 7, 1, 0, START, 3);
    cr_assert_str_eq(show_counts(f), "3=1 7=3 | 9003:3 1000:2");
    harvest_one(f, 7, 1, 1, START + 1, 1);
    cr_assert_str_eq(show_counts(f), "3=2 5=1 7=3 | 9003:3 1000:4 9001:1");
    harvest_one(f, 7, 1, 2, START + 2, 10);
    cr_assert_str_eq(show_counts(f), "3=3 5=1 7=3 14=10 | 9003:13 1000:6 9001:1");
    expect_clean(f);
}

STORE_TEST(histograms_of_one_geometry_add_and_others_stand_beside)
{
    struct counts c;
    struct made_harvest x;
    harvest_one(f, 7, 1, 0, START, 3);
    for (unsigned i = 0; i < 2; i++) {
        make_harvest(&x, 7, 1, 1 + i, START + 1 + i, 1);
        cr_assert_eq(counts_init(&c, 3, 4, 0, &f->e), PROFD_OK);
        c.histograms[0] = (struct counts_histogram){.bins = 8,
                                                    .low = 0x1000,
                                                    .high = 0x2000,
                                                    .rate = 100,
                                                    .dimension = "seconds",
                                                    .abbreviation = 's',
                                                    .used = 1};
        c.histograms[1] = (struct counts_histogram){.bins = 100,
                                                    .low = 0x1000,
                                                    .high = 0x2000,
                                                    .rate = 100,
                                                    .dimension = "seconds",
                                                    .abbreviation = 's',
                                                    .first = 1,
                                                    .used = 1};
        collector_make_histogram(&c.histograms[2], 0);
        c.histograms[2].first = 2;
        c.histograms[2].used = 2;
        c.bin_index[0] = 6;
        c.bin_ticks[0] = 60;
        c.bin_index[1] = 99;
        c.bin_ticks[1] = 1;
        c.bin_index[2] = COLLECTOR_PROCESSES;
        c.bin_ticks[2] = 1;
        c.bin_index[3] = COLLECTOR_CPU_NS;
        c.bin_ticks[3] = INT64_MAX; /* a full word does not make counts inexact */
        replace_counts(&x, &c);
        counts_done(&c);
        cr_assert_eq(harvest(f, &x), STORE_STORED);
        expect_clean(f);
    }
    cr_assert_str_eq(show_counts(f), "3=1 7=3 99=2 6=120 0=2 1=9223372036854775807 | 9003:3 1000:2");
    struct seen seen = look_window(f, 0, 0);
    cr_assert_eq(seen.inexact, 0);
    cr_assert_eq(seen.ticks, 4 + 122);
}

STORE_TEST(next_hour_has_an_upload_of_its_own)
{
    harvest_one(f, 7, 1, 0, START + 59 * MINUTE, 10);
    harvest_one(f, 7, 1, 1, START + 61 * MINUTE, 20);
    harvest_one(f, 7, 1, 2, START + 62 * MINUTE, 30);
    cr_assert_eq(look_window(f, START, START + HOUR).ticks, 11);
    cr_assert_eq(look_window(f, START + HOUR, START + 2 * HOUR).ticks, 52);
    cr_assert_eq(look_window(f, 0, 0).rows, 3, "each of its minute");
    cr_assert_eq(look_window(f, 0, 0).processes, 1, "it began once");
    /* A clock that was set back: neither is touched. */
    harvest_one(f, 7, 1, 3, START + 58 * MINUTE, 40);
    cr_assert_eq(look_window(f, START, START + HOUR).ticks, 52);
    cr_assert_eq(look_window(f, 0, 0).rows, 4);
    expect_clean(f);
}

static struct seen look_between(struct fixture *f, int64_t since, int64_t until, int64_t used_since, int64_t used_until)
{
    struct store_filter filter = {.build_id = full_id("aa01"), .since = since, .until = until};
    int64_t edges[2];
    OK(f, store_get_range(f->r, &everybody, &filter, &edges[0], &edges[1], &f->e));
    cr_assert_eq(edges[0], used_since, "since %+lld ns", (long long)(edges[0] - used_since));
    cr_assert_eq(edges[1], used_until, "until %+lld ns", (long long)(edges[1] - used_until));
    return look_window(f, since, until);
}

/* A process that is read every ten seconds for 18 minutes. */
STORE_TEST(windows_of_a_live_process_are_told_apart_by_the_minute)
{
    int64_t now = START;
    for (unsigned i = 0; i < 108; i++, now += MINUTE / 6) {
        harvest_one(f, 7, 1, i, now, 9);
    }
    now -= MINUTE / 6; /* when it was read last, ten seconds before the minute is over */
    expect_clean(f);
    cr_assert_eq(look_window(f, 0, 0).rows, 18);
    cr_assert_eq(look_window(f, 0, 0).ticks, 1080);
    cr_assert_eq(look_between(f, now - 30 * MINUTE, 0, now - 30 * MINUTE, 0).ticks, 1080, "longer than it lives");
    cr_assert_eq(look_between(f, now - MINUTE, 0, START + 16 * MINUTE, 0).ticks, 120,
                 "the edge moves to the minute's border");
    cr_assert_eq(look_between(f, START + 16 * MINUTE, 0, START + 16 * MINUTE, 0).ticks, 120, "one on a border stays");
    cr_assert_eq(look_between(f, 0, now - 10 * MINUTE, 0, START + 8 * MINUTE).ticks, 480);
    cr_assert_eq(look_between(f, 0, START + 8 * MINUTE, 0, START + 8 * MINUTE).ticks, 480);
    cr_assert_eq(
        look_between(f, START + 3 * MINUTE + 1, START + 3 * MINUTE + 2, START + 3 * MINUTE, START + 4 * MINUTE).ticks,
        60);
    /* Who does not see the process has no reason to move. */
    struct store_filter filter = {.build_id = full_id("aa01"), .since = now - MINUTE};
    struct store_scope other = only(8);
    int64_t edges[2];
    OK(f, store_get_range(f->r, &other, &filter, &edges[0], &edges[1], &f->e));
    cr_assert_eq(edges[0], now - MINUTE);
}

/* Compacts with room for so many bytes of live processes, and looks that nothing but time was lost. */
static struct seen widen(struct fixture *f, uint64_t live_bytes, const struct seen *all)
{
    cr_assert_eq(compact_all(f, DAY, STORE_LIVE_PART * live_bytes, START + HOUR), 0, "nothing was rolled up");
    struct seen seen = look_window(f, 0, 0);
    cr_assert_eq(seen.rolled, 0);
    cr_assert_eq(seen.ticks, all->ticks);
    cr_assert_eq(seen.calls, all->calls);
    cr_assert_eq(seen.uploads, all->uploads);
    cr_assert_eq(seen.processes, all->processes);
    cr_assert_eq(seen.inexact, all->inexact);
    cr_assert(seen.first == all->first && seen.last == all->last);
    cr_assert_eq(totals(f).raw_uploads, all->uploads);
    expect_clean(f);
    return seen;
}

STORE_TEST(slices_become_wider_when_they_take_too_much)
{
    for (unsigned i = 0; i < 90; i++) {
        for (unsigned process = 1; process <= 3; process++) {
            harvest_one(f, 7, process, i, START + i * (MINUTE / 2), process);
        }
    }
    const struct seen all = look_window(f, 0, 0);
    uint64_t bytes = totals(f).raw_bytes;
    cr_assert_eq(all.rows, 3 * 45);
    cr_assert_eq(widen(f, bytes, &all).rows, 3 * 45, "there is room");
    /* A little too much: the oldest minutes become five. Those of one process first, so that edges move for all. */
    struct seen seen = widen(f, bytes - 1, &all);
    cr_assert_eq(seen.rows, 3 * 45 - 4, "%llu", (unsigned long long)seen.rows);
    cr_assert_lt(totals(f).raw_bytes, bytes);
    cr_assert_eq(look_between(f, START + 3 * MINUTE, 0, START, 0).ticks, all.ticks);
    cr_assert_eq(look_between(f, START + 5 * MINUTE, 0, START + 5 * MINUTE, 0).ticks, (1 + 1 + 2 + 1 + 3 + 1) * 80);
    cr_assert_eq(look_between(f, 0, START + 10 * MINUTE + 1, 0, START + 11 * MINUTE).ticks, 9 * 22);
    /* All the minutes, then all the fives, then quarters; as far as there is anything. */
    cr_assert_leq(widen(f, bytes * 2 / 9, &all).rows, 3 * 9);
    cr_assert_leq(widen(f, bytes * 2 / 27, &all).rows, 3 * 3);
    cr_assert_eq(widen(f, bytes / 40, &all).rows, 3);
    cr_assert_eq(look_between(f, START + 44 * MINUTE, START + 45 * MINUTE, START, START + HOUR).ticks, all.ticks);
    /* What is counted then goes into the wide slice, as long as that lasts. */
    harvest_one(f, 7, 1, 90, START + 50 * MINUTE, 1);
    cr_assert_eq(look_window(f, 0, 0).rows, 3);
    harvest_one(f, 7, 1, 91, START + 61 * MINUTE, 1);
    cr_assert_eq(look_window(f, 0, 0).rows, 4);
    cr_assert_eq(look_between(f, START + 62 * MINUTE - 1, 0, START + 61 * MINUTE, 0).ticks, 2);
    expect_clean(f);
    fixture_reopen(f);
    (void)compact_all(f, 0, 0, START + 9 * DAY);
    cr_assert_eq(look_window(f, 0, 0).ticks, all.ticks + 4);
    cr_assert_eq(look_window(f, 0, 0).uploads, all.uploads + 1);
    expect_clean(f);
}

STORE_TEST(library_loaded_later_begins_another_series)
{
    struct made_harvest x;
    harvest_one(f, 7, 1, 0, START, 10);
    for (unsigned i = 1; i <= 2; i++) {
        make_harvest(&x, 7, 1, i, START + i, 20);
        make_build(&x.m.builds[2], "cc03", "plugin.so");
        x.m.builds[2].nanoseconds = x.m.builds[2].calls = 0;
        x.h.build_count = 3;
        cr_assert_eq(harvest(f, &x), STORE_STORED);
        expect_clean(f);
    }
    cr_assert_str_eq(list_builds(f, everybody, "", 9), "aa01=/usr/bin/program:2 bb02=libone.so:2 cc03=plugin.so:1 ");
    cr_assert_eq(look_window(f, 0, 0).ticks, 11 + 42);
    /* Labels make series, too; and a change back is a change. */
    make_harvest(&x, 7, 1, 3, START + 4, 30);
    add_label(&x.m, "service", "web");
    x.h.label_count = 1;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    harvest_one(f, 7, 1, 4, START + 5, 40);
    cr_assert_eq(look_window(f, 0, 0).rows, 4);
    cr_assert_eq(look_window(f, 0, 0).ticks, 11 + 42 + 31 + 41);
    cr_assert_str_eq(durable(f, 7, 1), "5 7/1/5");
    expect_clean(f);
}

STORE_TEST(compaction_between_harvests)
{
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 2, 0, START, 10);
    compact_all(f, MINUTE, UINT64_MAX, START + 2 * MINUTE);
    expect_clean(f);
    harvest_one(f, 7, 1, 1, START + 3 * MINUTE, 20);
    expect_clean(f);
    harvest_one(f, 7, 1, 2, START + 3 * MINUTE + 1, 30);
    expect_clean(f);
    struct seen seen = look_window(f, 0, 0);
    cr_assert_eq(seen.ticks, 11 + 11 + 21 + 31);
    cr_assert_eq(seen.processes, 2);
    cr_assert_eq(seen.uploads, 3, "another minute has an upload of its own");
    compact_all(f, MINUTE, UINT64_MAX, START + 9 * DAY);
    harvest_one(f, 7, 1, 3, START + 3 * MINUTE + 2, 40);
    expect_clean(f);
    cr_assert_eq(look_window(f, 0, 0).ticks, 115);
    cr_assert_eq(look_window(f, 0, 0).uploads, 4, "what was rolled up is followed by a new one");
}

STORE_TEST(deleted_counts_do_not_come_back)
{
    uint64_t uploads;
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 1, 1, START + 1, 20);
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    cr_assert_eq(uploads, 1);
    cr_assert_str_eq(durable(f, 7, 1), "2 7/1/2", "the snapshot stays");
    expect_clean(f);
    harvest_one(f, 7, 1, 2, START + 2, 30);
    expect_clean(f);
    cr_assert_eq(look_window(f, 0, 0).ticks, 31);
    cr_assert_eq(totals(f).uploads, 2);
    cr_assert_eq(totals(f).retired_ticks, 32);
    retire_all(f, 0, 0, START + HOUR);
    harvest_one(f, 7, 1, 3, START + 3, 40);
    expect_clean(f);
    cr_assert_eq(look_window(f, 0, 0).ticks, 72);
    cr_assert_eq(look_window(f, 0, 0).rows, 1);
}

STORE_TEST(retention_between_harvests)
{
    harvest_one(f, 7, 1, 0, START, 10);
    harvest_one(f, 7, 1, 1, START + 3 * DAY, 20);
    retire_all(f, DAY, 0, START + 3 * DAY);
    cr_assert_eq(totals(f).retired_ticks, 11);
    harvest_one(f, 7, 1, 2, START + 3 * DAY + 1, 30);
    retire_all(f, DAY, 0, START + 9 * DAY);
    harvest_one(f, 7, 1, 3, START + 3 * DAY + 2, 40); /* that hour was removed: it begins again */
    expect_clean(f);
    cr_assert_eq(look_window(f, 0, 0).ticks, 41);
    cr_assert_eq(totals(f).ticks, 11 + 21 + 31 + 41);
}

STORE_TEST(sums_at_their_end_say_so)
{
    for (unsigned i = 0; i < 4; i++) {
        harvest_one(f, 7, 1, i, START + i, (uint64_t)INT64_MAX / 90 * 90 + 7); /* the same bin and arc each time */
        expect_clean(f);
        cr_assert_eq(look_window(f, 0, 0).inexact, i == 0 ? 0 : INEXACT_SATURATED, "harvest %u", i);
    }
    struct seen seen = look_window(f, 0, 0);
    cr_assert_eq(seen.ticks, (uint64_t)INT64_MAX);
    cr_assert_eq(seen.calls, (uint64_t)INT64_MAX);
    compact_all(f, MINUTE, UINT64_MAX, START + 9 * DAY);
    harvest_one(f, 7, 1, 4, START + 9, 3);
    expect_clean(f);
}

STORE_TEST(windows_and_reasons_of_all_harvests)
{
    struct made_harvest x;
    make_harvest(&x, 7, 1, 0, START + 20, 10);
    x.h.inexact = INEXACT_CALLS_LOST;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    make_harvest(&x, 7, 1, 1, START + 10, 10); /* an earlier end */
    x.h.start = START - 3 * HOUR;
    x.h.inexact = INEXACT_SAMPLED;
    x.h.processes_started = 1;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    struct seen seen = look_window(f, 0, 0);
    cr_assert_eq(seen.rows, 1);
    cr_assert_eq(seen.first, START - 3 * HOUR);
    cr_assert_eq(seen.last, START + 20);
    cr_assert_eq(seen.inexact, INEXACT_CALLS_LOST | INEXACT_SAMPLED);
    cr_assert_eq(seen.processes, 2);
    expect_clean(f);
}

/* Another host or another group is not the same upload. */
STORE_TEST(what_cannot_be_one_upload_is_two)
{
    struct made_harvest x;
    harvest_one(f, 7, 1, 0, START, 10);
    make_harvest(&x, 7, 1, 1, START + 1, 10);
    strcpy(x.h.host, "other");
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    make_harvest(&x, 7, 1, 2, START + 2, 10);
    strcpy(x.h.host, "other");
    x.h.group = 9;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
    cr_assert_eq(look_window(f, 0, 0).rows, 3);
    expect_clean(f);
}

/* Arcs that hardly compress, so that 1 MiB is reached. */
static void fill_arcs(struct counts *c, uint64_t seed)
{
    for (uint32_t i = 0; i < c->arc_count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        c->from[i] = seed >> 8;
        c->to[i] = 0x9000 + (seed >> 60);
        c->to_build[i] = 1;
        c->calls[i] = 1;
    }
}

STORE_TEST(large_uploads_are_not_grown)
{
    struct made_harvest x;
    struct counts c;
    for (unsigned i = 0; i < 3; i++) {
        make_harvest(&x, 7, 1, i, START + i, 10);
        cr_assert_eq(counts_init(&c, 0, 0, 150000, &f->e), PROFD_OK);
        fill_arcs(&c, i);
        replace_counts(&x, &c);
        counts_done(&c);
        if (i == 0) {
            cr_assert_gt(x.h.counts_size, STORE_GROWN_MOST);
        }
        cr_assert_eq(harvest(f, &x), STORE_STORED);
    }
    cr_assert_eq(look_window(f, 0, 0).rows, 3);
    cr_assert_eq(look_window(f, 0, 0).calls, 450000);
    expect_clean(f);
}
