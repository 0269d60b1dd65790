#include <stdio.h>

#include "store/sqlite_migrate.h"

extern const unsigned char embed_schema_001_initial_sql[], embed_schema_002_rollup_sql[],
    embed_schema_003_instance_sql[], embed_schema_004_truth_sql[], embed_schema_005_segment_sql[],
    embed_schema_006_centre_sql[], embed_schema_007_attest_sql[], embed_schema_008_people_sql[],
    embed_schema_009_restored_sql[], embed_schema_010_stacks_sql[], embed_schema_011_ledger_sql[],
    embed_schema_012_watch_sql[], embed_schema_013_remote_sql[], embed_schema_complete_sql[];

/* Applied one after the other, they create an empty database of the newest version, as schema/complete.sql does at
 * once. The texts end with a NUL. */
static const struct {
    const unsigned char *sql;
    bool copies; /* it changes the contents of rows: a database with rows is copied into a new one, see sqlite_upgrade.c
                  */
} steps[SQLITE_SCHEMA_VERSION] = {
    {embed_schema_001_initial_sql, true}, {embed_schema_002_rollup_sql, true},   {embed_schema_003_instance_sql, false},
    {embed_schema_004_truth_sql, false},  {embed_schema_005_segment_sql, false}, {embed_schema_006_centre_sql, false},
    {embed_schema_007_attest_sql, false}, {embed_schema_008_people_sql, false},  {embed_schema_009_restored_sql, false},
    {embed_schema_010_stacks_sql, false}, {embed_schema_011_ledger_sql, false},  {embed_schema_012_watch_sql, false},
    {embed_schema_013_remote_sql, false}};

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

bool sqlite_schema_copies(int64_t version)
{
    bool copies = false;
    for (int64_t i = version; i < SQLITE_SCHEMA_VERSION; i++) {
        copies |= steps[i].copies;
    }
    return copies;
}

enum profd_status sqlite_schema_make(sqlite3 *db, int64_t from, int64_t version, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (int64_t i = from; status == PROFD_OK && i < version; i++) {
        status = sqlite_direct_run(db, (const char *)steps[i].sql, "cannot make the schema", e);
    }
    return status;
}

const char *sqlite_schema_complete(void)
{
    return (const char *)embed_schema_complete_sql;
}

/* The steps after a version, and the marks of the newest, in the transaction that begin begins. */
static enum profd_status make_steps(sqlite3 *db, int64_t version, const char *begin, struct profd_error *e)
{
    char mark[128];
    snprintf(mark, sizeof mark, "PRAGMA application_id=%d; PRAGMA user_version=%d", SQLITE_APPLICATION_ID,
             SQLITE_SCHEMA_VERSION);
    enum profd_status status = sqlite_direct_run(db, begin, "cannot begin the schema", e);
    if (status == PROFD_OK) {
        status = version > 0 ? sqlite_schema_make(db, version, SQLITE_SCHEMA_VERSION, e)
                             : sqlite_direct_run(db, sqlite_schema_complete(), "cannot make the schema", e);
    }
    if (status == PROFD_OK && version > 0) {
        status = sqlite_migration_enter(db, version, e);
    }
    if (status == PROFD_OK && version < SQLITE_SALT_VERSION) {
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
    return status;
}

enum profd_status sqlite_schema_create(sqlite3 *db, struct profd_error *e)
{
    /* Allows free pages to be returned, which cannot be enabled later. */
    return make_steps(db, 0, "PRAGMA auto_vacuum=INCREMENTAL; BEGIN IMMEDIATE", e);
}

enum profd_status sqlite_schema_extend(sqlite3 *db, const char *path, int64_t version, struct profd_error *e)
{
    enum profd_status status = make_steps(db, version, "BEGIN IMMEDIATE", e);
    return status == PROFD_OK ? status
                              : profd_error_wrap(e, status, "cannot bring \"%s\" from schema version %lld to %d", path,
                                                 (long long)version, SQLITE_SCHEMA_VERSION);
}
