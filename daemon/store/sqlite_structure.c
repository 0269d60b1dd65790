/* Checks that the tables of a database are those of the schema version that it claims, by the texts of their statements
 * without white space and comments. They are compared with those of a new database in memory, which the steps to that
 * version make: it has what the SQLite of this process makes of an ALTER TABLE. */
#include <ctype.h>
#include <string.h>

#include "store/sqlite.h"

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Skips white space and comments. */
static const char *skip_blanks(const char *at)
{
    for (;;) {
        if (isspace((unsigned char)*at)) {
            at++;
        } else if (at[0] == '-' && at[1] == '-') {
            at += strcspn(at, "\n");
        } else {
            return at;
        }
    }
}

/* True if two texts have the same words and signs. */
static bool same_text(const char *a, const char *b)
{
    bool word = false;
    for (;;) {
        const char *x = skip_blanks(a), *y = skip_blanks(b);
        if (*x != *y || (word && (x != a) != (y != b) && is_word(*x))) {
            return false; /* they differ, or one separates words that the other joins */
        }
        if (*x == '\0') {
            return true;
        }
        word = is_word(*x);
        a = x + 1;
        b = y + 1;
    }
}

/* Compares the row of an object of the model, in q, with the one of its name in the database. */
static enum profd_status compare_object(sqlite3 *db, const char *path, int64_t version, sqlite3_stmt *q,
                                        sqlite3_stmt *own, struct profd_error *e)
{
    const char *type = sqlite_text(q, 0), *name = sqlite_text(q, 1);
    sqlite3_reset(own);
    if (sqlite3_bind_text(own, 1, name, -1, SQLITE_TRANSIENT) != SQLITE_OK) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to check the tables of %s", path);
    }
    const int rc = sqlite3_step(own);
    if (rc == SQLITE_DONE) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: %s %s of schema version %lld is missing", path, type,
                               name, (long long)version);
    }
    if (rc != SQLITE_ROW) {
        return sqlite_direct_fail(db, path, e);
    }
    if (strcmp(type, sqlite_text(own, 0)) != 0 || !same_text(sqlite_text(q, 2), sqlite_text(own, 1))) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: %s %s is not that of schema version %lld", path, type,
                               name, (long long)version);
    }
    return PROFD_OK;
}

enum profd_status sqlite_structure_judge(sqlite3 *db, const struct sqlite_schema *schema, const char *path,
                                         int64_t version, struct profd_error *e)
{
    sqlite3 *model = NULL;
    sqlite3_stmt *q = NULL, *own = NULL;
    int rc = SQLITE_DONE;
    enum profd_status status =
        sqlite3_open_v2(":memory:", &model, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL) ==
                SQLITE_OK
            ? sqlite_schema_make(model, schema, 0, version, e)
            : profd_error_set(e, PROFD_NO_MEMORY, "no memory to check the tables of the database");
    if (status == PROFD_OK && sqlite3_prepare_v2(model,
                                                 "SELECT type, name, sql FROM main.sqlite_schema "
                                                 "WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'",
                                                 -1, &q, NULL) != SQLITE_OK) {
        status = sqlite_direct_fail(model, "the model of the tables", e);
    }
    if (status == PROFD_OK &&
        sqlite3_prepare_v2(db, "SELECT type, sql FROM main.sqlite_schema WHERE name=?1", -1, &own, NULL) != SQLITE_OK) {
        status = sqlite_direct_fail(db, path, e);
    }
    while (status == PROFD_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        status = compare_object(db, path, version, q, own, e);
    }
    if (status == PROFD_OK && rc != SQLITE_DONE) {
        status = sqlite_direct_fail(model, "the model of the tables", e);
    }
    sqlite3_finalize(own);
    sqlite3_finalize(q);
    sqlite3_close(model);
    return status;
}
