/* What each user stores, as the store keeps it row by row, is what a count of all rows gives. */
#include <criterion/criterion.h>
#include <sqlite3.h>

#include "tests/contract/store/harvest_fixture.h"
#include "tests/contract/store/upkeep_fixture.h"

static int64_t ask(struct fixture *f, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    const int rc = sqlite3_step(q);
    cr_assert(rc == SQLITE_ROW || rc == SQLITE_DONE, "%s", sqlite3_errmsg(db));
    const int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    sqlite3_close(db);
    return value;
}

/* Σ over users of |kept − counted|. */
static const char difference[] =
    "WITH counted(uid, bytes) AS ("
    " SELECT s.uid, 128+length(u.counts) FROM upload u JOIN series s ON s.id=u.series"
    " UNION ALL SELECT d.uid, 128+length(u.counts) FROM upload u JOIN doomed d ON d.series=u.series"
    " UNION ALL SELECT s.uid, 128+length(r.hosts)+length(r.counts)+length(r.spread) FROM rollup r JOIN series s ON "
    "s.id=r.series"
    " UNION ALL SELECT s.uid, 128+length(p.groups) FROM rollup_processes p JOIN series s ON s.id=p.series"
    " UNION ALL SELECT s.uid, 128+length(l.shares) FROM ledger l JOIN series s ON s.id=l.series"
    " UNION ALL SELECT d.uid, 128+length(l.shares) FROM ledger l JOIN doomed d ON d.series=l.series"
    " UNION ALL SELECT uid, 128+length(labels)+length(shares) FROM series"
    " UNION ALL SELECT i.uid, 128+length(s.bytes) FROM snapshot s JOIN instance i ON i.id=s.instance"
    " UNION ALL SELECT uid, 128+length(name) FROM instance"
    " UNION ALL SELECT uid, 128+length(CAST(name AS BLOB)) FROM build_user"
    " UNION ALL SELECT min(s.uid), 128+length(o.encoded)+length(o.bounds)+length(CAST(min(s.name) AS BLOB))+"
    "length(CAST(min(s.note) AS BLOB)) FROM object o JOIN object_sender s ON s.object=o.id GROUP BY o.id HAVING "
    "count(*)=1),"
    " both(uid, bytes) AS (SELECT uid, bytes FROM counted UNION ALL SELECT uid, -bytes FROM user_bytes)"
    " SELECT coalesce(sum(abs(x)), 0) FROM (SELECT sum(bytes) AS x FROM both GROUP BY uid)";

static void some_uploads(struct fixture *f, unsigned sender, int64_t end)
{
    struct made m;
    struct made_object o;
    for (uint32_t i = 1; i <= 40; i++) {
        make_counted(&m, 1 + i % 3, sender, i, end + i, i);
        if (i % 4 == 0) {
            add_label(&m, "service", i % 8 ? "web" : "mail");
        }
        cr_assert_eq(put_counted(f, &m), STORE_STORED);
    }
    make_object(&o, full_id("aa01"), sender % 2 ? "odd" : "even", sender, false, "names");
    cr_assert_eq(store_put_object(f->w, &o.o, &f->e), PROFD_OK);
}

static void live_through(struct fixture *f, unsigned sender)
{
    struct made_harvest x;
    uint64_t uploads;
    const struct store_scope two = only(2);
    for (unsigned day = 0; day < 3; day++) {
        some_uploads(f, sender + day, NOON - (int64_t)(5 - day) * 24 * HOUR);
    }
    for (unsigned p = 1; p <= 3; p++) {
        for (uint64_t base = 0; base < 3; base++) {
            harvest_one(f, p, 10 * sender + p, base, NOON, 5 + base);
        }
    }
    make_harvest(&x, 1, 10 * sender + 1, 3, NOON, 0);
    x.h.ended = true;
    harvest(f, &x);
    cr_assert_eq(ask(f, difference), 0, "after uploads and harvests");
    compact_all(f, HOUR, 0, NOON + 2 * HOUR);
    cr_assert_eq(ask(f, difference), 0, "after rolling up");
    cr_assert_eq(store_remove_ids(f->w, INT64_MAX / 2, &f->e), PROFD_OK);
    cr_assert_eq(ask(f, difference), 0, "after forgetting");
    retire_all(f, 4 * 24 * HOUR, 0, NOON + 2 * HOUR);
    cr_assert_eq(ask(f, difference), 0, "after retention");
    cr_assert_eq(store_delete_build(f->w, &two, full_id("aa01"), &uploads, &f->e), PROFD_OK, "%s", f->e.sentence);
    retire_all(f, 0, 0, NOON + 2 * HOUR);
    cr_assert_eq(ask(f, difference), 0, "after a delete");
}

static struct fixture f;

static void open_it(void)
{
    fixture_open(&f);
}

static void close_it(void)
{
    fixture_close(&f);
}

TestSuite(store_users, .init = open_it, .fini = close_it);

Test(store_users, bytes_are_kept_as_rows_change)
{
    live_through(&f, 1);
    cr_assert_gt(ask(&f, "SELECT sum(bytes) FROM user_bytes"), 0);
}
