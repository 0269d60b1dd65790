/* Verification finds every kind of falsehood, planted with plain SQL in a database that was whole, and none in one that
 * is. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/store/harvest_fixture.h"

static struct fixture f;

static void execute(const char *sql)
{
    sqlite3 *db;
    char *why = NULL;
    cr_assert_eq(sqlite3_open(f.path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &why), SQLITE_OK, "%s: %s", sql, why);
    cr_assert_gt(sqlite3_changes(db), 0, "%s changes nothing", sql);
    sqlite3_close(db);
}

/* Two series; two whole days rolled up and folded, and the third day's uploads single but for one hour. */
static void fill(void)
{
    struct made m;
    uint64_t sealed;
    fixture_open(&f);
    OK(&f, store_relay_begin(f.w, (const uint8_t *)"epoch epoch!", 0, &f.e));
    for (unsigned sender = 1; sender <= 4; sender++) {
        for (uint32_t i = 0; i < 24; i++) {
            make_counted(&m, 1 + sender % 2, sender, i + 1, MIDNIGHT + i * 3 * HOUR + sender, 10 * sender + i);
            put_counted(&f, &m);
        }
    }
    OK(&f, store_seal_segments(f.w, 3, MIDNIGHT, &sealed, &f.e));
    compact_all(&f, HOUR, UINT64_MAX, MIDNIGHT + 2 * DAY + 2 * HOUR);
    for (unsigned i = 0; i < 4; i++) {
        harvest_one(&f, 1, 1 + i % 2, i / 2, MIDNIGHT + 2 * DAY + 5 * HOUR + i, 3);
    }
    expect_clean(&f);
}

#define LEDGER_ONE " WHERE (series, hour) = (SELECT series, hour FROM ledger ORDER BY series, hour LIMIT 1)"
#define LEDGER_RAW                                                                                                     \
    " WHERE (series, hour) = (SELECT series, hour FROM ledger WHERE raw_uploads>0 ORDER BY series, hour LIMIT 1)"
#define HOUR_ONE " WHERE id = (SELECT id FROM rollup WHERE level=0 ORDER BY id LIMIT 1)"
#define DAY_ONE " WHERE id = (SELECT id FROM rollup WHERE level=1 ORDER BY id LIMIT 1)"
#define ALL_ONE " WHERE id = (SELECT id FROM rollup WHERE level=2 ORDER BY id LIMIT 1)"

