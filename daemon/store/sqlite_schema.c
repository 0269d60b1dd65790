/* The tables, by version. */
#include <stdio.h>

#include "store/sqlite.h"

extern const unsigned char embed_schema_001_initial_sql[];

static const char *const steps[] = {(const char *)embed_schema_001_initial_sql};
_Static_assert(sizeof steps / sizeof steps[0] == SQLITE_SCHEMA_VERSION, "each version has one file in schema/");

const struct sqlite_schema sqlite_schema_newest = {.steps = steps, .version = SQLITE_SCHEMA_VERSION};

enum profd_status sqlite_judge_schema(sqlite3 *db, const char *path, int64_t *version, struct profd_error *e)
{
    int64_t application = 0, has = 0;
    enum profd_status status = sqlite_direct_integer(db, "PRAGMA application_id", &application, e);
    if (status == PROFD_OK) {
        status = sqlite_direct_integer(db, "PRAGMA user_version", &has, e);
    }
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "database \"%s\"", path);
    }
    if (application != SQLITE_APPLICATION_ID) {
        return profd_error_set(e, PROFD_DAMAGED, "\"%s\" is not a profd database: its application id is 0x%08llx", path,
                               (unsigned long long)application);
    }
    if (has < 1) {
        return profd_error_set(e, PROFD_DAMAGED, "\"%s\" has schema version %lld; the first is 1", path,
                               (long long)has);
    }
    if (has > SQLITE_SCHEMA_VERSION) {
        return profd_error_set(e, PROFD_NEWER,
                               "\"%s\" has schema version %lld, from a newer profd; this one knows up to %d", path,
                               (long long)has, SQLITE_SCHEMA_VERSION);
    }
    *version = has;
    return PROFD_OK;
}

enum profd_status sqlite_schema_make(sqlite3 *db, const struct sqlite_schema *schema, int64_t from, int64_t to,
                                     struct profd_error *e)
{
    for (int64_t i = from; i < to; i++) {
        TRY(sqlite_direct_run(db, schema->steps[i], "cannot make the schema", e));
    }
    return PROFD_OK;
}

enum profd_status sqlite_schema_extend(sqlite3 *db, const struct sqlite_schema *schema, int64_t version,
                                       struct profd_error *e)
{
    char mark[128];
    snprintf(mark, sizeof mark, "PRAGMA application_id=%d; PRAGMA user_version=%lld", SQLITE_APPLICATION_ID,
             (long long)schema->version);
    (void)sqlite_seal_reserve(db, SQLITE_SEAL_SIZE);
    /* auto_vacuum allows free pages to be returned. It cannot be enabled once there is a table. */
    enum profd_status status =
        sqlite_direct_run(db, "PRAGMA auto_vacuum=INCREMENTAL; BEGIN IMMEDIATE", "cannot begin the schema", e);
    if (status == PROFD_OK) {
        status = sqlite_schema_make(db, schema, version, schema->version, e);
    }
    if (status == PROFD_OK && version == 0) {
        status = sqlite_salt_draw(db, e);
    }
    if (status == PROFD_OK) {
        status = sqlite_direct_run(db, mark, "cannot mark the schema", e);
    }
    if (status == PROFD_OK) {
        status = sqlite_direct_run(db, "COMMIT", "cannot commit the schema", e);
    }
    if (status != PROFD_OK && !sqlite3_get_autocommit(db)) {
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status == PROFD_OK || version == 0
               ? status
               : profd_error_wrap(e, status, "cannot bring the database from schema version %lld to %lld",
                                  (long long)version, (long long)schema->version);
}
