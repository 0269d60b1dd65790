/* The SQLite engine's own names. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_H
#define PROFD_STORE_SQLITE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "store/intern.h"
#include "store/store_ops.h"

#define SQLITE_APPLICATION_ID 0x70726664 /* "prfd" */
#define SQLITE_SCHEMA_VERSION 3
#define SQLITE_WAL_FRAMES 4096         /* pages of log after which the writer checkpoints: 16 MiB */
#define SQLITE_CACHE_BYTES (32u << 20) /* each of the writer's memories of the database */
#define SQLITE_HOUR INT64_C(3600000000000)
#define SQLITE_DAY (24 * SQLITE_HOUR)

/* Cached statements: their texts stand in sqlite_texts.c. */
enum sqlite_sql {
    SQL_BEGIN_WRITE,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_STATE_GET,
    SQL_STATE_SET,
    SQL_HOST_FIND,
    SQL_HOST_ADD,
    SQL_BUILD_FIND,
    SQL_BUILD_ADD,
    SQL_BUILD_EPOCH_SET,
    SQL_BUILD_NAMED_SET,
    SQL_SET_FIND,
    SQL_SET_ADD,
    SQL_SET_MEMBER_ADD,
    SQL_SET_USER_ADD,
    SQL_SERIES_FIND,
    SQL_SERIES_ADD,
    SQL_UPLOAD_ADD,
    SQL_UPLOAD_GROWING,
    SQL_UPLOAD_GROW,
    SQL_SENDER_FIND,
    SQL_SENDER_SET,
    SQL_SENDER_SCAN,
    SQL_SENDER_REMOVE,
    SQL_BUILD_USER_FIND,
    SQL_BUILD_USER_SET,
    SQL_USER_EPOCH_SET,
    SQL_OBJECT_EACH,
    SQL_OBJECT_GET,
    SQL_OBJECT_BOUNDS,
    SQL_OBJECT_SAME,
    SQL_OBJECT_ADD,
    SQL_OBJECT_SENDER_FIND,
    SQL_OBJECT_SENDER_SET,
    SQL_OBJECT_SENDER_SEEN,
    SQL_OBJECT_KNOWN,
    SQL_OBJECT_VARIANTS,
    SQL_OBJECT_LATEST,
    SQL_TOUCH_BUILD_USERS,
    SQL_TOUCH_BUILDS,
    SQL_TOUCH_USERS,
    SQL_FIND_EXACT_ALL,
    SQL_FIND_EXACT_UID,
    SQL_FIND_PREFIX_ALL,
    SQL_FIND_PREFIX_UID,
    SQL_EACH_BUILD_ALL,
    SQL_EACH_BUILD_UID,
    SQL_GET_BUILD_ALL,
    SQL_GET_BUILD_UID,
    SQL_LABELS_ALL,
    SQL_LABELS_BUILD,
    SQL_COMPANION_SETS,
    SQL_BUILD_NAME,
    SQL_SERIES_OF_BUILD,
    SQL_UPLOAD_NUMBERS,
    SQL_UPLOAD_GET,
    SQL_HOST_GET,
    SQL_EPOCH_ALL,
    SQL_EPOCH_UID,
    SQL_LIST_EPOCH_UID,
    SQL_TOTALS,
    SQL_PAGES,
    SQL_LEDGER_GET,
    SQL_LEDGER_RANGE,
    SQL_LEDGER_ADD,
    SQL_LEDGER_SET,
    SQL_LEDGER_SINCE,
    SQL_LEDGER_REMOVE,
    SQL_LEDGER_RAW,
    SQL_LEDGER_RAW_IN,
    SQL_LEDGER_OLDEST,
    SQL_LEDGER_NEXT,
    SQL_SERIES_GET,
    SQL_SERIES_SET,
    SQL_SERIES_NEXT,
    SQL_SERIES_SET_OF,
    SQL_SERIES_SUMS,
    SQL_SERIES_EVERY,
    SQL_ROLLUP_GET,
    SQL_ROLLUP_READ,
    SQL_ROLLUP_ADD,
    SQL_ROLLUP_SET,
    SQL_ROLLUP_FOLD,
    SQL_ROLLUP_UNFOLD,
    SQL_ROLLUP_REMOVE,
    SQL_ROLLUP_TO_FOLD,
    SQL_ROLLUP_OPEN_AT,
    SQL_ROLLUP_FOLDED_AT,
    SQL_ROLLUP_EXISTS,
    SQL_ROLLUP_IDS,
    SQL_ROLLUP_IDS_OPEN,
    SQL_ROLLUP_IS_HOUR,
    SQL_ROLL_BEGIN,
    SQL_ROLL_UNDO,
    SQL_ROLL_DONE,
    SQL_RAW_EACH,
    SQL_RAW_REMOVE,
    SQL_DOOMED_NEXT,
    SQL_DOOMED_ADD,
    SQL_DOOMED_REMOVE,
    SQL_DOOMED_RAW,
    SQL_DOOMED_ROLLUPS,
    SQL_DOOMED_LEDGER,
    SQL_SERIES_REMOVE,
    SQL_SERIES_OF_PROGRAM,
    SQL_PROGRAM_OF_LIBRARY,
    SQL_SET_USER_REMOVE,
    SQL_SET_REMOVE,
    SQL_SET_MEMBERS_REMOVE,
    SQL_BUILD_USER_REMOVE,
    SQL_BUILD_USER_ANY,
    SQL_BUILD_UNSEEN,
    SQL_BUILD_FORGET,
    SQL_BUILD_IS_MEMBER,
    SQL_BUILD_UNNAMED,
    SQL_OBJECT_UNSEEN,
    SQL_OBJECT_SENDERS_REMOVE,
    SQL_OBJECT_REMOVE,
    SQL_BUILD_USERS,
    SQL_RAW_COUNT,
    SQL_ROLLUP_COUNT,
    SQL_RAW_ORPHAN,
    SQL_ROLLUP_ORPHAN,
    SQL_LEDGER_ORPHAN,
    SQL_DOOMED_COUNT,
    SQL_INSTANCE_GET,
    SQL_INSTANCE_ADD,
    SQL_INSTANCE_SET,
    SQL_INSTANCE_EACH,
    SQL_INSTANCE_REMOVE,
    SQL_SNAPSHOT_GET,
    SQL_SNAPSHOT_SET,
    SQL_SNAPSHOT_REMOVE,
    SQL_INSTANCE_EVERY,
    SQL_INSTANCE_SHARED,
    SQL_SNAPSHOT_ORPHAN,
    SQL_COUNT
};

