/* What the files of the store share. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_H
#define PROFD_STORE_SQLITE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/hashmap.h"
#include "proto/limits.h"
#include "store/outgoing.h"
#include "store/store.h"

#define SQLITE_APPLICATION_ID 0x70726664 /* "prfd" */
#define SQLITE_SCHEMA_VERSION 1
#define SQLITE_SEAL_SIZE 8             /* bytes of the checksum at the end of each page */
#define SQLITE_WAL_FRAMES 4096         /* pages of log after which the writer checkpoints: 16 MiB */
#define SQLITE_PAGE 4096               /* bytes, of a database that this engine made */
#define SQLITE_ROW_BYTES 128           /* that a row and its entries in indexes count beside its texts and blobs */
#define SQLITE_CACHE_BYTES (32u << 20) /* each of the writer's memories of the database */
#define SQLITE_HOUR INT64_C(3600000000000)
#define SQLITE_DAY (24 * SQLITE_HOUR)

/* Cached statements; their texts are in sqlite_texts.c. */
#define SQL(name, text) SQL_##name,
enum sqlite_sql {
#include "store/sqlite_texts.inc"
    SQL_COUNT
};
#undef SQL

/* The row of table state. */
struct sqlite_state {
    int64_t number, list_epoch, salt;
    uint64_t uploads, ticks, calls;
    int64_t version;
    uint64_t retired_uploads, retired_ticks, retired_calls, raw_uploads, raw_bytes, rollups;
    int64_t retiring;
    uint64_t live_bytes;
};

/* Position in the list of senders for forgetting ids. */
struct sqlite_cursor {
    int64_t host, uid;
    uint8_t sender[UPLOAD_SENDER_SIZE];
};

extern const char *const sqlite_texts[SQL_COUNT];

/* A file that must keep its name while it is open, and what was committed to it. */
struct sqlite_watched {
    char *path;
    dev_t device;
    ino_t inode;
    int64_t size; /* bytes that it must have at least */
};
#define SQLITE_WATCHED 4u /* the database, its log, its index, and one that the opener names */
#define SQLITE_WATCHED_DATABASE 0u
#define SQLITE_WATCHED_LOG 1u

/* Series of the hosts of one tenant or of all, as SQL_TENANT_SERIES counted them. */
struct sqlite_tenant_series {
    int64_t hour;            /* 0: not yet */
    uint64_t counted, added; /* added: segments since then, each of which may have been another one */
    int64_t since;           /* s of the monotonic clock: when it was counted */
    uint64_t number;         /* of the centre when a transaction last asked */
};

struct store {
    bool writable;
    struct store_health health; /* sqlite_break and sqlite_write_end keep it */
    uint64_t run;               /* store_set_run */
    uint64_t salt;              /* store_set_salt */
    struct store_share share;
    struct store_detail detail;
    const struct store_archive *archive; /* store_set_archive */
    bool tier;                           /* store_set_tier */
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[SQL_COUNT];
    int64_t bad_page; /* refused without its checksum; 0: none was */

    /* the writer's */
    enum profd_status broken; /* not OK: nothing is written any more (DECISIONS 31); health.error says why */
    bool spacious;            /* sqlite_space_judge found space in this transaction */
    struct sqlite_state state;
    struct hashmap hosts, builds; /* text → int64_t row id */
    struct hashmap series;        /* what names a series → struct sqlite_series */
    struct hashmap known;         /* uid, build-id → struct sqlite_known */
    struct buffer key;
    struct sqlite_cursor forget;
    int wal_frames, checkpoint_at;
    int64_t page_size;
    struct hashmap owed; /* bytes of rows that the transaction has changed: sqlite_users.c */
    bool owed_lost;      /* there was no memory for some of it */
    int log_frames; /* pages of log after which this writer checkpoints: SQLITE_WAL_FRAMES, fewer on a small disk */
    struct sqlite_state before; /* upkeep began */
    struct sqlite_watched watched[SQLITE_WATCHED];
    size_t watched_count;
    bool saved;      /* only the name of the log was gone: what it held is in the database */
    bool no_folding; /* a sum that was to be folded cannot be read: verification says which */
    bool relaying;   /* what is accepted goes into segments of this epoch, too */
    uint8_t relay_epoch[SEGMENT_EPOCH_SIZE];
    bool relay_settled;    /* table relay says so */
    bool relay_unresolved; /* the centre has not said since the start whether this database went back */
    int64_t relay_since;   /* ns: of the start */
    struct outgoing_pace relay_pace;
    int64_t intervals_checked; /* ns: when the slices of hosts were added up; large: they take too much */
    bool intervals_large;
    struct sqlite_tenant_series all_series;
    struct hashmap tenant_series; /* uid → struct sqlite_tenant_series */
    bool no_widening;             /* slices that were to become wider cannot be accounted for: likewise */

