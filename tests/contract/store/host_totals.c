/* What a centre keeps without the host in its series: totals by host are what the hosts have sent, and nothing of a
 * host is shown as if it were of another. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/shares.h"
#include "tests/contract/store/arrival_fixture.h"
#include "tests/memory_tier.h"

struct told {
    uint64_t rows, uploads, calls, processes, nanoseconds, touching;
};

static enum profd_status add_row(void *context, const struct store_row *row, struct profd_error *e)
{
    struct told *t = context;
    bool named = false;
    (void)e;
    for (size_t i = 0; i < row->label_count; i++) {
        named |= strcmp(row->labels[i].name, "host") == 0;
    }
    cr_assert(named && row->rolled && row->host_count == 1 && (row->shares == NULL) == (row->counts != NULL));
    t->rows += row->shares != NULL;
    t->uploads += row->uploads;
    t->processes += row->processes_started;
    t->calls += row->calls;
    for (size_t i = 0; row->shares != NULL && i < row->build_count; i++) {
        t->nanoseconds += row->shares[i].nanoseconds;
        t->touching += row->shares[i].calls;
    }
    return PROFD_OK;
}

/* What is told of a host (NULL: of all). */
static struct told tell(struct fixture *f, const char *host, int64_t since, int64_t until)
{
    const struct store_matcher m = {.name = "host", .value = host};
    const struct store_filter filter = {
        PROGRAM, .by_host = true, .since = since, .until = until, .matcher_count = host ? 1 : 0, .matchers = &m};
    struct told t = {0};
    OK(f, store_each_upload(f->r, &everybody, &filter, add_row, &t, &f->e));
    return t;
}

static void set_detail(struct fixture *f, enum store_detail_when when, uint64_t most)
{
    store_set_detail(f->w, &(struct store_detail){.when = when, .most = most});
}

static uint32_t reasons_of(struct fixture *f, enum store_match match, const char *host)
{
    const struct store_matcher m = {.name = "host", .value = host, .match = match};
    const struct store_filter filter = {PROGRAM, .matcher_count = 1, .matchers = &m};
    uint32_t reasons;
    OK(f, store_get_marks(f->r, &everybody, &filter, STORE_OF_ALL, &reasons, &f->e));
    cr_assert_eq(look(f, everybody, &filter).uploads, 0, "what could be of any host is not shown as of this one");
    return reasons;
}

static void deliver_all(struct fixture *f, struct sender *s)
{
    struct store_receipt r[MOST];
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e));
}

/* A centre that keeps totals, to which two hosts have sent all that they have. */
static void fill_with_two_hosts(struct fixture *f, struct sender *s, struct sender *t)
{
    set_detail(f, STORE_DETAIL_NEVER, 0);
    admit(f, s, "a.example", 0, 24);
    admit(f, t, "b.example", 0, 24);
    deliver_all(f, s);
    deliver_all(f, t);
}

static void open_with_two_hosts(struct fixture *f, struct sender *s, struct sender *t)
{
    fixture_open(f);
    fill_with_two_hosts(f, s, t);
}

