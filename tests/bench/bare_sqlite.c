/* What SQLite alone does with the same bytes: bare_sqlite FOLDER BYTES BATCH SECONDS [UPLOADS].
 * One thread, the daemon's pragmas, BATCH rows a transaction: a blob of so many bytes beside an integer key, and its
 * id, a row of (sender, mark) that each upload touches; a new sender after UPLOADS of them (0: never). Nothing is
 * decoded, no list or sum is kept. Checkpoints as the daemon does, when the log has 4,096 pages. Prints `name value`
 * lines. */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define WAL_PAGES 4096

static int wal_pages;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(sqlite3 *db, int good)
{
    if (good) {
        return;
    }
    fprintf(stderr, "bare_sqlite: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static int note_pages(void *context, sqlite3 *db, const char *name, int pages)
{
    (void)context, (void)db, (void)name;
    wal_pages = pages;
    return SQLITE_OK;
}

static sqlite3 *open_database(const char *folder)
{
    char path[4096];
    sqlite3 *db;

    (void)snprintf(path, sizeof path, "%s/bare.db", folder);
    must(NULL, sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) ==
                   SQLITE_OK);
    must(db,
         sqlite3_exec(
             db,
             "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA cache_size=-16384;"
             "PRAGMA journal_size_limit=16777216; PRAGMA mmap_size=0; PRAGMA cell_size_check=ON;"
             "CREATE TABLE upload (number INTEGER PRIMARY KEY, counts BLOB NOT NULL) STRICT;"
             "CREATE TABLE sender (sender BLOB PRIMARY KEY, mark INTEGER NOT NULL) STRICT, WITHOUT ROWID",
             NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_wal_hook(db, note_pages, NULL);
    return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *q;

    must(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &q, NULL) == SQLITE_OK);
    return q;
}

static void step(sqlite3 *db, sqlite3_stmt *q)
{
    must(db, sqlite3_step(q) == SQLITE_DONE);
    sqlite3_reset(q);
}

static void checkpoint(sqlite3 *db)
{
    if (wal_pages < WAL_PAGES) {
        return;
    }
    must(db, sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) == SQLITE_OK);
}

int main(int argc, char *argv[])
{
    const long bytes = argc >= 5 ? strtol(argv[2], NULL, 10) : 0;

    if (bytes < 1 || bytes > 1 << 24) {
        fprintf(stderr, "usage: bare_sqlite FOLDER BYTES BATCH SECONDS [UPLOADS]\n");
        return 64;
    }
    const long batch = strtol(argv[3], NULL, 10), renew = argc > 5 ? strtol(argv[5], NULL, 10) : 0;
    const double seconds = strtod(argv[4], NULL);
    uint8_t *blob = calloc(1, (size_t)bytes), sender[12];
    sqlite3 *db = open_database(argv[1]);
    sqlite3_stmt *begin = prepare(db, "BEGIN IMMEDIATE"), *commit = prepare(db, "COMMIT");
    sqlite3_stmt *add = prepare(db, "INSERT INTO upload VALUES (?1, ?2)");
    sqlite3_stmt *id = prepare(db, "INSERT INTO sender VALUES (?1, ?2) ON CONFLICT DO UPDATE SET mark=excluded.mark");

    if (!blob || getrandom(sender, sizeof sender, 0) != (ssize_t)sizeof sender || batch < 1) {
        return 66;
    }
    sqlite3_int64 number = 0, batches = 0;
    const double began = now();
    while (now() < began + seconds) {
        step(db, begin);
        for (long i = 0; i < batch; i++) {
            number++;
            if (renew && number % renew == 0) {
                memcpy(sender + 4, &number, sizeof number);
            }
            sqlite3_bind_int64(add, 1, number);
            sqlite3_bind_blob(add, 2, blob, (int)bytes, SQLITE_STATIC);
            step(db, add);
            sqlite3_bind_blob(id, 1, sender, sizeof sender, SQLITE_STATIC);
            sqlite3_bind_int64(id, 2, number);
            step(db, id);
        }
        step(db, commit);
        checkpoint(db);
        batches++;
    }
    const double took = now() - began;
    printf("rows %lld\nseconds %.3f\nrows_per_second %.1f\nbatches %lld\n", number, took, (double)number / took,
           batches);
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_finalize(add);
    sqlite3_finalize(id);
    sqlite3_close(db);
    free(blob);
    return 0;
}
