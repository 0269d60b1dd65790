/* What a centre has counted lately can be asked for by minutes, before and after upkeep; and what of it cannot be read
 * is said. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/contract/store/arrival_fixture.h"

#define NOW (NOON / HOUR * HOUR + 45 * MINUTE)

/* Seals what the host has and delivers it at that time. */
static void send(struct fixture *f, struct sender *s, int64_t received)
{
    struct store_receipt r[MOST];
    const size_t before = s->n;
    seal(s);
    for (size_t i = before; i < s->n; i++) {
        s->list[i].received = received;
    }
    OK(f, store_put_segments(f->w, s->list + before, s->n - before, r + before, &f->e));
    for (size_t i = before; i < s->n; i++) {
        cr_assert(!r[i].unknown && r[i].outcome == STORE_SEGMENT_COUNTED && !r[i].again);
    }
}

static void expect_range(struct fixture *f, int64_t since, int64_t until, int64_t used_since, int64_t used_until,
                         uint64_t uploads)
{
    const struct store_filter filter = {PROGRAM, .since = since, .until = until};
    int64_t from, to;
    OK(f, store_get_range(f->r, &everybody, &filter, &from, &to, &f->e));
    cr_assert(from == used_since && to == used_until, "%+lld %+lld", (long long)(from - NOW), (long long)(to - NOW));
    const struct seen got = look(f, everybody, &filter);
    cr_assert_eq(got.uploads, uploads, "%llu", (unsigned long long)got.uploads);
}

/* Three uploads a minute for half an hour, which come every minute from two hosts. */
static void send_half_hour(struct fixture *f, struct sender *const hosts[2])
{
    for (unsigned i = 0; i < 30; i++) {
        const int64_t minute = NOW - (30 - i) * MINUTE;
        for (unsigned k = 0; k < 3; k++) {
            put_at(hosts[k % 2], 1 + k, 1 + i, minute + k * MINUTE / 3, 5 + k);
        }
        send(f, hosts[0], minute + MINUTE);
        send(f, hosts[1], minute + MINUTE);
        forget_sealed(hosts[0]);
        forget_sealed(hosts[1]);
    }
}

static void open_two(struct fixture *f, struct sender *hosts[2], bool same)
{
    for (unsigned k = 0; k < 2; k++) {
        hosts[k] = open_sender((uint8_t)(7 + k));
        admit(f, hosts[k], k == 0 || same ? "a.example" : "b.example", 0, 90);
    }
}

STORE_TEST(interval_of_minutes)
{
    struct sender *hosts[2];
    open_two(f, hosts, false);
    send_half_hour(f, hosts);
    for (unsigned round = 0; round < 3; round++) {
        expect_range(f, 0, 0, 0, 0, 90);
        expect_range(f, NOW - 15 * MINUTE, 0, NOW - 15 * MINUTE, 0, 45);
        expect_range(f, NOW - 15 * MINUTE + 1, 0, NOW - 15 * MINUTE, 0, 45);
        expect_range(f, NOW - 15 * MINUTE - 1, 0, NOW - 16 * MINUTE, 0, 48);
        expect_range(f, NOW - 10 * MINUTE, NOW - 5 * MINUTE - 1, NOW - 10 * MINUTE, NOW - 5 * MINUTE, 15);
        expect_range(f, NOW + MINUTE / 2, 0, NOW + MINUTE / 2, 0, 0);
        const struct store_centre c = centre_of(f);
        cr_assert(c.counted.uploads == 90 && c.series == 2 && c.damaged == 0);
        /* Nothing is old enough: the hour before stays, too. */
        compact_all(f, HOUR, UINT64_MAX, round == 0 ? NOW : NOW + HOUR);
        fixture_reopen(f);
    }
    close_sender(hosts[0]);
    close_sender(hosts[1]);
}

