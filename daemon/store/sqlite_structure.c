/* Checks that the tables of a database are those of the schema version that it claims, by the texts of their statements
 * without white space and comments. Those of the newest version are first compared with schema/complete.sql. If they
 * differ, or are older, they are compared with those of a new database that the steps to that version make: it finds
 * what differs, and makes allowance for what the SQLite of this process makes of an ALTER TABLE, but takes 10 ms. */
#include <ctype.h>
#include <string.h>

#include "store/sqlite.h"

#define OBJECTS "SELECT type, name, sql FROM main.sqlite_schema WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'"

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

/* The rest of text after words and signs that are those of start; NULL if it begins otherwise. */
static const char *after_same(const char *text, const char *start)
{
    bool word = false;
    for (;;) {
        const char *x = skip_blanks(text), *y = skip_blanks(start);
        if (*y == '\0') {
            return x;
        }
        if (*x != *y || (word && (x != text) != (y != start) && is_word(*x))) {
            return NULL; /* they differ, or one separates words that the other joins */
        }
        word = is_word(*x);
        text = x + 1;
        start = y + 1;
    }
}

/* True if two texts have the same words and signs. */
static bool same_text(const char *a, const char *b)
{
    const char *rest = after_same(a, b);
    return rest && *rest == '\0';
}

/* Sets *same if the tables and indexes of the database are those of schema/complete.sql and no others. */
static enum profd_status compare_complete(sqlite3 *db, const char *path, bool *same, struct profd_error *e)
{
    const char *rest = skip_blanks(sqlite_schema_complete());
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(db, OBJECTS " ORDER BY type<>'table', name", -1, &q, NULL);
    while (rc == SQLITE_OK && rest && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        const char *after = after_same(rest, sqlite_text(q, 2));
        rest = after && *after == ';' ? skip_blanks(after + 1) : NULL;
        rc = SQLITE_OK;
    }
    enum profd_status status = rc == SQLITE_OK || rc == SQLITE_DONE ? PROFD_OK : sqlite_direct_fail(db, path, e);
    sqlite3_finalize(q);
    *same = rest && strncmp(rest, "CREATE ", strlen("CREATE ")) != 0;
    return status;
}

/* Context of the comparison of two databases. */
struct comparison {
    sqlite3 *model, *db;
    const char *path;
    int64_t version;
    bool foreign; /* the model has the newest version: objects of only that version must be absent */
};

/* Compares the row of an object of the model, in q, with the one of its name in the database. */
static enum profd_status compare_object(const struct comparison *c, sqlite3_stmt *q, sqlite3_stmt *own,
                                        struct profd_error *e)
{
    const char *type = sqlite_text(q, 0), *name = sqlite_text(q, 1);
    sqlite3_reset(own);
    enum profd_status status =
        sqlite3_bind_text(own, 1, name, -1, SQLITE_TRANSIENT) == SQLITE_OK
            ? PROFD_OK
            : profd_error_set(e, PROFD_NO_MEMORY, "no memory to check the tables of %s", c->path);
    const int rc = status == PROFD_OK ? sqlite3_step(own) : SQLITE_NOMEM;
    if (status == PROFD_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) {
        return sqlite_direct_fail(c->db, c->path, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (c->foreign) {
        return rc == SQLITE_DONE
                   ? PROFD_OK
                   : profd_error_set(e, PROFD_DAMAGED, "database %s: it says schema version %lld, which has no %s %s",
                                     c->path, (long long)c->version, type, name);
    }
    if (rc == SQLITE_DONE) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: %s %s of schema version %lld is missing", c->path, type,
                               name, (long long)c->version);
    }
    if (strcmp(type, sqlite_text(own, 0)) != 0 || !same_text(sqlite_text(q, 2), sqlite_text(own, 1))) {
        return profd_error_set(e, PROFD_DAMAGED, "database %s: %s %s is not that of schema version %lld", c->path, type,
                               name, (long long)c->version);
    }
    return PROFD_OK;
}

static enum profd_status compare_all(const struct comparison *c, const char *which, struct profd_error *e)
{
    sqlite3_stmt *q = NULL, *own = NULL;
    int rc = SQLITE_DONE;
    enum profd_status status = PROFD_OK;
    if (sqlite3_prepare_v2(c->model, which, -1, &q, NULL) != SQLITE_OK) {
        status = sqlite_direct_fail(c->model, "the model of the tables", e);
    } else if (sqlite3_prepare_v2(c->db, "SELECT type, sql FROM sqlite_schema WHERE name=?1", -1, &own, NULL) !=
               SQLITE_OK) {
        status = sqlite_direct_fail(c->db, c->path, e);
    }
    while (status == PROFD_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        status = compare_object(c, q, own, e);
    }
    if (status == PROFD_OK && rc != SQLITE_DONE) {
        status = sqlite_direct_fail(c->model, "the model of the tables", e);
    }
    sqlite3_finalize(own);
    sqlite3_finalize(q);
    return status;
}

/* Creates the model, a database in memory of one version. */
static enum profd_status open_model(int64_t version, sqlite3 **out, struct profd_error *e)
{
    enum profd_status status =
        sqlite3_open_v2(":memory:", out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL) ==
                SQLITE_OK
            ? PROFD_OK
            : profd_error_set(e, PROFD_NO_MEMORY, "no memory to check the tables of the database");
    return status == PROFD_OK ? sqlite_schema_make(*out, 0, version, e) : status;
}

/* Objects of later versions must be absent: the migration would fail half-way, or lose rows. */
static enum profd_status compare_later(struct comparison *c, struct profd_error *e)
{
    c->foreign = true;
    enum profd_status status =
        sqlite_direct_run(c->model, "CREATE TEMP TABLE had AS SELECT name FROM main.sqlite_schema",
                          "cannot check the tables of the database", e);
    if (status == PROFD_OK) {
        status = sqlite_schema_make(c->model, c->version, SQLITE_SCHEMA_VERSION, e);
    }
    return status == PROFD_OK ? compare_all(c, OBJECTS " AND name NOT IN (SELECT name FROM temp.had)", e) : status;
}

enum profd_status sqlite_structure_judge(sqlite3 *db, const char *path, int64_t version, bool *complete,
                                         struct profd_error *e)
{
    struct comparison c = {.db = db, .path = path, .version = version};
    *complete = false;
    enum profd_status status = version == SQLITE_SCHEMA_VERSION ? compare_complete(db, path, complete, e) : PROFD_OK;
    if (status != PROFD_OK || *complete) {
        return status;
    }
    status = open_model(version, &c.model, e);
    if (status == PROFD_OK) {
        status = compare_all(&c, OBJECTS, e);
    }
    if (status == PROFD_OK && version < SQLITE_SCHEMA_VERSION) {
        status = compare_later(&c, e);
    }
    sqlite3_close(c.model);
    return status;
}