/* What is done, and a word of what must be said. */
static const char *const plants[][2] = {
    {"UPDATE ledger SET uploads=uploads+1" LEDGER_ONE, "uploads"},
    {"UPDATE ledger SET processes=processes+1" LEDGER_ONE, "processes"},
    {"UPDATE ledger SET ticks=ticks-1" LEDGER_RAW, "ticks"},
    {"UPDATE ledger SET calls=calls+7" LEDGER_RAW, "calls"},
    {"UPDATE ledger SET first=first-1" LEDGER_ONE, "earliest start"},
    {"UPDATE ledger SET last=last+1" LEDGER_RAW, "latest end"},
    {"UPDATE ledger SET inexact=2" LEDGER_RAW, "inexactness"},
    {"UPDATE ledger SET raw_uploads=raw_uploads+1" LEDGER_RAW, "single uploads"},
    {"UPDATE ledger SET raw_bytes=raw_bytes+1" LEDGER_RAW, "bytes of single uploads"},
    {"UPDATE ledger SET raw_since=1" LEDGER_ONE, "waits for single uploads"},
    {"UPDATE ledger SET shares=x'0102030400'" LEDGER_ONE, "nanoseconds"},
    {"DELETE FROM ledger" LEDGER_RAW, "alone"},
    {"DELETE FROM ledger" LEDGER_ONE, "alone"},
    {"DELETE FROM upload WHERE number=(SELECT max(number) FROM upload)", "uploads"},
    {"UPDATE upload SET started=started+1 WHERE number=(SELECT max(number) FROM upload)", "processes"},
    {"UPDATE upload SET length=length+5 WHERE number=(SELECT max(number) FROM upload)", "latest end"},
    {"UPDATE upload SET hour=hour+1 WHERE number=(SELECT max(number) FROM upload)", "uploads"},
    {"UPDATE upload SET counts=zeroblob(length(counts)) WHERE number=(SELECT max(number) FROM upload)",
     "cannot be read"},
    {"UPDATE upload SET counts=(SELECT counts FROM upload ORDER BY number LIMIT 1) WHERE number=(SELECT max(number) "
     "FROM upload)",
     "ticks"},
    {"UPDATE rollup SET uploads=uploads+1" HOUR_ONE, "uploads"},
    {"UPDATE rollup SET processes=processes+1" HOUR_ONE, "processes"},
    {"UPDATE rollup SET ticks=ticks+1" HOUR_ONE, "ticks"},
    {"UPDATE rollup SET calls=calls+1" HOUR_ONE, "calls"},
    {"UPDATE rollup SET number=number+1" HOUR_ONE, "first upload"},
    {"UPDATE rollup SET hosts=x'63'" HOUR_ONE, "hosts"},
    {"UPDATE rollup SET counts=zeroblob(length(counts))" HOUR_ONE, "rollup"},
    {"UPDATE rollup SET counts=CAST(substr(counts, 1, length(counts)-6) || x'55' || substr(counts, length(counts)-4) "
     "AS BLOB)" HOUR_ONE,
     "rollup"},
    {"UPDATE rollup SET spread=zeroblob(length(spread))" HOUR_ONE, "rollup"},
    {"UPDATE rollup SET (counts, spread)=(SELECT counts, spread FROM rollup r WHERE r.level=0 AND "
     "r.series=rollup.series "
     "ORDER BY r.at DESC LIMIT 1)" HOUR_ONE,
     "ticks"},
    {"DELETE FROM rollup" HOUR_ONE, "uploads"},
    {"UPDATE rollup SET folded=0" HOUR_ONE, "sum of day"},
    {"UPDATE rollup SET uploads=uploads+1" DAY_ONE, "uploads"},
    {"UPDATE rollup SET ticks=ticks+1" DAY_ONE, "ticks"},
    {"UPDATE rollup SET inexact=4" DAY_ONE, "inexactness"},
    {"DELETE FROM rollup" DAY_ONE, "missing"},
    {"UPDATE rollup SET at=at+9000" DAY_ONE, "missing"},
    {"UPDATE rollup SET (counts, spread)=(SELECT counts, spread FROM rollup r WHERE r.level=0 AND "
     "r.series=rollup.series "
     "ORDER BY r.at DESC LIMIT 1)" DAY_ONE,
     "its counts"},
    {"UPDATE rollup SET hosts=x'0101'" DAY_ONE, "its hosts"},
    {"UPDATE rollup SET processes=processes+1" ALL_ONE, "sum of all time"},
    {"DELETE FROM rollup" ALL_ONE, "missing"},
    {"UPDATE rollup SET folded=0 WHERE id=(SELECT id FROM rollup WHERE level=1 ORDER BY id LIMIT 1)",
     "sum of all time"},
    {"UPDATE series SET uploads=uploads+1 WHERE id=1", "uploads"},
    {"UPDATE series SET calls=calls+1 WHERE id=1", "calls"},
    {"UPDATE series SET shares=x'0102030400' WHERE id=1", "time and calls"},
    {"UPDATE series SET raw_bytes=raw_bytes+1 WHERE id=1", "bytes of single uploads"},
    {"DELETE FROM series WHERE id=2", "series 2"},
    {"UPDATE state SET uploads=uploads+1", "uploads"},
    {"UPDATE state SET ticks=ticks+1", "ticks"},
    {"UPDATE state SET retired_calls=retired_calls+1", "calls"},
    {"UPDATE state SET raw_uploads=raw_uploads+1", "single uploads"},
    {"UPDATE state SET rollups=rollups+1", "sums"},
    {"DELETE FROM build_user WHERE build=1 AND uid=2", "no list"},
    {"INSERT INTO build_user SELECT build, 9, epoch, added, name FROM build_user WHERE build=1 AND uid=1", "no series"},
    {"UPDATE instance SET generation=0 WHERE id=1", "a snapshot without a generation"},
    {"UPDATE instance SET generation=-5 WHERE id=2", "a snapshot without a generation"},
    {"DELETE FROM snapshot WHERE instance=1", "without a snapshot"},
    {"DELETE FROM instance WHERE id=1", "which is not there"},
    {"UPDATE instance SET upload=(SELECT upload FROM instance WHERE id=2) WHERE id=1", "of two live processes"},
    {"UPDATE instance SET series=series+1 WHERE id=1", "is not its own"},
    {"UPDATE instance SET hour=hour+1 WHERE id=2", "is not its own"},
    {"UPDATE instance SET upload=(SELECT min(number) FROM upload WHERE series<>1) WHERE id=2", "is not its own"},
    {"UPDATE instance SET upload=upload+100000 WHERE id=1", "never given"},
    {"UPDATE instance SET upload=0 WHERE id=1", "never given"},
    {"UPDATE instance SET hour=NULL WHERE id=1", "some are missing"},
    {"UPDATE instance SET upload=NULL WHERE id=1", "some are missing"},
    {"UPDATE instance SET ended=3 WHERE id=1", "neither living"},
    {"UPDATE instance SET name=x'00' WHERE id=1", "1 bytes, not 16"},
    {"UPDATE rollup_processes SET groups=x'00' WHERE level=0", "break their rules"},
    {"UPDATE rollup_processes SET groups=CAST(x'7f' || substr(groups, 2) AS BLOB) WHERE level=0", "sum of its groups"},
    {"UPDATE rollup_processes SET groups=CAST(substr(groups, 2, 1) || substr(groups, 1, 1) || substr(groups, 3) AS "
     "BLOB) WHERE level=1",
     "processes by group"},
    {"DELETE FROM rollup_processes WHERE level=2", "processes by group"},
    {"INSERT INTO rollup_processes VALUES (1, 0, 7, x'00')", "processes by group stands alone"},
    {"UPDATE ledger SET live_bytes=live_bytes+1" LEDGER_RAW, "bytes of live processes"},
    {"UPDATE series SET live_bytes=live_bytes+1 WHERE id=1", "bytes of live processes"},
    {"UPDATE state SET live_bytes=live_bytes+1", "bytes of live processes"},
    {"UPDATE upload SET parts=2 WHERE number=(SELECT max(number) FROM upload)", "uploads"},
    {"UPDATE upload SET width=0 WHERE width>0", "bytes of live processes"},
    {"DELETE FROM slice", "has no slice"},
    {"UPDATE slice SET upload=upload+100000", "none of its"},
    {"UPDATE slice SET width=5", "none of its"},
    {"UPDATE relay SET outside_uploads=1", "forwarded: uploads"},
    {"UPDATE relay SET acknowledged_ticks=acknowledged_ticks+1", "forwarded: ticks"},
    {"UPDATE relay SET withdrawn_calls=withdrawn_calls+1", "forwarded: calls"},
    {"UPDATE segment SET uploads=uploads+1 WHERE id=1", "outgoing upload 1: uploads"},
    {"UPDATE segment SET ticks=ticks+1 WHERE id=9", "outgoing upload 9: ticks"},
    {"UPDATE segment SET calls=calls+1 WHERE id=9", "outgoing upload 9: calls"},
    {"UPDATE segment SET parts=parts+1 WHERE id=9", "outgoing upload 9: parts"},
    {"DELETE FROM segment WHERE id=9", "stand alone"},
    {"DELETE FROM segment_bytes WHERE segment=1", "outgoing upload 1 cannot be read"},
    {"UPDATE segment_bytes SET bytes=CAST(substr(bytes, 1, 20) || x'55' || substr(bytes, 22) AS BLOB) WHERE segment=1",
     "outgoing upload 1 cannot be read"},
    {"DELETE FROM segment_part WHERE id>>24=9", "outgoing upload 9: parts"},
    {"UPDATE segment_part SET counts=x'0100' WHERE id>>24=9", "outgoing upload 9 cannot be read"},
    {"UPDATE segment_part SET id=id+(900<<24) WHERE id>>24=9", "outgoing upload 909 stand alone"},
};