/* A host that was away sends what is wider: it is in wider rows. What is older than the hour before is in its hour. */
STORE_TEST(interval_of_a_host_that_was_away)
{
    struct sender *s = open_sender(7);
    admit(f, s, "a.example", 0, 90);
    put_at(s, 1, 1, NOW - 3 * HOUR, 5);
    put_at(s, 1, 2, NOW - 28 * MINUTE, 5);
    put_at(s, 1, 3, NOW - 20 * MINUTE, 5);
    put_at(s, 1, 4, NOW - 17 * MINUTE, 5);
    put_at(s, 1, 5, NOW - 2 * MINUTE, 5);
    send(f, s, NOW);
    cr_assert_eq(s->n, 2, "after hours, two segments of an hour");
    expect_range(f, NOW - MINUTE / 2, 0, NOW - 45 * MINUTE, 0, 4);
    expect_range(f, NOW - 150 * MINUTE, 0, NOW - 150 * MINUTE, 0, 4);
    expect_range(f, NOW - 190 * MINUTE, 0, NOW - 45 * MINUTE - 3 * HOUR, 0, 5);
    put_at(s, 1, 6, NOW - MINUTE, 5);
    send(f, s, NOW);
    expect_range(f, NOW - MINUTE / 2, 0, NOW - 45 * MINUTE, 0, 5);
    centre_of(f);
    close_sender(s);
}

/* Its segments are of the time between two acknowledgements. */
STORE_TEST(interval_widths_of_a_host)
{
    static const struct {
        int apart;
        uint64_t segments;
    } all[] = {{1, 10}, {4, 3}, {14, 1}, {40, 1}}; /* minutes */
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct sender *s = open_sender((uint8_t)(7 + i));
        struct store_acknowledgement none = {.sequence = 9999};
        for (int64_t k = 2; k > 0; k--) {
            OK(&s->store, store_acknowledge_segments(s->store.w, &none, 1, NOW - k * all[i].apart * MINUTE, &f->e));
        }
        OK(&s->store, store_acknowledge_segments(s->store.w, &none, 1, NOW, &f->e));
        for (unsigned k = 0; k < 10; k++) {
            struct made m;
            make_counted(&m, 1, 1, 1 + k, NOW - 12 * MINUTE + k * MINUTE, 5);
            m.u.received = NOW;
            put_counted(&s->store, &m);
        }
        struct store_relay r;
        OK(&s->store, store_get_relay(s->store.w, &r, &f->e));
        cr_assert_eq(r.open_segments, all[i].segments, "%d: %llu", all[i].apart, (unsigned long long)r.open_segments);
        close_sender(s);
    }
}

/* --- SQLite's only --- */

static void run_sql(const struct fixture *f, const char *sql)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static int64_t count_rows(const struct fixture *f, const char *condition)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM rollup WHERE %s", condition);
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

/* One row for a series and minute, whoever has sent it; when its hour has been over for an hour, one for the hour. */
Test(store_sqlite, interval_rows_become_an_hour)
{
    struct fixture f;
    struct sender *hosts[2];
    fixture_open(&f);
    open_two(&f, hosts, true);
    send_half_hour(&f, hosts);
    cr_assert(count_rows(&f, "level=3") == 30 && count_rows(&f, "1") == 30);
    const struct seen before = look_window(&f, 0, 0);
    compact_all(&f, DAY, UINT64_MAX, NOW + 2 * HOUR);
    cr_assert(count_rows(&f, "level=0") == 1 && count_rows(&f, "1") == 1);
    const struct seen after = look_window(&f, 0, 0);
    cr_assert(after.uploads == 90 && after.ticks == before.ticks && after.calls == before.calls);
    cr_assert(after.processes == before.processes && after.first == before.first && after.last == before.last);
    expect_range(&f, NOW - 15 * MINUTE, 0, NOW - 45 * MINUTE, 0, 90);
    for (size_t i = 0; i < 2; i++) { /* what comes later lands beside it, and follows */
        put_at(hosts[i], 1, 100 + i, NOW - MINUTE, 5);
        send(&f, hosts[i], NOW + MINUTE);
    }
    cr_assert(count_rows(&f, "level=0") == 1 && count_rows(&f, "level=3") == 1);
    expect_range(&f, 0, 0, 0, 0, 92);
    compact_all(&f, DAY, UINT64_MAX, NOW + 2 * HOUR);
    cr_assert_eq(count_rows(&f, "1"), 1);
    cr_assert_eq(centre_of(&f).counted.uploads, 92);
    close_sender(hosts[0]);
    close_sender(hosts[1]);
    fixture_close(&f);
}