/* The row of table state. */
struct sqlite_state {
    int64_t number, list_epoch, salt;
    uint64_t uploads, ticks, calls;
    int64_t version;
    uint64_t retired_uploads, retired_ticks, retired_calls, raw_uploads, raw_bytes, rollups;
    int64_t retiring;
};

/* Who sent the next sender to look at when forgetting ids. */
struct sqlite_cursor {
    int64_t host, uid;
    uint8_t sender[UPLOAD_SENDER_SIZE];
};

extern const char *const sqlite_texts[SQL_COUNT];

struct sqlite_store {
    struct store base;
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[SQL_COUNT];

    /* the writer's */
    enum profd_status broken; /* not OK: nothing is written any more (DECISIONS 31) */
    struct profd_error why;
    struct sqlite_state state;
    struct intern hosts, builds; /* text → int64_t row id */
    struct intern series;        /* what names a series → struct sqlite_series */
    struct intern known;         /* uid, build-id → struct sqlite_known */
    struct buffer key;
    struct sqlite_cursor forget;
    int wal_frames, checkpoint_at;
    struct sqlite_state before; /* upkeep began */
    bool no_folding;            /* a sum that was to be folded cannot be read: verification says which */

    uint8_t *bounds; /* lent by get_bounds of a reading handle */
};

static inline struct sqlite_store *sqlite_self(struct store *s)
{
    return (struct sqlite_store *)s;
}

/* A parameter of a statement. Text and bytes are borrowed until the statement is finished. */
struct sqlite_value {
    enum { SQLITE_VALUE_INTEGER, SQLITE_VALUE_TEXT, SQLITE_VALUE_BLOB, SQLITE_VALUE_NULL } kind;
    int64_t integer;
    const void *data;
    size_t size;
};
#define INTEGER(v) ((struct sqlite_value){.kind = SQLITE_VALUE_INTEGER, .integer = (int64_t)(v)})
#define TEXT(t) ((struct sqlite_value){.kind = SQLITE_VALUE_TEXT, .data = (t)})
#define BLOB(p, n) ((struct sqlite_value){.kind = SQLITE_VALUE_BLOB, .data = (p), .size = (n)})
#define NOTHING ((struct sqlite_value){.kind = SQLITE_VALUE_NULL})
#define VALUES(...)                                                                                                    \
    (const struct sqlite_value[]){__VA_ARGS__},                                                                        \
        sizeof((const struct sqlite_value[]){__VA_ARGS__}) / sizeof(struct sqlite_value)

/* --- sqlite_statement.c: running SQL, and what went wrong ----------------------------------------------------------
 */

/* What an extended result code means. */
enum profd_status sqlite_status_of(int extended);
/* The status and the sentence for the connection's last error. IO and DAMAGED close a writer for good. */
enum profd_status sqlite_fail(struct sqlite_store *s, struct profd_error *e);
/* The statement with its parameters bound, ready for sqlite_next. */
enum profd_status sqlite_start(struct sqlite_store *s, enum sqlite_sql which, const struct sqlite_value *values,
                               size_t count, sqlite3_stmt **out, struct profd_error *e);
