/* A daemon that ends while it stores segments: the hosts send them again, to another one, and each counts once. What
 * the first one had not inserted yet is removed from the tables here. */
#include <pthread.h>
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

/* One of two daemons that are given the same segments in the same moment. */
struct rival {
    struct store *s;
    const struct sender *from;
    pthread_barrier_t *begin;
    enum profd_status status;
    struct profd_error e;
};

/* As a host does: what is BUSY is sent again. */
static void *deliver_at_once(void *context)
{
    struct rival *x = context;
    struct store_receipt r[MOST];
    (void)pthread_barrier_wait(x->begin);
    do {
        x->status = store_put_segments(x->s, x->from->list, x->from->n, r, &x->e);
    } while (x->status == PROFD_BUSY);
    return NULL;
}

/* A host sends its segments to another daemon before the first has answered, and the daemons put them into two series:
 * to one the host has another name. Each segment counts once, and is shown in one of the series. */
TEST(arrival_of_segments_at_two_daemons_in_one_moment)
{
    const struct store_detail with = {.when = STORE_DETAIL_ALWAYS}, without = {.when = STORE_DETAIL_NEVER};
    for (uint8_t round = 0; round < 4; round++) {
        struct sender *s = eight_hours(7 + round);
        pthread_barrier_t begin;
        pthread_t threads[2];
        struct rival x[2] = {{.s = f->w, .from = s, .begin = &begin},
                             {.s = fixture_open_beside(f), .from = s, .begin = &begin}};
        admit(f, s, "a.example", 0, 24);
        store_set_detail(x[0].s, &with);
        store_set_detail(x[1].s, &without);
        cr_assert_eq(pthread_barrier_init(&begin, NULL, 2), 0);
        for (unsigned i = 0; i < 2; i++) {
            cr_assert_eq(pthread_create(&threads[i], NULL, deliver_at_once, &x[i]), 0);
        }
        for (unsigned i = 0; i < 2; i++) {
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
            cr_assert_eq(x[i].status, PROFD_OK, "%s", x[i].e.sentence);
        }
        (void)pthread_barrier_destroy(&begin);
        store_close(x[1].s);
        close_sender(s);
        for (unsigned rolled = 0; rolled < 2; rolled++) {
            const uint64_t all = look(f, everybody, &(struct store_filter){PROGRAM}).uploads;
            cr_assert_eq(all, 24u * (round + 1u), "round %u, %s: %llu uploads", round,
                         rolled ? "rolled up" : "segments", (unsigned long long)all);
            cr_assert_eq(centre_of(f).counted.uploads, all);
            if (rolled == 0 && round == 3) {
                compact_all(f, HOUR, UINT64_MAX, NOON + 3 * DAY);
            }
        }
    }
}
