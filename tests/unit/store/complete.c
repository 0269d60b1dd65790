/* schema/complete.sql, of which new databases are made, is what the numbered files make one after the other. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite.h"

static struct profd_error e;

static sqlite3 *memory(void)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    return db;
}

static sqlite3 *from_steps(void)
{
    sqlite3 *db = memory();
    cr_assert_eq(sqlite_schema_make(db, 0, SQLITE_SCHEMA_VERSION, &e), PROFD_OK, "%s", e.sentence);
    return db;
}

/* Appends what a query answers. */
static void dump(sqlite3 *db, const char *sql, FILE *out)
{
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(q) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(q); i++) {
            fprintf(out, "%s=%d:%s ", sqlite3_column_name(q, i), sqlite3_column_type(q, i), sqlite_text(q, i));
        }
        fprintf(out, "\n");
    }
    sqlite3_finalize(q);
}

/* All rows of all tables; what is random is replaced. */
static void dump_rows(sqlite3 *db, FILE *out)
{
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_exec(db,
                              "UPDATE state SET salt=0; UPDATE centre SET incarnation=zeroblob(length(incarnation))",
                              NULL, NULL, NULL),
                 SQLITE_OK);
    cr_assert_eq(
        sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name", -1, &q, NULL),
        SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT '%s' AS name, * FROM %s", sqlite_text(q, 0), sqlite_text(q, 0));
        dump(db, sql, out);
    }
    sqlite3_finalize(q);
}

/* If it fails: `cat schema/0*.sql | sqlite3 FILE`, then .schema prints the tables. */
Test(store_complete, tables_are_those_of_the_steps)
{
    bool complete = false;
    sqlite3 *db = from_steps();
    cr_assert_eq(sqlite_structure_judge(db, "steps", SQLITE_SCHEMA_VERSION, &complete, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(complete, "schema/complete.sql does not say what the numbered files make");
    cr_assert_eq(sqlite3_exec(db, "CREATE TABLE zoo (animal)", NULL, NULL, NULL), SQLITE_OK);
    cr_assert_eq(sqlite_structure_judge(db, "steps", SQLITE_SCHEMA_VERSION, &complete, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_not(complete, "a table more");
    cr_assert_eq(sqlite3_exec(db, "DROP TABLE zoo; DROP INDEX upload_by_series", NULL, NULL, NULL), SQLITE_OK);
    cr_assert_eq(sqlite_structure_judge(db, "steps", SQLITE_SCHEMA_VERSION, &complete, &e), PROFD_DAMAGED);
    cr_assert_not(complete, "the last index is missing");
    sqlite3_close(db);
}

static char *rows_of(sqlite3 *db)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    cr_assert(out);
    dump_rows(db, out);
    cr_assert_eq(fclose(out), 0);
    sqlite3_close(db);
    return text;
}

Test(store_complete, rows_are_those_of_the_steps)
{
    sqlite3 *whole = memory();
    cr_assert_eq(sqlite3_exec(whole, sqlite_schema_complete(), NULL, NULL, NULL), SQLITE_OK, "%s",
                 sqlite3_errmsg(whole));
    char *a = rows_of(from_steps()), *b = rows_of(whole);
    cr_assert(strstr(a, "name=3:tenant id=1:1 name=3:default"), "%s", a);
    cr_assert_str_eq(a, b);
    free(a);
    free(b);
}