/* Rows that take more than a tenth of raw-bytes become wider, the oldest first; nothing is lost. */
Test(store_sqlite, interval_rows_become_wider)
{
    struct fixture f;
    struct sender *hosts[2];
    fixture_open(&f);
    open_two(&f, hosts, false);
    send_half_hour(&f, hosts);
    compact_all(&f, DAY, UINT64_MAX, NOW);
    cr_assert_eq(count_rows(&f, "level=3"), 60);
    compact_all(&f, DAY, 40000, NOW + 2 * MINUTE);
    cr_assert(count_rows(&f, "level=3") > 0 && count_rows(&f, "level=4") > 0);
    cr_assert_eq(count_rows(&f, "level<3"), 0);
    const struct seen few = look_window(&f, NOW - 30 * MINUTE + 1, 0);
    cr_assert(few.uploads == 90 && few.rolled < 60);
    expect_range(&f, NOW - 29 * MINUTE, 0, NOW - 30 * MINUTE, 0, 90);
    centre_of(&f);
    compact_all(&f, DAY, 0, NOW + 4 * MINUTE);
    cr_assert(count_rows(&f, "level=0") == 2 && count_rows(&f, "1") == 2);
    expect_range(&f, NOW - MINUTE, 0, NOW - 45 * MINUTE, 0, 90);
    centre_of(&f);
    close_sender(hosts[0]);
    close_sender(hosts[1]);
    fixture_close(&f);
}

/* Retention and delete remove them. */
Test(store_sqlite, interval_rows_are_removed)
{
    for (unsigned way = 0; way < 2; way++) {
        struct fixture f;
        struct sender *hosts[2];
        uint64_t uploads = 90;
        fixture_open(&f);
        open_two(&f, hosts, false);
        send_half_hour(&f, hosts);
        run_sql(&f,
                "UPDATE rollup SET counts=zeroblob(length(counts)) WHERE level=3 AND id=(SELECT min(id) FROM rollup)");
        put_at(hosts[0], 1, 99, NOW - 30 * MINUTE, 5);
        send(&f, hosts[0], NOW);
        cr_assert_eq(count_rows(&f, "level=16"), 1);
        if (way == 0) {
            OK(&f, store_delete_build(f.w, &everybody, full_id("aa01"), &uploads, &f.e));
        }
        retire_all(&f, DAY, 0, NOW + (way == 0 ? 0 : 10 * DAY));
        cr_assert_eq(count_rows(&f, "1"), 0);
        const struct store_centre c = centre_of(&f);
        cr_assert(c.removed.uploads == 91 && c.damaged == 0);
        close_sender(hosts[0]);
        close_sender(hosts[1]);
        fixture_close(&f);
    }
}

static void spoil_page(const char *path, int64_t page, int64_t size)
{
    char rubbish[4096];
    const int fd = open(path, O_WRONLY);
    memset(rubbish, 0x5a, sizeof rubbish);
    for (int64_t at = 0; at < size; at += (int64_t)sizeof rubbish) {
        cr_assert_eq(pwrite(fd, rubbish, sizeof rubbish, (page - 1) * size + at), (ssize_t)sizeof rubbish);
    }
    close(fd);
}