/* Totals may be given by hours or, when these are over, by days. */
STORE_TEST(host_totals)
{
    struct sender *s = eight_hours(7), *t = eight_hours(9);
    fill_with_two_hosts(f, s, t);
    deliver_all(f, t);
    const struct seen all = look(f, everybody, &(struct store_filter){PROGRAM}),
                      own = look(&s->store, everybody, &(struct store_filter){PROGRAM});
    cr_assert(all.uploads == 48 && all.rolled == 8 && all.calls == 2 * own.calls);
    for (unsigned round = 0; round < 2; round++) {
        struct told x = tell(f, NULL, 0, 0);
        cr_assert((x.rows == 16 || (round > 0 && x.rows == 2)) && x.uploads == 48 && x.calls == all.calls &&
                  x.processes == all.processes);
        x = tell(f, "a.example", 0, 0);
        cr_assert((x.rows == 8 || (round > 0 && x.rows == 1)) && x.uploads == 24 && x.calls == own.calls &&
                  x.processes == own.processes);
        cr_assert(x.nanoseconds > 0 && x.touching >= x.calls);
        cr_assert_eq(tell(f, "c.example", 0, 0).rows, 0);
        x = tell(f, "b.example", MIDNIGHT + HOUR + 1, MIDNIGHT + 3 * HOUR - 1);
        cr_assert(x.rows == 2 && x.uploads == 6, "whole hours");
        cr_assert_eq(reasons_of(f, STORE_MATCH_EQUAL, "a.example"), INEXACT_HOST_TOTALS);
        cr_assert_eq(reasons_of(f, STORE_MATCH_NOT_EQUAL, "a.example"), INEXACT_HOST_TOTALS);
        cr_assert_eq(reasons_of(f, STORE_MATCH_EQUAL, "c.example"), 0);
        cr_assert_eq(centre_of(f).counted.uploads, 48);
        compact_all(f, HOUR, UINT64_MAX, NOON + 3 * DAY);
    }
    const struct store_filter hours = {PROGRAM, .by_host = true, .since = MIDNIGHT + HOUR + 1};
    int64_t from, to;
    OK(f, store_get_range(f->r, &everybody, &hours, &from, &to, &f->e));
    cr_assert_eq(from, MIDNIGHT + HOUR);
    retire_all(f, 10 * DAY, 0, NOON + 20 * DAY);
    cr_assert(centre_of(f).removed.uploads == 48 && tell(f, NULL, 0, 0).rows == 0);
    close_sender(s);
    close_sender(t);
}

/* A delete leaves none. */
STORE_TEST(host_totals_deleted)
{
    struct sender *s = eight_hours(7);
    uint64_t uploads;
    set_detail(f, STORE_DETAIL_NEVER, 0);
    admit(f, s, "a.example", 0, 24);
    deliver_all(f, s);
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    cr_assert_eq(tell(f, NULL, 0, 0).rows, 0);
    retire_all(f, DAY, 0, NOON);
    centre_of(f);
    close_sender(s);
}

/* What is told of hours, days and hosts. */
static void tell_many(struct fixture *f, struct told out[6])
{
    struct told *all = out + 5;
    const struct store_filter by_hour = {PROGRAM, .by_host = true, .since = MIDNIGHT, .until = NOON + DAY,
                                         .widest = HOUR};
    out[0] = tell(f, NULL, 0, 0);
    out[1] = tell(f, "a.example", MIDNIGHT, MIDNIGHT + DAY);
    out[2] = tell(f, "b.example", MIDNIGHT + HOUR + 1, MIDNIGHT + 3 * HOUR - 1);
    out[3] = tell(f, "c.example", 0, 0);
    out[4] = tell(f, NULL, MIDNIGHT + 4 * HOUR, MIDNIGHT + 4 * DAY);
    *all = (struct told){0};
    OK(f, store_each_upload(f->r, &everybody, &by_hour, add_row, all, &f->e));
}

static void expect_told(struct fixture *f, const struct told before[6], const char *when)
{
    struct told now[6];
    tell_many(f, now);
    for (unsigned i = 0; i < 6; i++) {
        now[i].rows = before[i].rows; /* by hours or by days */
        cr_assert_eq(memcmp(&now[i], &before[i], sizeof now[i]), 0, "%s: %u: %llu and %llu uploads", when, i,
                     (unsigned long long)now[i].uploads, (unsigned long long)before[i].uploads);
    }
}

static uint64_t rows_here(struct fixture *f)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, "SELECT count(*) FROM host_total", -1, &q, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    const uint64_t n = (uint64_t)sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

static struct memory_tier tier;

/* Totals move to the tier with their hours and days, and are told as before. What comes while the day is frozen stays,
 * and moves with the next block. */
