/* A daemon that ends while it stores segments: the hosts send them again, to another one, and each counts once. What
 * the first one had not inserted yet is removed from the tables here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/engine_internal.h"
#include "tests/contract/store/arrival_fixture.h"
#include "tests/contract/store/clickhouse_server.h"

#define TEST(name)                                                                                                     \
    static void name##_body(struct fixture *f);                                                                        \
    STORE_TEST_OF(store_clickhouse, FIXTURE_CLICKHOUSE, name)                                                          \
    static void name##_body(struct fixture *f)

static void empty(const struct fixture *f, const char *table)
{
    char statement[64];
    snprintf(statement, sizeof statement, "TRUNCATE TABLE %s", table);
    free(clickhouse_server_ask(f->database, statement));
}

/* To another daemon, which knows nothing of the first. */
static void deliver_again(struct fixture *f, struct sender *s, bool again)
{
    struct store_receipt r[MOST];
    struct store *other = fixture_open_beside(f);
    OK(f, store_put_segments(other, s->list, s->n, r, &f->e));
    for (size_t i = 0; i < s->n; i++) {
        cr_assert(r[i].verdict == STORE_ARRIVED && r[i].outcome == STORE_SEGMENT_COUNTED && r[i].again == again);
    }
    store_close(other);
}

static void expect_once(struct fixture *f, const struct seen *sent)
{
    const struct seen got = look(f, everybody, &(struct store_filter){PROGRAM});
    cr_assert(got.uploads == 24 && got.ticks == sent->ticks && got.calls == sent->calls, "%llu uploads",
              (unsigned long long)got.uploads);
    cr_assert_eq(centre_of(f).counted.uploads, 24);
}

/* It ended before the arrivals were there; sums have the segments. Now the host's name and clock are others, but the
 * segments stay where they are. */
TEST(arrival_after_an_end_before_the_arrivals)
{
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    const struct seen sent = look(&s->store, everybody, &(struct store_filter){PROGRAM});
    admit(f, s, "a.example", 0, 24);
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
    compact_all(f, HOUR, UINT64_MAX, NOON + 3 * DAY);
    empty(f, "arrival");
    admit(f, s, "b.example", 2 * HOUR, 24);
    deliver_again(f, s, false);
    expect_once(f, &sent);
    compact_all(f, HOUR, UINT64_MAX, NOON + 3 * DAY);
    expect_once(f, &sent);
    const struct store_matcher wanted = {.name = "host", .value = "a.example"};
    cr_assert_eq(look(f, everybody, &(struct store_filter){PROGRAM, .matcher_count = 1, .matchers = &wanted}).uploads,
                 24);
    close_sender(s);
}

/* It ended before it said what has changed. */
TEST(arrival_after_an_end_before_the_changes)
{
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    const struct seen sent = look(&s->store, everybody, &(struct store_filter){PROGRAM});
    admit(f, s, "a.example", 0, 24);
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
    empty(f, "change");
    empty(f, "version");
    cr_assert_eq(look_window(f, 0, 0).uploads, 0);
    const uint64_t epoch = epoch_of(f, everybody, full_id("aa01"));
    deliver_again(f, s, true);
    expect_once(f, &sent);
    cr_assert_gt(epoch_of(f, everybody, full_id("aa01")), epoch);
    close_sender(s);
}

/* Of a day of receipt, ranges of keys are left. */
TEST(arrival_days_become_ranges)
{
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    admit(f, s, "a.example", 0, 24);
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
    for (unsigned i = 0; i < 8; i++) {
        OK(f, store_remove_ids(f->w, NOON + 40 * DAY - LIMIT_ID_DAYS * DAY, &f->e));
    }
    char *left = clickhouse_server_ask(f->database, "SELECT (SELECT count() FROM arrival), first, last FROM known");
    cr_assert_str_eq(left, "0\t1\t8\n");
    free(left);
    deliver_again(f, s, true);
    cr_assert_eq(centre_of(f).counted.uploads, 24);
    close_sender(s);
}

/* Two daemons that are asked for hosts that are new to both. */
TEST(arrival_of_hosts_at_two_daemons)
{
    struct store *other = fixture_open_beside(f);
    struct store_admission admission;
    char name[16];
    for (uint8_t i = 0; i < 6; i++) {
        struct store_arrival a = {.name = name, .number = 1, .now = NOON};
        snprintf(name, sizeof name, "h%u", i);
        memset(a.host, 1 + i, sizeof a.host);
        OK(f, store_admit_hosts(i % 2 ? other : f->w, &a, 1, &admission, &f->e));
    }
    char *slots =
        clickhouse_server_ask(f->database, "SELECT uniqExact(slot), max(slot), uniqExact(identity) FROM host");
    cr_assert_str_eq(slots, "6\t6\t6\n");
    free(slots);
    store_close(other);
}

/* The clock of one daemon is ahead of the other's: what the second one writes of a host later counts all the same. */
TEST(arrival_after_a_daemon_whose_clock_is_ahead)
{
    struct store *other = fixture_open_beside(f);
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    engine_saw(engine_self(other), engine_number(engine_self(f->w)) + DAY);
    struct store_arrival a = {.name = "a.example", .number = 1, .now = NOON};
    struct store_admission admission;
    memcpy(a.host, s->list[0].host, sizeof a.host);
    OK(f, store_admit_hosts(other, &a, 1, &admission, &f->e));
    a.name = "b.example";
    OK(f, store_admit_hosts(f->w, &a, 1, &admission, &f->e));
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
    char *now = clickhouse_server_ask(f->database, "SELECT name, began > 0 FROM host FINAL");
    cr_assert_str_eq(now, "b.example\t1\n");
    free(now);
    store_close(other);
    close_sender(s);
}

/* The time for a batch is over: it is refused, and counts once when it comes again. */
TEST(arrival_without_time)
{
    struct sender *s = eight_hours(7);
    struct store_receipt r[MOST];
    const struct seen sent = look(&s->store, everybody, &(struct store_filter){PROGRAM});
    admit(f, s, "a.example", 0, 24);
    store_set_until(f->w, 1);
    cr_assert_eq(store_put_segments(f->w, s->list, s->n, r, &f->e), PROFD_BUSY);
    cr_assert(strstr(f->e.sentence, "answers too slowly"), "%s", f->e.sentence);
    store_set_until(f->w, 0);
    deliver_again(f, s, false);
    expect_once(f, &sent);
    close_sender(s);
}