static void keep_file(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    cr_assert_eq(system(command), 0);
}

Test(store_verify, every_falsehood_is_found)
{
    char kept[128];
    fill();
    store_close(f.r);
    store_close(f.w); /* the log is in the file now */
    snprintf(kept, sizeof kept, "%s.kept", f.path);
    keep_file(f.path, kept);
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        keep_file(kept, f.path);
        execute(plants[i][0]);
        OK(&f, store_sqlite_open_writer(f.path, &f.w, &f.e));
        OK(&f, store_sqlite_open_reader(f.path, &f.r, &f.e));
        const char *said = verify_all(&f);
        cr_expect(strstr(said, plants[i][1]) != NULL, "%s: said \"%s\"", plants[i][0], said);
        store_close(f.r);
        store_close(f.w);
    }
    keep_file(kept, f.path);
    OK(&f, store_sqlite_open_writer(f.path, &f.w, &f.e));
    OK(&f, store_sqlite_open_reader(f.path, &f.r, &f.e));
    expect_clean(&f);
    fixture_close(&f);
}

/* Sums at their end are no difference. */
Test(store_verify, saturation_is_no_mismatch)
{
    struct made m;
    fixture_open(&f);
    for (uint32_t i = 1; i <= 4; i++) {
        make_counted(&m, 1, 1, i, MIDNIGHT + i * HOUR, INT64_MAX / 3 * 2);
        m.u.inexact = 0;
        m.builds[0].nanoseconds = INT64_MAX;
        put_counted(&f, &m);
        expect_clean(&f);
    }
    compact_all(&f, HOUR, UINT64_MAX, MIDNIGHT + 3 * HOUR);
    expect_clean(&f);
    compact_all(&f, HOUR, UINT64_MAX, MIDNIGHT + 3 * DAY);
    expect_clean(&f);
    make_counted(&m, 1, 1, 9, MIDNIGHT + 5 * DAY, 3);
    put_counted(&f, &m);
    retire_all(&f, DAY, 0, MIDNIGHT + 4 * DAY);
    expect_clean(&f);
    fixture_close(&f);
}