STORE_TEST(host_totals_of_blocks)
{
    const int64_t now = NOON + 9 * DAY;
    struct sender *s = eight_hours(7), *t = eight_hours(9), *u = eight_hours(11);
    struct told before[6], late[6];
    struct store_receipt r[MOST];
    memory_tier_init(&tier);
    memory_tier_attach(&tier, f->r);
    store_set_tier(f->w, true);
    fill_with_two_hosts(f, s, t);
    admit(f, u, "c.example", 0, 24);
    compact_all(f, HOUR, UINT64_MAX, now);
    tell_many(f, before);
    cr_assert(before[0].uploads == 48 && before[1].uploads == 24 && before[2].uploads == 6 && before[3].uploads == 0);
    cr_assert_eq(before[5].rows, 16);
    for (unsigned i = 0; i < 3; i++) { /* begun, read in part, read */
        memory_tier_step(&tier, f->w, now, now, i < 2 ? 1 : SIZE_MAX);
    }
    OK(f, store_put_segments(f->w, u->list, 4, r, &f->e));
    OK(f, store_put_segments(f->w, s->list, s->n, r, &f->e)); /* a repetition */
    tell_many(f, late);
    cr_assert(late[0].uploads == 60 && late[3].uploads == 12);
    memory_tier_seal(&tier, f->w, now, now - DAY);
    cr_assert_eq(rows_here(f), 4, "those that came late");
    expect_told(f, late, "after the first block");
    centre_of(f);
    OK(f, store_put_segments(f->w, u->list + 4, 4, r, &f->e));
    compact_all(f, HOUR, UINT64_MAX, now);
    tell_many(f, late);
    cr_assert_eq(late[3].uploads, 24);
    memory_tier_seal(&tier, f->w, now, now);
    cr_assert_eq(rows_here(f), 0);
    expect_told(f, late, "after the second block");
    cr_assert_eq(tell(f, "a.example", 0, 0).rows, 1, "of the day");
    cr_assert_eq(reasons_of(f, STORE_MATCH_EQUAL, "c.example"), INEXACT_HOST_TOTALS);
    cr_assert_eq(reasons_of(f, STORE_MATCH_EQUAL, "d.example"), 0);
    const struct store_filter hours = {PROGRAM, .by_host = true, .since = MIDNIGHT + HOUR + 1};
    int64_t from, to;
    OK(f, store_get_range(f->r, &everybody, &hours, &from, &to, &f->e));
    cr_assert_eq(from, MIDNIGHT + HOUR);
    centre_of(f);
    memory_tier_done(&tier);
    close_sender(s);
    close_sender(t);
    close_sender(u);
}

/* What the tier gives is not believed: each cut or changed encoding is refused, or is other numbers of whole hosts. */
STORE_TEST(host_totals_of_blocks_are_checked)
{
    struct sender *s = eight_hours(7), *t = eight_hours(9);
    const struct store_filter filter = {PROGRAM, .by_host = true};
    memory_tier_init(&tier);
    memory_tier_attach(&tier, f->r);
    store_set_tier(f->w, true);
    fill_with_two_hosts(f, s, t);
    compact_all(f, HOUR, UINT64_MAX, NOON + 9 * DAY);
    memory_tier_seal(&tier, f->w, NOON + 9 * DAY, NOON + 9 * DAY);
    struct store_bulk *day = &tier.sums[tier.count - 1].bulk;
    const size_t size = day->totals_size, half = size / 2;
    for (day->totals_size = 1; day->totals_size < size; day->totals_size++) {
        struct told x = {0};
        if (day->totals_size == half) {
            OK(f, store_each_upload(f->r, &everybody, &filter, add_row, &x, &f->e));
            cr_assert_eq(x.uploads, 24, "the first host is whole");
        } else {
            FAILS(f, PROFD_DAMAGED, store_each_upload(f->r, &everybody, &filter, add_row, &x, &f->e));
        }
    }
    memory_tier_done(&tier);
    close_sender(s);
    close_sender(t);
}