    uint8_t *bounds; /* lent by get_bounds of a reading handle */
};

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
#define SCOPE(s) INTEGER((s)->all ? -1 : (int64_t)(s)->uid) /* No user has the number -1. */
#define VALUES(...)                                                                                                    \
    (const struct sqlite_value[]){__VA_ARGS__},                                                                        \
        sizeof((const struct sqlite_value[]){__VA_ARGS__}) / sizeof(struct sqlite_value)

/* --- sqlite_statement.c: running SQL, and what went wrong */

/* What an extended result code means. */
enum profd_status sqlite_status_of(int extended);
/* IO and DAMAGED: a writer never writes again, because the result of a failed write or fsync is unknown, and a later
 * success would not change that. Others have no effect. */
void sqlite_break(struct store *s, enum profd_status status, const char *why);
/* The status and the sentence for the connection's last error. IO and DAMAGED close a writer for good. */
enum profd_status sqlite_fail(struct store *s, struct profd_error *e);
/* The statement with its parameters bound, ready for sqlite_next; NULL on failure. */
enum profd_status sqlite_start(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                               sqlite3_stmt **out, struct profd_error *e);
/* Steps: *row says whether there is one. At the end and on failure the statement is finished. */
enum profd_status sqlite_next(struct store *s, sqlite3_stmt *statement, bool *row, struct profd_error *e);
/* Starts a statement and steps to its first row, if it has one; then the caller finishes it. */
enum profd_status sqlite_first(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                               sqlite3_stmt **out, bool *row, struct profd_error *e);
/* Steps to the next row while *status is OK. False at the end and on failure, of the step or of the loop's body: the
 * statement is finished then. */
bool sqlite_row(struct store *s, sqlite3_stmt *statement, enum profd_status *status, struct profd_error *e);
/* Ends a statement before its last row. Accepts NULL. */
void sqlite_finish(sqlite3_stmt *statement);
/* Runs a statement that gives no rows. */
enum profd_status sqlite_run(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                             struct profd_error *e);
/* First column of the first row, or absent. */
enum profd_status sqlite_find(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                              int64_t *value, bool *found, struct profd_error *e);
/* Columns. Blobs and texts live until the next step. */
const uint8_t *sqlite_blob(sqlite3_stmt *statement, int column, size_t *n);
const char *sqlite_text(sqlite3_stmt *statement, int column);

/* A write transaction, of a writing handle only. end commits if status is OK, else rolls back, forgets what the writer
 * remembered of it, and returns status; then, after a commit, checkpoints when the log is long. The store's health
 * takes note of the status. */
enum profd_status sqlite_write_begin(struct store *s, struct profd_error *e);
enum profd_status sqlite_write_end(struct store *s, enum profd_status status, struct profd_error *e);
/* Ends it without a commit and without a note. */
void sqlite_write_undo(struct store *s);
/* Checkpoints the log, and returns the blocks after the database's last page to the file system; with truncate also the
 * log's, which are otherwise reused. If a reader needs the log, or the database cannot grow, nothing is lost and the
 * result is OK, too. */
enum profd_status sqlite_empty_log(struct store *s, bool truncate, struct profd_error *e);
/* One snapshot for the statements of a reading verb. begin says whether end has to end it. */
enum profd_status sqlite_read_begin(struct store *s, bool *began, struct profd_error *e);
enum profd_status sqlite_read_end(struct store *s, bool began, enum profd_status status, struct profd_error *e);
/* Reads table state in the current transaction; writes s->state there. */
enum profd_status sqlite_load_state(struct store *s, struct sqlite_state *state, struct profd_error *e);
enum profd_status sqlite_save_state(struct store *s, struct profd_error *e);
/* Forgets row ids: some may be gone. */
void sqlite_discard_rows(struct store *s);
void sqlite_statements_done(struct store *s);

/* Storing leaves space for its own log. */

/* How long the log may be on this disk. */
enum profd_status sqlite_space_open(struct store *s, struct profd_error *e);
/* Before something is stored, outside a transaction: checkpoints a log that would not fit into the database, or is far
 * too long. BUSY: a reader uses such a log. */