/* What cannot be read is set aside: the rest is rolled up, and it can still be retired. */
Test(store_verify, damaged_upload_does_not_stop_compaction)
{
    fill();
    store_close(f.r);
    store_close(f.w);
    execute("UPDATE upload SET counts=zeroblob(length(counts)) WHERE number=(SELECT min(number) FROM upload)");
    OK(&f, store_sqlite_open_writer(f.path, &f.w, &f.e));
    OK(&f, store_sqlite_open_reader(f.path, &f.r, &f.e));
    struct store_totals before, t;
    OK(&f, store_get_totals(f.w, &before, &f.e));
    cr_assert_gt(before.raw_uploads, 4);
    compact_all(&f, HOUR, UINT64_MAX, MIDNIGHT + 9 * DAY);
    OK(&f, store_get_totals(f.w, &t, &f.e));
    cr_assert_leq(t.raw_uploads, 2, "only those of the hour are left");
    cr_assert_geq(t.raw_uploads, 1);
    cr_assert(strstr(verify_all(&f), "cannot be read"));
    retire_all(&f, DAY, 0, MIDNIGHT + 9 * DAY);
    OK(&f, store_get_totals(f.w, &t, &f.e));
    cr_assert_eq(t.retired_uploads, t.uploads);
    cr_assert_eq(t.raw_uploads + t.rollups, 0);
    expect_clean(&f);
    fixture_close(&f);
}

/* A process whose upload was damaged goes on with a new one: a harvest is not refused for what a disk did. */
Test(store_verify, damaged_upload_of_a_live_process_is_left_alone)
{
    static const char *const damages[] = {"UPDATE upload SET counts=zeroblob(length(counts))", "DELETE FROM ledger",
                                          "UPDATE upload SET series=series+1"};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        fixture_open(&f);
        harvest_one(&f, 1, 1, 0, NOON, 10);
        store_close(f.r);
        store_close(f.w);
        execute(damages[i]);
        OK(&f, store_sqlite_open_writer(f.path, &f.w, &f.e));
        OK(&f, store_sqlite_open_reader(f.path, &f.r, &f.e));
        harvest_one(&f, 1, 1, 1, NOON + 1, 20);
        harvest_one(&f, 1, 1, 2, NOON + 2, 30);
        cr_assert_str_eq(durable(&f, 1, 1), "3 1/1/3");
        struct store_totals t;
        OK(&f, store_get_totals(f.w, &t, &f.e));
        cr_assert_eq(t.uploads, 2, "%s", damages[i]);
        cr_assert_eq(t.ticks, 11 + 21 + 31);
        cr_assert_neq(verify_all(&f)[0], 0, "the damage is told of");
        fixture_close(&f);
    }
}