/* auto: detail ends at the limit of series of a tenant's hosts in an hour, in both of its ways to count them, and
 * returns. Another tenant's hosts keep theirs. */
Test(store_sqlite, host_detail_is_limited)
{
    struct fixture f;
    struct sender *s[5];
    fixture_open(&f);
    set_detail(&f, STORE_DETAIL_AUTO, 2);
    for (unsigned i = 0; i < 5; i++) {
        char name[16];
        s[i] = open_sender((uint8_t)(7 + i));
        snprintf(name, sizeof name, "h%u.example", i);
        admit(&f, s[i], name, 0, 24);
        put_at(s[i], 1, 1, NOON + i / 4 * 3 * HOUR, 5);
        seal(s[i]);
        s[i]->list[0].received = NOON + i / 4 * 3 * HOUR;
        deliver_all(&f, s[i]);
        const struct store_centre c = centre_of(&f);
        cr_assert(c.detail == (i < 2 || i == 4) && c.series == (i < 4 ? i + 1 : 1), "%u: %llu", i,
                  (unsigned long long)c.series);
    }
    struct sender *other = open_sender(77);
    struct store_arrival a = {.name = "other.example", .tenant = store_tenant_uid(2), .now = NOON + DAY};
    struct store_admission admission;
    memcpy(a.host, other->identity, sizeof a.host);
    OK(&f, store_admit_hosts(f.w, &a, 1, &admission, &f.e));
    put_at(other, 1, 1, NOON, 5);
    seal(other);
    other->list[0].received = NOON;
    deliver_all(&f, other);
    cr_assert_eq(tell(&f, "other.example", 0, 0).rows, 0, "it has its functions");
    close_sender(other);
    const struct told x = tell(&f, NULL, 0, 0);
    cr_assert(x.rows == 2 && x.uploads == 6, "each upload once, by totals or with its functions");
    cr_assert_eq(tell(&f, "h3.example", 0, 0).rows, 1);
    set_detail(&f, STORE_DETAIL_ALWAYS, 1);
    put_at(s[4], 1, 2, NOON + 3 * HOUR + 1, 5);
    seal(s[4]);
    s[4]->list[1].received = NOON + 3 * HOUR + 1;
    deliver(&f, &s[4]->list[1]);
    cr_assert(centre_of(&f).detail && tell(&f, NULL, 0, 0).rows == 2);
    for (unsigned i = 0; i < 5; i++) {
        close_sender(s[i]);
    }
    fixture_close(&f);
}

/* Verification finds totals that are not what the ledger says. */
Test(store_sqlite, host_totals_verification)
{
    static const char *const plants[][2] = {
        {"UPDATE host_total SET calls=calls+1 WHERE hour=(SELECT min(hour) FROM host_total)", "totals by host"},
        {"DELETE FROM host_total WHERE host=1 AND hour=(SELECT min(hour) FROM host_total)", "totals by host"},
        {"INSERT INTO host_total SELECT series, 1, host, 0, 1, 1, 1, 1, 1, 1, 0, shares FROM host_total LIMIT 1",
         "a total of a host"},
    };
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        struct fixture f;
        struct sender *s = eight_hours(7), *t = eight_hours(9);
        sqlite3 *db;
        open_with_two_hosts(&f, s, t);
        centre_of(&f);
        cr_assert_eq(sqlite3_open(f.path, &db), SQLITE_OK);
        cr_assert_eq(sqlite3_exec(db, plants[i][0], NULL, NULL, NULL), SQLITE_OK, "%s", plants[i][0]);
        sqlite3_close(db);
        const char *said = verify_all(&f);
        cr_assert(strstr(said, plants[i][1]) != NULL, "%s: '%s'", plants[i][0], said);
        close_sender(s);
        close_sender(t);
        fixture_close(&f);
    }
}