enum profd_status sqlite_space_begin(struct store *s, struct profd_error *e);
/* Before the commit of stored data: FULL unless the disk has space for it twice, in the log and in the database.
 * Otherwise the disk could be full with a log that no removal can checkpoint. Removals are exempt. */
enum profd_status sqlite_space_judge(struct store *s, struct profd_error *e);
/* A write transaction that stores something: with both. */
enum profd_status sqlite_store_begin(struct store *s, struct profd_error *e);
enum profd_status sqlite_store_end(struct store *s, enum profd_status status, struct profd_error *e);

/* --- sqlite_direct.c: SQL on a bare connection */

/* Runs statements that give no rows; doing says what for when they fail. */
enum profd_status sqlite_direct_run(sqlite3 *db, const char *sql, const char *doing, struct profd_error *e);
/* The status and the sentence for the connection's last error; doing says what met it. */
enum profd_status sqlite_direct_fail(sqlite3 *db, const char *doing, struct profd_error *e);
/* First column of the first row of a statement without parameters. */
enum profd_status sqlite_direct_integer(sqlite3 *db, const char *sql, int64_t *value, struct profd_error *e);

/* --- sqlite_open.c, sqlite_schema.c, sqlite_seal.c */

/* Makes a new or renamed file's entry in its directory durable. */
enum profd_status sqlite_sync_directory(const char *path, struct profd_error *e);

/* Lets all files that SQLite opens from now on have checked pages, if their header leaves space for checksums. */
void sqlite_seal_register(void);

/* Returns the bytes that SQLite leaves free at the end of each page, and sets those of a new file or of VACUUM; -1 sets
 * nothing. */
int sqlite_seal_reserve(sqlite3 *db, int bytes);

/* Reads the next n pages of the file from *page on, and sets *bad to the first that does not have its checksum, or 0.
 * *page: the one to go on with; 0 at the end of the file. */
enum profd_status sqlite_seal_scan(struct store *s, int64_t n, int64_t *page, int64_t *bad, struct profd_error *e);

/* The page that was refused last in this thread with SQLITE_IOERR_DATA, since the last call; 0: none was. */
int64_t sqlite_seal_take_fault(void);
/* The numbered texts that make the tables: the one at index i leads from version i to i + 1. Tests have others. */
struct sqlite_schema {
    const char *const *steps;
    int64_t version; /* the newest: number of steps */
};
extern const struct sqlite_schema sqlite_schema_newest;
/* Checks the version of the open database. *version is its version. */
enum profd_status sqlite_judge_schema(sqlite3 *db, const char *path, int64_t *version, struct profd_error *e);
/* Brings the open database from a version, 0 of an empty file, to the newest, in one transaction: what fails has
 * changed nothing. O(1) unless a step changes rows. */
enum profd_status sqlite_schema_extend(sqlite3 *db, const struct sqlite_schema *schema, int64_t version,
                                       struct profd_error *e);
/* Runs the steps that lead from one version to another, in the caller's transaction if there is one. */
enum profd_status sqlite_schema_make(sqlite3 *db, const struct sqlite_schema *schema, int64_t from, int64_t to,
                                     struct profd_error *e);
/* DAMAGED, naming the first difference, if the tables and indexes of the database are not those of this version.
 * Others are ignored. O(tables): a few ms. */
enum profd_status sqlite_structure_judge(sqlite3 *db, const struct sqlite_schema *schema, const char *path,
                                         int64_t version, struct profd_error *e);
/* Draws a new random salt for ETags (struct store_epoch). In the caller's transaction, if there is one. */
enum profd_status sqlite_salt_draw(sqlite3 *db, struct profd_error *e);

/* --- sqlite_transaction.c: files that keep their names */

/* Notes which files the writing handle has open, once they are there. */
enum profd_status sqlite_watch_begin(struct store *s, struct profd_error *e);
/* The log has wal_frames pages now. */
void sqlite_watch_note_log(struct store *s);
/* IO when the handle has failed, or one of them has lost its name or the end of what was committed to it: then the
 * handle never writes again. A few microseconds. */
enum profd_status sqlite_watch_look(struct store *s, struct profd_error *e);
void sqlite_watch_end(struct store *s);

/* --- sqlite_put.c */

struct sqlite_series {
    int64_t id;
    uint32_t build_count;
    int64_t builds[];
};
/* Row ids of things by their names, added if new. mirror: of a series of which other centres have the sums; its lists
 * show it from its first uploads on. *series is borrowed until the next call. Inside a write transaction. */
