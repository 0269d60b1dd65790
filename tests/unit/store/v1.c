/* Writes a database as version 1 of the schema left it. */
#include "tests/unit/store/v1.h"

#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/counts.h"
#include "store/store.h"

extern const unsigned char embed_schema_001_initial_sql[];

static sqlite3 *db;

static void execute(const char *sql)
{
    char *why = NULL;
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &why), SQLITE_OK, "%s: %s", sql, why);
}

uint64_t v1_calls(uint32_t i, uint32_t arcs)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < arcs; k++) {
        sum += i % 100 + k;
    }
    return sum;
}

/* Counts with one histogram and so many arcs into the program. */
static uint8_t *make_counts(uint32_t i, uint32_t arcs, size_t *size)
{
    struct counts c;
    struct profd_error e;
    uint8_t *bytes;
    cr_assert_eq(counts_init(&c, 1, 1, arcs, &e), PROFD_OK);
    c.histograms[0] = (struct counts_histogram){
        .bins = 10, .low = 0x1000, .high = 0x2000, .rate = 100, .dimension = "seconds", .abbreviation = 's', .used = 1};
    c.bin_ticks[0] = i;
    for (uint32_t k = 0; k < arcs; k++) {
        c.from_build[k] = COUNTS_NOWHERE;
        c.from[k] = (uint64_t)k * 2654435761u % 65536;
        c.to[k] = 0x1000 + (uint64_t)k * 40503u % 4096;
        c.calls[k] = i % 100 + k;
    }
    cr_assert_eq(counts_encode(&c, &bytes, size, &e), PROFD_OK);
    counts_done(&c);
    return bytes;
}

/* Series 1: program 1; series 2: program 1 and library 2; series 3: program 3 with a label. */
static void make_fixed_rows(void)
{
    execute("INSERT INTO host VALUES (1, '0123456789abcdef0123456789abcdef')");
    execute("INSERT INTO build VALUES (1, 'aaaa01', 1, 1), (2, 'bbbb02', 1, 0), (3, 'cccc03', 1, 0)");
    execute("INSERT INTO build_set VALUES (1, x'01000000'), (2, x'0100000002000000'), (3, x'03000000')");
    execute("INSERT INTO build_set_member VALUES (1, 1), (1, 2), (2, 2), (3, 3)");
    execute("INSERT INTO build_set_user VALUES (1, 7), (2, 7), (3, 7)");
    execute("INSERT INTO series VALUES (1, 1, 7, 1, x'', 0), (2, 2, 7, 1, x'', 0), (3, 3, 7, 3, "
            "x'736572766963650077656200', 0)");
    execute("INSERT INTO object VALUES (1, 1, 'v', 1, 7, 0, x'01', x'73796d626f6c73')");
    execute("INSERT INTO object_sender VALUES (1, 7, 1, 1, 'program', '')");
}

static void put_row(sqlite3_stmt *q, uint32_t i, uint32_t arcs)
{
    size_t size;
    int64_t end = V1_BEGIN + i * (V1_HOUR / 60), start = end - V1_HOUR / 120;
    uint8_t *counts = make_counts(i, arcs, &size);
    int64_t values[] = {i,    1 + i % 3, 1, start, end - start, start / V1_HOUR, end / V1_HOUR, i % 10 == 0 ? 2 : 0,
                        i % 2};
    for (int k = 0; k < 9; k++) {
        sqlite3_bind_int64(q, k + 1, values[k]);
    }
    sqlite3_bind_blob64(q, 10, counts, size, free);
    cr_assert_eq(sqlite3_step(q), SQLITE_DONE, "%s", sqlite3_errmsg(db));
    sqlite3_reset(q);
}

/* The sums that version 1 kept. */
static void make_sums(uint32_t n, uint32_t arcs)
{
    uint64_t uploads[4] = {0}, ns[4] = {0}, calls[4] = {0}, processes[4] = {0}, inexact[4] = {0}, ticks = 0, all = 0;
    int64_t first[4] = {0}, last[4] = {0};
    char sql[512];
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t series = 1 + i % 3;
        int64_t end = V1_BEGIN + i * (V1_HOUR / 60);
        for (uint32_t build = 1; build <= 3; build++) {
            if (!(series == 1 ? build == 1 : series == 2 ? build <= 2 : build == 3)) {
                continue;
            }
            first[build] = uploads[build] == 0 ? end - V1_HOUR / 120 : first[build];
            last[build] = end;
            uploads[build]++;
            processes[build] += i % 2;
            inexact[build] |= i % 10 == 0 ? 2 : 0;
            ns[build] += build != 2 ? (uint64_t)i * 10000000 : 0;
            calls[build] += build != 2 ? v1_calls(i, arcs) : 0;
        }
        ticks += i;
        all += v1_calls(i, arcs);
    }
    for (int b = 1; b <= 3; b++) {
        snprintf(
            sql, sizeof sql,
            "INSERT INTO build_user VALUES (%d, 7, %u, %d, %d, %lld, %lld, %llu, %llu, %llu, %llu, %llu, 'name%d')", b,
            n, b, b != 2, (long long)first[b], (long long)last[b], (unsigned long long)uploads[b],
            (unsigned long long)processes[b], (unsigned long long)ns[b], (unsigned long long)calls[b],
            (unsigned long long)inexact[b], b);
        execute(sql);
    }
    snprintf(sql, sizeof sql, "UPDATE state SET number=%u, list_epoch=%u, uploads=%u, ticks=%llu, calls=%llu", n, n, n,
             (unsigned long long)ticks, (unsigned long long)all);
    execute(sql);
    snprintf(sql, sizeof sql, "INSERT INTO sender VALUES (1, 7, x'010000000000000000000000', %u, %lld, NULL)", n,
             (long long)(V1_BEGIN / 1000000000));
    execute(sql);
    execute("UPDATE series SET uploads=(SELECT count(*) FROM upload WHERE series=series.id)");
    execute("INSERT INTO user_epoch VALUES (7, 1)");
}

void v1_make(const char *path, uint32_t n, uint32_t arcs)
{
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    execute("PRAGMA synchronous=OFF; BEGIN");
    execute((const char *)embed_schema_001_initial_sql);
    execute("PRAGMA application_id=0x70726664; PRAGMA user_version=1; COMMIT; PRAGMA journal_mode=WAL; BEGIN");
    make_fixed_rows();
    cr_assert_eq(sqlite3_prepare_v2(db, "INSERT INTO upload VALUES (?,?,?,?,?,?,?,?,?,?)", -1, &q, NULL), SQLITE_OK);
    for (uint32_t i = 1; i <= n; i++) {
        put_row(q, i, arcs);
    }
    sqlite3_finalize(q);
    make_sums(n, arcs);
    execute("COMMIT");
    sqlite3_close(db);
}