/* If the index that lists the rows cannot be read, no row is put aside, and upkeep does not try for ever. */
Test(store_sqlite, interval_index_damaged)
{
    struct fixture f;
    struct sender *hosts[2];
    struct store_progress p = {.more = true};
    const struct store_policy policy = {.raw_age = DAY, .raw_bytes = UINT64_MAX};
    fixture_open(&f);
    open_two(&f, hosts, false);
    send_half_hour(&f, hosts);
    const int64_t rows = count_rows(&f, "1"), size = fixture_count(&f, "PRAGMA page_size"),
                  root = fixture_count(&f, "SELECT rootpage FROM sqlite_schema WHERE name='rollup_open'");
    store_close(f.r);
    store_close(f.w);
    spoil_page(f.path, root, size);
    OK(&f, store_sqlite_open_writer(f.path, &f.w, &f.e));
    OK(&f, store_sqlite_open_reader(f.path, &f.r, &f.e));
    for (int calls = 0; p.more; calls++) {
        cr_assert_lt(calls, 1000, "upkeep does not end");
        OK(&f, store_compact(f.w, &policy, NOW + 2 * HOUR, &p, &f.e)); /* the rest of the work can continue */
    }
    cr_assert(strstr(f.e.sentence, f.path) && strstr(f.e.sentence, "is damaged"), "%s", f.e.sentence);
    cr_assert_eq(count_rows(&f, "level=16"), 0);
    cr_assert_eq(count_rows(&f, "1"), rows);
    close_sender(hosts[0]);
    close_sender(hosts[1]);
    fixture_close(&f);
}

/* A sum that cannot be read ends nothing: it is put aside and said, and what comes is counted. */
Test(store_sqlite, interval_damaged)
{
    static const struct {
        const char *row, *still;         /* what is damaged; what cannot be read afterwards */
        uint64_t damaged, lost, of_hour; /* lost of what hours add up to; left of the old hour */
    } all[] = {{"level=3 AND at=(SELECT max(at) FROM rollup WHERE level=3)", "put aside", 1, 2, 4},
               {"level=0", "put aside", 1, 0, 1},
               {"level=1", "", 0, 0, 4},
               {"level=2", "", 0, 0, 4},
               {"level IN (1, 2)", "", 0, 0, 4}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct fixture f;
        char sql[128];
        struct sender *s = open_sender(7);
        fixture_open(&f);
        admit(&f, s, "a.example", 0, 90);
        for (unsigned k = 0; k < 3; k++) {
            put_at(s, 1, 1 + k, NOW - 3 * DAY + k, 5);
        }
        send(&f, s, NOW);
        compact_all(&f, DAY, UINT64_MAX, NOW); /* also in sums of a day and of all time */
        put_at(s, 1, 4, NOW, 5);
        put_at(s, 1, 5, NOW + 1, 5);
        send(&f, s, NOW + 1);
        cr_assert_eq(count_rows(&f, "1"), 4);
        const uint64_t epoch = epoch_of(&f, everybody, full_id("aa01"));
        snprintf(sql, sizeof sql, "UPDATE rollup SET counts=zeroblob(length(counts)) WHERE %s", all[i].row);
        run_sql(&f, sql);
        put_at(s, 1, 6, NOW + 2, 5);
        put_at(s, 1, 7, NOW - 3 * DAY + 7, 5);
        forget_sealed(s);
        send(&f, s, NOW + 3);
        compact_all(&f, DAY, UINT64_MAX, NOW);
        const struct store_health *h = store_get_health(f.w);
        cr_assert(!h->failed && !h->damaged, "%s", h->error.sentence);
        struct store_centre c;
        OK(&f, store_get_centre(f.w, &c, &f.e));
        cr_assert(c.damaged == all[i].damaged && c.counted.uploads == 7);
        const char *said = verify_all(&f);
        cr_assert(all[i].still[0] ? strstr(said, all[i].still) != NULL : said[0] == 0, "%s: %s", all[i].row, said);
        cr_assert_eq(marks(&f, 0, 0, "a.example"), all[i].damaged ? INEXACT_SEGMENT_MISSING : 0);
        cr_assert_gt(epoch_of(&f, everybody, full_id("aa01")), epoch);
        cr_assert_eq(look_window(&f, 1, NOW + DAY).uploads, 7 - all[i].lost);
        cr_assert_eq(look_window(&f, NOW - 3 * DAY - 45 * MINUTE, NOW - 3 * DAY + MINUTE).uploads, all[i].of_hour);
        close_sender(s);
        fixture_close(&f);
    }
}