/* Steps: *row says whether there is one. At the end and on failure the statement is finished. */
enum profd_status sqlite_next(struct sqlite_store *s, sqlite3_stmt *statement, bool *row, struct profd_error *e);
/* Ends a statement before its last row. */
void sqlite_finish(sqlite3_stmt *statement);
/* Runs a statement that gives no rows. */
enum profd_status sqlite_run(struct sqlite_store *s, enum sqlite_sql which, const struct sqlite_value *values,
                             size_t count, struct profd_error *e);
/* First column of the first row, or absent. */
enum profd_status sqlite_find(struct sqlite_store *s, enum sqlite_sql which, const struct sqlite_value *values,
                              size_t count, int64_t *value, bool *found, struct profd_error *e);
/* Columns. Blobs and texts live until the next step. */
const uint8_t *sqlite_blob(sqlite3_stmt *statement, int column, size_t *n);
const char *sqlite_text(sqlite3_stmt *statement, int column);

/* A write transaction. end commits if status is OK, else rolls back, forgets what the writer remembered of it, and
 * returns status; then, after a commit, checkpoints when the log is long. */
enum profd_status sqlite_write_begin(struct sqlite_store *s, struct profd_error *e);
enum profd_status sqlite_write_end(struct sqlite_store *s, enum profd_status status, struct profd_error *e);
/* One snapshot for the statements of a reading verb. begin says whether end has to end it. */
enum profd_status sqlite_read_begin(struct sqlite_store *s, bool *began, struct profd_error *e);
enum profd_status sqlite_read_end(struct sqlite_store *s, bool began, enum profd_status status, struct profd_error *e);
/* Reads table state in the current transaction; writes s->state there. */
enum profd_status sqlite_load_state(struct sqlite_store *s, struct sqlite_state *state, struct profd_error *e);
enum profd_status sqlite_save_state(struct sqlite_store *s, struct profd_error *e);
/* Forgets row ids: some may be gone. */
void sqlite_forget_rows(struct sqlite_store *s);
void sqlite_statements_done(struct sqlite_store *s);

/* --- sqlite_file.c, sqlite_schema.c
 * ------------------------------------------------------------------------------------------------- */

/* Looks at the file without opening it as a database and without writing: a verdict and whether it is there. */
enum profd_status sqlite_judge_file(const char *path, bool *exists, struct profd_error *e);
/* Makes a new database beside path and renames it to path when it is whole. fill gets a new, empty file; it must use no
 * log: what it writes must stand in the file itself when it returns. */
enum profd_status sqlite_create_file(const char *path,
                                     enum profd_status (*fill)(const char *path, void *context, struct profd_error *e),
                                     void *context, struct profd_error *e);
enum profd_status sqlite_fill_empty(const char *path, void *context, struct profd_error *e);
/* Makes a new or renamed file's entry in its directory durable. */
enum profd_status sqlite_sync_directory(const char *path, struct profd_error *e);
/* Brings a database that nobody has open to SQLITE_SCHEMA_VERSION, from a version that sqlite_schema_copies. O(size).
 */
enum profd_status sqlite_upgrade_file(const char *path, int64_t version, struct profd_error *e);
/* Judges the open database's own word on its version. *version is what it has. */
enum profd_status sqlite_judge_schema(sqlite3 *db, const char *path, int64_t *version, struct profd_error *e);
/* Makes the tables in an empty database, in one transaction. */
enum profd_status sqlite_schema_create(sqlite3 *db, struct profd_error *e);
/* Must a database of this version be copied, or can it be extended where it is? */
bool sqlite_schema_copies(int64_t version);
/* Brings the open database of a version that need not be copied to SQLITE_SCHEMA_VERSION, in one transaction: what
 * fails has changed nothing. O(1). */
enum profd_status sqlite_schema_extend(sqlite3 *db, const char *path, int64_t version, struct profd_error *e);
/* First column of the first row of a statement without parameters. */
enum profd_status sqlite_pragma_integer(sqlite3 *db, const char *sql, int64_t *value, struct profd_error *e);

/* --- sqlite_series.c
 * -------------------------------------------------------------------------------------------------- */

struct sqlite_series {
    int64_t id;
    uint32_t build_count;
    int64_t builds[];
};
/* Row ids of things by their names, added if new. *series is borrowed until the next call. Inside a write transaction.
 */
enum profd_status sqlite_intern_host(struct sqlite_store *s, const char *host, int64_t *id, struct profd_error *e);
enum profd_status sqlite_intern_build(struct sqlite_store *s, const char *build_id, int64_t *id, struct profd_error *e);
enum profd_status sqlite_intern_series(struct sqlite_store *s, const struct store_upload *u,
                                       const struct sqlite_series **series, struct profd_error *e);

