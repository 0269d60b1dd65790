/* Which slice is next, how soon, and which time is believed when something is removed for its age. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writer/upkeep.h"
#include "proto/counts.h"
#include "tests/scratch_store.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define NOON (20000 * DAY + 12 * HOUR)

static const struct store_policy usual = {.raw_age = 48 * HOUR, .raw_bytes = 1 << 30, .keep_age = 400 * DAY};

static struct upkeep_time at(int64_t wall, int64_t steady)
{
    return (struct upkeep_time){.wall = wall, .steady = steady};
}

Test(writer_upkeep, a_clock_that_jumps_ahead_is_not_believed_for_a_day)
{
    struct upkeep u;

    upkeep_init(&u, &usual, at(NOON, HOUR));
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 10 * SECOND, HOUR + 10 * SECOND)), NOON + 10 * SECOND);
    /* ten years ahead */
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 3650 * DAY, 2 * HOUR)), NOON + HOUR, "what the steady clock says");
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 3650 * DAY + 12 * HOUR, 14 * HOUR)), NOON + 13 * HOUR);
    /* set right again: nothing has happened */
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 14 * HOUR, 15 * HOUR)), NOON + 14 * HOUR);
    /* ahead again, and it stays so */
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 100 * DAY, 16 * HOUR)), NOON + 15 * HOUR);
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 101 * DAY, 16 * HOUR + DAY)), NOON + 15 * HOUR + DAY, "not yet");
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 101 * DAY + HOUR, 17 * HOUR + DAY)), NOON + 101 * DAY + HOUR,
                 "after a day");
    /* back: at once, and what follows is counted from there */
    cr_assert_eq(upkeep_trust_time(&u, at(NOON, 18 * HOUR + DAY)), NOON);
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 50 * DAY, 19 * HOUR + DAY)), NOON + HOUR);
    /* what a time server corrects is no jump */
    cr_assert_eq(upkeep_trust_time(&u, at(NOON + 2 * HOUR + 59 * 60 * SECOND, 20 * HOUR + DAY)),
                 NOON + 2 * HOUR + 59 * 60 * SECOND);
}

Test(writer_upkeep, the_longer_the_backlog_the_larger_its_part)
{
    struct upkeep u;
    const struct upkeep_time now = at(NOON, HOUR);

    upkeep_init(&u, &usual, now);
    cr_assert_eq(upkeep_pause(&u, false, false, 20, now), 10000, "nothing to do: seconds");
    cr_assert_eq(upkeep_pause(&u, true, false, 20, now), 10000);
    cr_assert_eq(upkeep_pause(&u, false, true, 20, now), 1000, "uploads came: a second");
    u.more[UPKEEP_COMPACT] = true;
    cr_assert_eq(upkeep_pause(&u, false, false, 20, now), 0, "nobody waits: at once");
    cr_assert_eq(upkeep_pause(&u, true, false, 20, now), 380, "uploads wait: a twentieth");
    u.backlog_since = now.steady - 61 * SECOND;
    cr_assert_eq(upkeep_pause(&u, true, false, 20, now), 60, "for more than a minute: a quarter");
    u.backlog_since = now.steady;
    u.totals.raw_bytes = 2 * usual.raw_bytes + 1;
    cr_assert_eq(upkeep_pause(&u, true, false, 20, now), 60);
    u.totals.raw_bytes = 3 * usual.raw_bytes + 1;
    cr_assert_eq(upkeep_pause(&u, true, false, 20, now), 20, "two horizons too much: a half");
    u.totals.raw_bytes = 5 * usual.raw_bytes + 1;
    cr_assert_eq(upkeep_pause(&u, true, false, 20, now), 0, "four too much: no pause");
    cr_assert_eq(upkeep_backlog(&u), 4 * usual.raw_bytes + 1);
    cr_assert_eq(upkeep_budget(&u), 100, "and more than a slice at a time");
    u.totals.raw_bytes = 9 * usual.raw_bytes + 1;
    cr_assert_eq(upkeep_budget(&u), 400);
    u.more[UPKEEP_COMPACT] = false;
    cr_assert_eq(upkeep_budget(&u), 0, "but not for nothing");
    u.more[UPKEEP_COMPACT] = true;
    u.totals.raw_bytes = 5 * usual.raw_bytes;
    cr_assert_eq(upkeep_budget(&u), 0);
    u.totals.raw_bytes = 0;
    u.more[UPKEEP_COMPACT] = false;
    u.task = UPKEEP_SHRINK;
    cr_assert_eq(upkeep_pause(&u, false, false, 0, now), 0, "a round that has begun is finished");
    cr_assert_eq(upkeep_pause(&u, true, false, 0, now), 19, "a slice of no length counts as a millisecond");
}