enum profd_status sqlite_intern_host(struct store *s, const char *host, int64_t *id, struct profd_error *e);
enum profd_status sqlite_intern_build(struct store *s, const char *build_id, int64_t *id, struct profd_error *e);
enum profd_status sqlite_intern_series(struct store *s, const struct store_upload *u, bool mirror,
                                       const struct sqlite_series **series, struct profd_error *e);

#define SQLITE_ENDED_BEFORE                                                                                            \
    ((LIMIT_ID_DAYS - STORE_ENDED_DAYS) * INT64_C(86400000000000)) /* added to the before of store_remove_ids */
#define SQLITE_DIGESTS_BEFORE ((LIMIT_ID_DAYS - STORE_ARRIVAL_DAYS) * INT64_C(86400000000000)) /* likewise */

/* --- sqlite_list.c */

struct sqlite_known {
    bool known;
    size_t bounds_size;
    uint8_t bounds[];
};
/* The object of a build (row id) that may name functions for these uids; id 0 if none. note: of the object, or of a
 * failure that one of them (or a trusted sender) met; a new string, or NULL when there is nothing to say. */
struct sqlite_choice {
    int64_t object;
    bool has_names, trusted;
    bool by_operators, apart; /* as in struct store_naming */
    char *note;
};
enum profd_status sqlite_choose_object(struct store *s, int64_t build, const struct store_senders *of,
                                       struct sqlite_choice *choice, struct profd_error *e);
/* Reports with this build are new from the state's number on, for the users from one to another. Inside a write
 * transaction. */
enum profd_status sqlite_touch_object(struct store *s, int64_t build, uint32_t from, uint32_t to,
                                      struct profd_error *e);

/* --- sqlite_content.c */

/* The content of an object in the current row of q, which begins with size and encoded: a new block
 * that the caller frees. DAMAGED: it cannot be unpacked. */
enum profd_status sqlite_take_content(struct store *s, sqlite3_stmt *q, uint8_t **bytes, size_t *size,
                                      struct profd_error *e);

/* --- sqlite_token.c: the id of the tenant of a name, made if there is none; LIMIT: too many. In a transaction. */
enum profd_status sqlite_find_tenant(struct store *s, const char *name, int64_t *id, struct profd_error *e);

/* --- sqlite_offer.c. Inside a write transaction, but for sqlite_find_dispute */

/* A segment of the host came, with builds of this series: the host shall offer their symbols. */
enum profd_status sqlite_await_objects(struct store *s, int64_t series, int64_t host, struct profd_error *e);

/* A build of which the host has sent counts, with row ids. */
struct sqlite_host_build {
    int64_t build, host;
    uint32_t uid;  /* of the host's tenant */
    bool differs;  /* what it has, as it said last, is not stored */
    bool stored;   /* its tenant has this object, */
    bool kept_out; /* or another one that precedes it (sqlite_host_build_judge) */
};
/* *found: false if the host has sent no counts of the build. */
enum profd_status sqlite_host_build_find(struct store *s, const uint8_t identity[STORE_HOST_SIZE], const char *build_id,
                                         struct sqlite_host_build *out, bool *found, struct profd_error *e);
/* Sets the verdict for an object of this size. */
enum profd_status sqlite_host_build_limit(struct store *s, const struct sqlite_host_build *h, uint64_t size,
                                          struct store_offered *out, struct profd_error *e);
/* Sets stored and kept_out for an object with this hash. */
enum profd_status sqlite_host_build_judge(struct store *s, struct sqlite_host_build *h, const uint8_t *hash,
                                          bool has_names, struct profd_error *e);
/* Records what the host has. hash: of what is not stored; NULL: it has nothing else. */
enum profd_status sqlite_host_build_set(struct store *s, const struct sqlite_host_build *h, const uint8_t *hash,
                                        uint64_t size, int64_t due, struct profd_error *e);
/* The object (row id) of the host was stored: it replaces what this host sent before. */
enum profd_status sqlite_host_build_stored(struct store *s, const struct sqlite_host_build *h, int64_t object,
                                           const struct store_object *o, struct profd_error *e);
/* The clause of struct store_naming about an object that names functions for these senders. */
enum profd_status sqlite_find_dispute(struct store *s, int64_t object, const struct store_senders *of, char *text,
                                      size_t size, struct profd_error *e);

#endif