/* --- sqlite_sender.c
 * --------------------------------------------------------------------------------------------------- */

/* Enters the upload's id into its sender's set and says whether it was new. Inside a write transaction. */
enum profd_status sqlite_take_id(struct sqlite_store *s, const struct store_upload *u, int64_t host,
                                 enum store_outcome *outcome, struct profd_error *e);

/* --- sqlite_instance.c
 * ------------------------------------------------------------------------------------------------ */

/* Removes some of the ended instances that were last seen before. Inside a write transaction. */
enum profd_status sqlite_forget_instances(struct sqlite_store *s, int64_t before, struct profd_error *e);

/* --- sqlite_choose.c
 * ---------------------------------------------------------------------------------------------------- */

struct sqlite_known {
    bool known;
    size_t bounds_size;
    uint8_t bounds[];
};
/* The object of a build (row id) that may name functions for these uids; id 0 if none. note: of the object, or of a
 * failure that one of them (or a trusted sender) met; a new string, or NULL when there is nothing to say. */
struct sqlite_choice {
    int64_t object;
    bool has_names;
    char *note;
};
enum profd_status sqlite_choose_object(struct sqlite_store *s, int64_t build, const uint32_t *uids, size_t uid_count,
                                       struct sqlite_choice *choice, struct profd_error *e);

/* Verbs. */
enum profd_status sqlite_put_uploads(struct store *s, const struct store_upload *uploads, size_t n,
                                     enum store_outcome *outcomes, struct profd_error *e);
enum profd_status sqlite_put_harvests(struct store *s, const struct store_harvest *harvests, size_t n,
                                      enum store_harvest_outcome *outcomes, struct profd_error *e);
enum profd_status sqlite_get_instance(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                      uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e);
enum profd_status sqlite_each_instance(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                       void *context, struct profd_error *e);
enum profd_status sqlite_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                    struct profd_error *e);
enum profd_status sqlite_forget_ids(struct store *s, int64_t before, struct profd_error *e);
enum profd_status sqlite_put_object(struct store *s, const struct store_object *object, struct profd_error *e);
enum profd_status sqlite_has_object(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                    struct profd_error *e);
enum profd_status sqlite_get_object(struct store *s, const uint32_t *uids, size_t uid_count, const char *build_id,
                                    uint8_t **bytes, size_t *size, uint32_t *variants, struct profd_error *e);
enum profd_status sqlite_get_bounds(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                    size_t *size, struct profd_error *e);
enum profd_status sqlite_find_builds(struct store *s, const struct store_scope *scope, const char *prefix, bool exact,
                                     struct buildid found[2], size_t *count, struct profd_error *e);
enum profd_status sqlite_each_build(struct store *s, const struct store_scope *scope, const char *after, size_t limit,
                                    bool (*each)(void *context, const struct build_row *row), void *context,
                                    struct profd_error *e);
enum profd_status sqlite_get_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                   void (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e);
enum profd_status sqlite_each_label(struct store *s, const struct store_scope *scope, const char *build_id,
                                    bool (*each)(void *context, const struct label_row *row), void *context,
                                    struct profd_error *e);
enum profd_status sqlite_each_companion(struct store *s, const struct store_scope *scope, const char *build_id,
                                        bool (*each)(void *context, const char *companion, const char *name),
                                        void *context, struct profd_error *e);
enum profd_status
sqlite_each_upload(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                   enum profd_status (*each)(void *context, const struct store_row *row, struct profd_error *e),
                   void *context, struct profd_error *e);
enum profd_status sqlite_get_range(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                   int64_t *since, int64_t *until, struct profd_error *e);
enum profd_status sqlite_compact(struct store *s, const struct store_policy *policy, int64_t now,
                                 struct store_progress *progress, struct profd_error *e);
enum profd_status sqlite_retire(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *progress, struct profd_error *e);
enum profd_status sqlite_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                      uint64_t *uploads, struct profd_error *e);
enum profd_status sqlite_shrink(struct store *s, uint64_t bytes, struct store_progress *progress,
                                struct profd_error *e);
enum profd_status sqlite_verify(struct store *s, struct store_cursor *cursor,
                                void (*mismatch)(void *context, const char *sentence), void *context,
                                uint64_t *uploads_checked, struct profd_error *e);
enum profd_status sqlite_backup_open(struct store *s, const char *path, struct store_backup **out,
                                     struct profd_error *e);
enum profd_status sqlite_epoch(struct store *s, const struct store_scope *scope, const char *build_id, uint64_t *epoch,
                               struct profd_error *e);
enum profd_status sqlite_epoch_all(struct store *s, const struct store_scope *scope, uint64_t *epoch,
                                   struct profd_error *e);
enum profd_status sqlite_get_totals(struct store *s, struct store_totals *t, struct profd_error *e);

#endif