Test(writer_upkeep, idle_looks_as_often_as_the_policy_is_fine)
{
    struct store_policy policy = usual;
    struct upkeep u;
    const struct upkeep_time now = at(NOON, HOUR);

    policy.raw_age = SECOND;
    upkeep_init(&u, &policy, now);
    cr_assert_eq(upkeep_pause(&u, false, false, 1, now), 250);
    policy.raw_age = 8 * SECOND;
    upkeep_init(&u, &policy, now);
    cr_assert_eq(upkeep_pause(&u, false, false, 1, now), 1000);
}

/* One upload of a window that ended so long ago. */
static void put(struct store *s, uint32_t sequence, int64_t ago)
{
    static const struct counts nothing;
    struct store_build build = {.name = "/bin/made-up"};
    struct store_upload u = {.uid = 7,
                             .sender = {1},
                             .sequence = sequence,
                             .received = NOON,
                             .start = NOON - ago - SECOND,
                             .end = NOON - ago,
                             .processes_started = 1,
                             .build_count = 1,
                             .builds = &build};
    enum store_outcome outcome;
    struct profd_error e = {""};
    uint8_t *counts;
    size_t n;

    cr_assert_eq(buildid_parse("abcdef", 6, &build.id, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(counts_encode(&nothing, &counts, &n, &e), PROFD_OK, "%s", e.sentence);
    u.counts = counts;
    u.counts_size = n;
    cr_assert_eq(store_put_uploads(s, &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(outcome, STORE_STORED);
    free(counts);
}

static uint64_t retired(struct store *s)
{
    struct store_totals t;

    cr_assert_eq(store_get_totals(s, &t, NULL), PROFD_OK);
    return t.retired_uploads;
}

/* Slices until everything had its turn and nothing is left; how many. */
static unsigned settle(struct upkeep *u, struct store *s, struct upkeep_time now)
{
    struct profd_error e = {""};
    unsigned n = 0;

    do {
        cr_assert_eq(upkeep_run(u, s, now, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_lt(++n, 1000);
    } while (!upkeep_pause(u, false, false, 1, now));
    return n;
}

Test(writer_upkeep, days_are_removed_but_not_right_after_the_start)
{
    struct store_policy policy = usual;
    struct upkeep u;
    struct store *s;
    int64_t steady = HOUR;

    policy.keep_age = 3 * DAY;
    policy.raw_age = DAY;
    cr_assert_eq(scratch_store_open(&s, NULL), PROFD_OK);
    put(s, 1, 6 * DAY);
    put(s, 2, HOUR);
    upkeep_init(&u, &policy, at(NOON, steady));
    settle(&u, s, at(NOON, steady));
    cr_assert_eq(retired(s), 0, "a wrong clock may still be set right");
    steady += 599 * SECOND;
    settle(&u, s, at(NOON + 599 * SECOND, steady));
    cr_assert_eq(retired(s), 0);
    steady += 2 * SECOND;
    settle(&u, s, at(NOON + 601 * SECOND, steady));
    cr_assert_eq(retired(s), 1);
    /* the clock jumps ahead: the other one stays */
    steady += SECOND;
    settle(&u, s, at(NOON + 1000 * DAY, steady));
    cr_assert_eq(retired(s), 1);
    cr_assert_geq(u.slices[UPKEEP_FORGET], 4);
    store_close(s);
}

Test(writer_upkeep, a_failed_slice_does_not_keep_the_others_from_their_turn)
{
    char directory[] = "/tmp/profd-upkeep-XXXXXX", path[64];
    const struct upkeep_time now = at(NOON, HOUR);
    struct store *writer, *reader;
    struct upkeep u;

    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
    cr_assert_eq(store_sqlite_open_writer(path, &writer, NULL), PROFD_OK);
    cr_assert_eq(store_sqlite_open_reader(path, &reader, NULL), PROFD_OK);
    upkeep_init(&u, &usual, now);
    for (unsigned i = 0; i < 3 * UPKEEP_TASKS; i++) {
        struct profd_error e = {""};

        cr_assert_eq(u.task, i % UPKEEP_TASKS);
        /* a handle that cannot write fails every verb but the look at the totals */
        if (upkeep_run(&u, reader, now, &e)) {
            cr_assert_neq(*e.sentence, 0);
        } else {
            cr_assert(i % UPKEEP_TASKS == UPKEEP_SHRINK || i % UPKEEP_TASKS == UPKEEP_RELAY);
        }
    }
    store_close(reader);
    settle(&u, writer, now);
    cr_assert_gt(u.slices[UPKEEP_COMPACT], 0);
    store_close(writer);
    unlink(path);
    rmdir(directory);
}
