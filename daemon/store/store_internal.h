/* What the files of the store share. Functions that change rows are called inside a write transaction, unless they say
 * otherwise. Times are nanoseconds since the epoch; hours and days are numbers since the epoch, UTC. */
#ifndef PROFD_STORE_STORE_INTERNAL_H
#define PROFD_STORE_STORE_INTERNAL_H

#include <limits.h>
#include <sqlite3.h>
#include <sys/types.h>

#include "core/hashmap.h"
#include "core/shares.h"
#include "store/store.h"

#define SQLITE_APPLICATION_ID 0x70726664 /* "prfd" */
#define SQLITE_SCHEMA_VERSION 1
#define SQLITE_SEAL_SIZE 8             /* bytes of the checksum at the end of each page */
#define SQLITE_PAGE 4096               /* bytes of a page of a new database */
#define SQLITE_ROW_BYTES 128           /* estimate for a row and its entries in indexes, without texts and blobs */
#define SQLITE_CACHE_BYTES (32u << 20) /* limit of each of the writer's caches */
#define SQLITE_SECOND INT64_C(1000000000)
#define SQLITE_MINUTE (60 * SQLITE_SECOND)
#define SQLITE_HOUR (60 * SQLITE_MINUTE)
#define SQLITE_DAY (24 * SQLITE_HOUR)

/* Cached statements; their texts are in sql_texts.inc. */
#define SQL(name, text) SQL_##name,
enum sqlite_sql {
#include "store/sql_texts.inc"
    SQL_COUNT
};
#undef SQL

/* The row of table state. */
struct sqlite_state {
    int64_t number, list_epoch, salt;
    struct store_amount accepted;
    int64_t version;
    struct store_amount retired;
    uint64_t raw_uploads, raw_bytes, rollups;
    int64_t retiring;
    uint64_t live_bytes;
};

/* A position in the list of senders. */
struct sqlite_cursor {
    int64_t host, uid;
    uint8_t sender[UPLOAD_SENDER_SIZE];
};

/* A file that must keep its name and its content while it is open. */
struct sqlite_watched {
    char *path;
    dev_t device;
    ino_t inode;
    int64_t size; /* bytes that it must have at least */
};
#define SQLITE_WATCHED 4u /* the database, its log, its index, and one that store_sqlite_watch names */

/* The number of series of the hosts of one tenant or of all, in the busier one of two hours. */
struct sqlite_tenant_series {
    int64_t hour;            /* the later hour; 0: not counted yet */
    uint64_t counted, added; /* added: segments since it was counted; each may have begun another series */
    int64_t since;           /* s of the monotonic clock: when it was counted */
    uint64_t number;         /* of the centre when a transaction last asked */
};

struct store {
    bool writable;
    struct store_health health; /* set by sqlite_break and sqlite_write_end */
    uint64_t run;               /* store_set_run */
    uint64_t salt;              /* store_set_salt */
    struct store_share share;
    struct store_detail detail;
    const struct store_archive *archive; /* store_set_archive */
    bool tier;                           /* store_set_tier */
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statements[SQL_COUNT];
    int64_t bad_page; /* the last page that was refused because of its checksum; 0: none was */
    uint8_t *bounds;  /* lent by store_get_bounds of a reading handle */

    /* Of a writing handle only: */
    enum profd_status broken;          /* not OK: nothing is written any more; health.error says why */
    bool spacious;                     /* sqlite_space_judge found space in this transaction */
    struct sqlite_state state, before; /* before: when the transaction of upkeep began */
    struct hashmap hosts, builds;      /* text → int64_t row id */
    struct hashmap series;             /* key of a series → struct sqlite_series */
    struct hashmap values;             /* uid, label and a value that is new in values_hour; uid, label → uint32_t */
    int64_t values_hour;
    struct hashmap known;        /* uid, build-id → struct known_object */
    struct buffer key;           /* scratch memory for the key of a series */
    struct sqlite_cursor forget; /* the last sender that store_remove_ids visited */
    struct hashmap touched;      /* uids whose answers change with the mirror (sqlite_mirror.c) */
    struct hashmap owed;         /* bytes of rows that the transaction has changed (quota.c) */
    bool owed_lost;              /* there was no memory for some of them */

    int wal_frames, checkpoint_at; /* pages of log now, and when the next checkpoint is due */
    int log_frames;                /* pages of log after which this writer checkpoints; fewer on a small disk */
    int64_t page_size;
    struct sqlite_watched watched[SQLITE_WATCHED];
    size_t watched_count;
    bool saved; /* the name of the log was removed, and its commits were copied into the database */

    bool no_folding;           /* a sum that was to be folded cannot be read: verification says which */
    bool no_widening;          /* slices that were to be widened cannot be accounted for: likewise */
    int64_t intervals_checked; /* ns: when the sizes of the slices of hosts were added up */
    bool intervals_large;      /* they exceed their share */

    bool relaying; /* accepted uploads are added to segments of relay_epoch, too */
    uint8_t relay_epoch[SEGMENT_EPOCH_SIZE];
    bool relay_settled;    /* table relay has these values */
    bool relay_unresolved; /* the centre has not stated since the start whether this database went back */
    int64_t relay_since;   /* ns: of the start */
    struct {
        int64_t acknowledged; /* ns: when the centre did last, or, before that, when something was accepted first */
        int64_t apart;        /* ns: between the last two times */
    } relay_pace;
    struct sqlite_tenant_series all_series;
    struct hashmap tenant_series; /* uid → struct sqlite_tenant_series */
};

/* --- sql.c: statements --- */

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
#define AMOUNT(a) INTEGER((a).uploads), INTEGER((a).ticks), INTEGER((a).calls)
#define NOTHING ((struct sqlite_value){.kind = SQLITE_VALUE_NULL})
#define SCOPE(s) INTEGER((s)->all ? -1 : (int64_t)(s)->uid) /* No user has the number -1. */
#define VALUES(...)                                                                                                    \
    (const struct sqlite_value[]){__VA_ARGS__},                                                                        \
        sizeof((const struct sqlite_value[]){__VA_ARGS__}) / sizeof(struct sqlite_value)

/* Converts an extended result code. */
enum profd_status sqlite_status_of(int extended);
/* If status is IO or DAMAGED, the writer never writes again: the result of a failed write or fsync is unknown, and a
 * later success would not change that. Other statuses have no effect. */
void sqlite_break(struct store *s, enum profd_status status, const char *why);
/* Returns the status of the connection's last error, and sets its sentence. IO and DAMAGED close a writer for good. */
enum profd_status sqlite_fail(struct store *s, struct profd_error *e);
/* Binds the parameters of a statement, so that sqlite_row can step it. *out is NULL on failure. */
enum profd_status sqlite_start(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                               sqlite3_stmt **out, struct profd_error *e);
/* Starts a statement and steps to its first row. *row: it has one, and the caller must call sqlite_finish. */
enum profd_status sqlite_first(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                               sqlite3_stmt **out, bool *row, struct profd_error *e);
/* Steps to the next row while *status is OK. Returns false, and finishes the statement, at the end and on failure of
 * the step or of the loop's body. */
bool sqlite_row(struct store *s, sqlite3_stmt *statement, enum profd_status *status, struct profd_error *e);
/* Ends a statement before its last row. Accepts NULL and a statement that was finished. */
void sqlite_finish(sqlite3_stmt *statement);
/* Runs a statement that gives no rows. */
enum profd_status sqlite_run(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                             struct profd_error *e);
/* Reads the first column of the first row. *value does not change if there is no row. */
enum profd_status sqlite_find(struct store *s, enum sqlite_sql which, const struct sqlite_value *values, size_t count,
                              int64_t *value, bool *found, struct profd_error *e);
/* Read a column of the current row. Bytes and texts live until the next step; they are never NULL. */
const uint8_t *sqlite_blob(sqlite3_stmt *statement, int column, size_t *n);
const char *sqlite_text(sqlite3_stmt *statement, int column);
/* A number that is not negative. */
static inline uint64_t sqlite_u64(sqlite3_stmt *q, int column)
{
    return (uint64_t)sqlite3_column_int64(q, column);
}
/* Copies bytes that have this size; of fewer, those that are there. */
void sqlite_copy(sqlite3_stmt *q, int column, uint8_t *out, size_t size);
/* Reads three columns as an amount. */
struct store_amount sqlite_amount(sqlite3_stmt *q, int column);
void sqlite_statements_done(struct store *s);

/* The same on a connection without a handle: these run statements without rows, read the first column of the first row,
 * and return the connection's last error. doing: the beginning of the sentence. */
enum profd_status sqlite_direct_run(sqlite3 *db, const char *sql, const char *doing, struct profd_error *e);
enum profd_status sqlite_direct_integer(sqlite3 *db, const char *sql, int64_t *value, struct profd_error *e);
enum profd_status sqlite_direct_fail(sqlite3 *db, const char *doing, struct profd_error *e);

/* --- transaction.c --- */

/* Begins a write transaction; on a writing handle only. */
enum profd_status sqlite_write_begin(struct store *s, struct profd_error *e);
/* Commits if status is OK, and checkpoints if the log is long. Otherwise rolls back, forgets what the writer
 * remembered, and returns status. The store's health notes the result. */
enum profd_status sqlite_write_end(struct store *s, enum profd_status status, struct profd_error *e);
/* Rolls back. The store's health does not note it. */
void sqlite_write_undo(struct store *s);
/* Checkpoints the log, and returns the blocks after the database's last page to the file system; with truncate those of
 * the log, too, which are otherwise reused. If a reader needs the log, or the database cannot grow, nothing is lost,
 * and the result is OK. Outside a transaction. */
enum profd_status sqlite_empty_log(struct store *s, bool truncate, struct profd_error *e);
/* Begins a snapshot for the statements of a reading verb, unless there is a transaction. *began: end must end it. */
enum profd_status sqlite_read_begin(struct store *s, bool *began, struct profd_error *e);
enum profd_status sqlite_read_end(struct store *s, bool began, enum profd_status status, struct profd_error *e);
/* Reads table state; writes s->state to it. */
enum profd_status sqlite_load_state(struct store *s, struct sqlite_state *state, struct profd_error *e);
enum profd_status sqlite_save_state(struct store *s, struct profd_error *e);
/* Empties the caches of row ids, because some rows may have been removed. */
void sqlite_discard_rows(struct store *s);

/* Decides how long the log may be on this disk. */
enum profd_status sqlite_space_open(struct store *s, struct profd_error *e);
/* Call it before something is stored, outside a transaction: checkpoints a log that would not fit into the database, or
 * is far too long. BUSY: a reader uses such a log. */
enum profd_status sqlite_space_begin(struct store *s, struct profd_error *e);
/* Call it before stored data is committed: FULL unless the disk has space for it twice, in the log and in the database.
 * Otherwise the disk could be full with a log that no removal can checkpoint. Removals are exempt. */
enum profd_status sqlite_space_judge(struct store *s, struct profd_error *e);
/* Begin and end a write transaction that stores something: with both. */
enum profd_status sqlite_store_begin(struct store *s, struct profd_error *e);
enum profd_status sqlite_store_end(struct store *s, enum profd_status status, struct profd_error *e);

/* Begin and end a write transaction of upkeep. end also saves s->state if it has changed. */
enum profd_status sqlite_upkeep_begin(struct store *s, struct profd_error *e);
enum profd_status sqlite_upkeep_end(struct store *s, enum profd_status status, struct profd_error *e);
/* Returns the processor time of this thread, ns. */
int64_t sqlite_work_now(void);
/* How much one transaction of upkeep does. */
struct sqlite_budget {
    int64_t deadline; /* of sqlite_work_now, so that transactions on a busy machine do as much */
    uint64_t uploads; /* left */
};
struct sqlite_budget sqlite_budget_begin(void);
bool sqlite_budget_spent(const struct sqlite_budget *b);

/* Notes which files the writing handle has open, once they exist. */
enum profd_status sqlite_watch_begin(struct store *s, struct profd_error *e);
/* Notes that the log has wal_frames pages now. */
void sqlite_watch_note_log(struct store *s);
/* Notes the size of the database after the log was copied into it: it may have become shorter. */
void sqlite_watch_note_database(struct store *s);
/* IO if the handle has failed, or one of the files has lost its name or the end of what was committed to it; the handle
 * then never writes again. Takes a few microseconds. */
enum profd_status sqlite_watch_look(struct store *s, struct profd_error *e);
void sqlite_watch_end(struct store *s);

/* --- open.c --- */

/* Makes the entry of a new or renamed file in its directory durable. */
enum profd_status sqlite_sync_directory(const char *path, struct profd_error *e);
/* The numbered texts that make the tables: the one at index i leads from version i to i + 1. Tests have others. */
struct sqlite_schema {
    const char *const *steps;
    int64_t version; /* the newest: number of steps */
};
extern const struct sqlite_schema sqlite_schema_newest;
/* Brings the open database from a version, 0 of an empty file, to the newest, in one transaction. On failure nothing
 * has changed. O(1) unless a step changes rows. */
enum profd_status sqlite_schema_extend(sqlite3 *db, const struct sqlite_schema *schema, int64_t version,
                                       struct profd_error *e);
/* DAMAGED, naming the first difference, if the tables and indexes of the database are not those of this version. Others
 * are ignored. O(tables): a few ms. */
enum profd_status sqlite_structure_judge(sqlite3 *db, const struct sqlite_schema *schema, const char *path,
                                         int64_t version, struct profd_error *e);

/* --- sqlite_seal.c: checksums of pages --- */

/* Adds checksums to the pages of all files that SQLite opens from now on, if their header leaves space for them. */
void sqlite_seal_register(void);
/* Returns the bytes that SQLite leaves free at the end of each page, and sets those of a new file or of VACUUM; -1 sets
 * nothing. */
int sqlite_seal_reserve(sqlite3 *db, int bytes);
/* Reads the next n pages of the file from *page on, and sets *bad to the first that does not have its checksum, or 0.
 * *page: the next one; 0 at the end of the file. */
enum profd_status sqlite_seal_scan(struct store *s, int64_t n, int64_t *page, int64_t *bad, struct profd_error *e);
/* Returns the last page that was refused in this thread with SQLITE_IOERR_DATA since the last call; 0: none was. */
int64_t sqlite_seal_take_fault(void);

/* --- ledger.c: the sums of the ledger, of series and of lists --- */

/* Sums stop at 2^63−1; one that did sets INEXACT_SATURATED. Without uploads, first is INT64_MAX and last INT64_MIN. */
struct sqlite_sums {
    uint64_t uploads, processes, ticks, calls;
    uint64_t stack_ticks; /* the ticks that have a stack */
    int64_t first, last;
    uint32_t inexact;
    uint64_t raw_uploads, raw_bytes, live_bytes; /* of single uploads; live_bytes: of those of live processes */
    int64_t raw_since;                           /* s; INT64_MAX: no single uploads, or not known here */
    size_t build_count;
    struct share shares[LIMIT_BUILDS]; /* of the set's builds, in load order; only build_count are there */
};
#define SQLITE_SUMS_SIZE(builds) (offsetof(struct sqlite_sums, shares) + (builds) * sizeof(struct share))
#define SQLITE_SUM_COLUMNS 12 /* with which a row of sums begins */
#define SQLITE_SHARES_BYTES (((size_t)LIMIT_BUILDS * 2 + 1) * 10)

static inline struct store_amount sqlite_sums_amount(const struct sqlite_sums *s)
{
    return (struct store_amount){s->uploads, s->ticks, s->calls};
}
/* Sets sums without uploads, for this number of builds. */
void sqlite_sums_init(struct sqlite_sums *s, size_t builds);
void sqlite_sums_add(struct sqlite_sums *to, const struct sqlite_sums *more);
/* Subtracts a part. Returns false, and *to cannot be used, if the rest must be added up anew: a sum has stopped, or the
 * part had the earliest or latest time, or a reason for inexactness. */
bool sqlite_sums_subtract(struct sqlite_sums *to, const struct sqlite_sums *part);
/* Returns the row id of a build of a set. */
static inline uint32_t sqlite_set_build(const uint8_t *set, size_t i)
{
    return (uint32_t)set[4 * i] | (uint32_t)set[4 * i + 1] << 8 | (uint32_t)set[4 * i + 2] << 16 |
           (uint32_t)set[4 * i + 3] << 24;
}
/* Encodes the shares and the ticks of stacks. Returns the number of bytes, at most SQLITE_SHARES_BYTES. */
size_t sqlite_shares_encode(const struct sqlite_sums *s, uint8_t *out);
/* Decodes them for s->build_count builds. False: the bytes are malformed. */
bool sqlite_shares_decode(const uint8_t *in, size_t n, struct sqlite_sums *s);
/* Reads the sums with which the current row of q begins (SUM_COLUMNS, raw_since, shares). DAMAGED: they are malformed.
 */
enum profd_status sqlite_sums_read(struct store *s, sqlite3_stmt *q, size_t builds, struct sqlite_sums *out,
                                   struct profd_error *e);
/* Adds up the rows of a statement that begin with sums. */
enum profd_status sqlite_sums_of_rows(struct store *s, enum sqlite_sql which, const struct sqlite_value *values,
                                      size_t count, size_t builds, struct sqlite_sums *out, struct profd_error *e);
/* Reads the ledger's row of a series and hour; sums without uploads if there is none. */
enum profd_status sqlite_ledger_load(struct store *s, int64_t series, int64_t hour, size_t builds,
                                     struct sqlite_sums *out, bool *found, struct profd_error *e);
/* Writes the row. raw_since is written to a new row only; SQL_LEDGER_SINCE changes it. */
enum profd_status sqlite_ledger_save(struct store *s, int64_t series, int64_t hour, const struct sqlite_sums *sums,
                                     struct profd_error *e);
/* Adds up the ledger's rows of the series in these hours, both included. */
enum profd_status sqlite_ledger_sum(struct store *s, int64_t series, int64_t from, int64_t to, size_t builds,
                                    struct sqlite_sums *out, struct profd_error *e);
/* Read and write the sums of a series. */
enum profd_status sqlite_series_load(struct store *s, int64_t series, size_t builds, struct sqlite_sums *out,
                                     bool *found, struct profd_error *e);
enum profd_status sqlite_series_save(struct store *s, int64_t series, const struct sqlite_sums *sums,
                                     struct profd_error *e);

/* What identifies a series. builds lives in the arena. */
struct sqlite_identity {
    int64_t id, set, program;
    uint32_t uid;
    bool mirror; /* other centres have its sums: they are in no total */
    size_t build_count;
    const uint32_t *builds; /* row ids in load order */
};
enum profd_status sqlite_series_identify(struct store *s, struct arena *a, int64_t series, struct sqlite_identity *out,
                                         bool *found, struct profd_error *e);

/* The same. DAMAGED if there is none; what: that says it exists. */
enum profd_status sqlite_series_need(struct store *s, struct arena *a, int64_t series, const char *what,
                                     struct sqlite_identity *out, struct profd_error *e);

/* --- compact.c: rows of table rollup, and slices --- */

/* A row of table rollup, or what is to be added to one. Arrays live in an arena. */
struct folded {
    bool folded;    /* a row above contains it */
    int64_t number; /* of its first upload */
    uint64_t uploads, processes;
    struct random_groups groups; /* of the processes */
    int64_t first, last;
    uint32_t inexact;
    uint64_t ticks, calls; /* as the row's columns state; ignored when it is stored */
    size_t host_count;
    const int64_t *hosts; /* row ids, ascending */
    struct counts counts;
    struct counts_shares spread;
};
/* Returns whether rollup_sum_limit may have cut the counts. Sums that were cut never get fewer rows again. */
bool folded_is_cut(const struct counts *c);
/* Decodes the row ids of hosts into the arena. DAMAGED: they do not ascend. */
enum profd_status folded_decode_hosts(struct arena *a, const uint8_t *in, size_t n, const int64_t **hosts,
                                      size_t *count, struct profd_error *e);

/* A sum of rows in the making. out is complete after folding_finish. */
struct folding {
    struct arena *arena;
    struct rollup_sum *sum;
    struct folded out;
};
enum profd_status folding_begin(struct folding *f, struct arena *a, struct profd_error *e);
enum profd_status folding_add(struct folding *f, const struct folded *row, struct profd_error *e);
enum profd_status folding_finish(struct folding *f, struct profd_error *e);

/* Uploads that live processes grow lie in slices of time, which are widened step by step. */
#define SQLITE_SLICE_NARROW 1 /* minutes of a new slice */
#define SQLITE_SLICE_WIDE 60
#define SQLITE_SLICE_WIDTHS 4
extern const int sqlite_slice_widths[SQLITE_SLICE_WIDTHS]; /* ascending */

/* A row of table slice. */
struct sqlite_slice {
    int64_t series;
    int width;   /* minutes: 1, 5, 15 or 60. Slices are nested: each lies in one of each greater width */
    int64_t end; /* of the upload's window, ns: it lies in the slice */
    int64_t instance, upload;
};
/* Returns the number of the slice that contains a time. */
static inline int64_t sqlite_slice_at(int width, int64_t time)
{
    return time / (width * SQLITE_MINUTE);
}
enum profd_status sqlite_slice_add(struct store *s, const struct sqlite_slice *slice, struct profd_error *e);
enum profd_status sqlite_slice_find(struct store *s, const struct sqlite_slice *slice, bool *found,
                                    struct profd_error *e);
/* Removes the slices of a series in these hours, both included. */
enum profd_status sqlite_slice_remove_hours(struct store *s, int64_t series, int64_t from, int64_t to,
                                            struct profd_error *e);

/* Levels of table rollup. Hours, days and all time are a pyramid. What a centre has counted in the current hour and the
 * one before lies in slices of 1, 5 or 15 minutes, which are in no other sum until they become sums of hours. Level
 * SQLITE_LEVEL_SLICE + i has slices of sqlite_slice_widths[i] minutes. */
enum { SQLITE_LEVEL_HOUR, SQLITE_LEVEL_DAY, SQLITE_LEVEL_ALL, SQLITE_LEVEL_SLICE };
#define SQLITE_LEVEL_SLICES (SQLITE_LEVEL_SLICE + SQLITE_SLICE_WIDTHS - 1) /* the first level above slices */
#define SQLITE_LEVEL_ASIDE 16 /* and above: rows that cannot be read, by hour. No query sees them */
/* Returns the minutes of a row of an hour or slice. */
static inline int64_t sqlite_level_minutes(int level)
{
    return level >= SQLITE_LEVEL_SLICE ? sqlite_slice_widths[level - SQLITE_LEVEL_SLICE] : SQLITE_SLICE_WIDE;
}
/* Returns the level of rows of this number of minutes. */
int sqlite_level_of(int64_t minutes);

/* Columns with which both statements that read rows begin. */
enum {
    ROLLUP_ID,
    ROLLUP_FOLDED,
    ROLLUP_NUMBER,
    ROLLUP_UPLOADS,
    ROLLUP_PROCESSES,
    ROLLUP_FIRST,
    ROLLUP_LAST,
    ROLLUP_INEXACT,
    ROLLUP_HOSTS,
    ROLLUP_COUNTS,
    ROLLUP_AFTER
};
/* Decodes the column groups of a row with this number of processes. Without a value all of them are in no group. */
enum profd_status sqlite_processes_decode(const struct store *s, sqlite3_stmt *q, int column, uint64_t processes,
                                          struct random_groups *out, struct profd_error *e);
/* Reads a row completely. */
enum profd_status sqlite_rollup_load(struct store *s, struct arena *a, int64_t series, int level, int64_t at,
                                     size_t builds, struct folded *out, bool *found, struct profd_error *e);
/* Removes the rows of a level in this range. *removed is their number. */
enum profd_status sqlite_rollup_remove(struct store *s, int64_t series, int level, int64_t from, int64_t to,
                                       uint64_t *removed, struct profd_error *e);
/* Removes the sum of all time, and adds to *removed. store_compact adds it up anew from the days. */
enum profd_status sqlite_rollup_remove_all(struct store *s, int64_t series, uint64_t *removed, struct profd_error *e);
/* Adds more to a row of an hour or slice, and to the rows above that contain it. A row that cannot be read is put
 * aside: its hour is marked, and more begins a new row. A sum of a day or of all time that cannot be read is removed,
 * and store_compact adds it up anew. The caller saves s->state. */
enum profd_status sqlite_interval_add(struct store *s, struct arena *a, const struct sqlite_identity *series, int level,
                                      int64_t at, const struct folded *more, struct profd_error *e);
/* Reads the day of the block that is open or written, and its number. The day's sums do not change. -1 and 0: none. */
enum profd_status sqlite_frozen_day(struct store *s, int64_t *day, int64_t *block, struct profd_error *e);
/* Rolls up single uploads of a series and hour, as many as the budget allows but at least one: adds them to the rows
 * that contain the hour. *readable is false, and nothing has changed, if one cannot be decoded. It is then excluded
 * from rolling up, and verification reports it. */
enum profd_status sqlite_roll_hour(struct store *s, int64_t series, int64_t hour, struct sqlite_budget *budget,
                                   bool *readable, struct store_progress *progress, struct profd_error *e);
/* Removes rows of deleted series. *left: some remain. */
enum profd_status sqlite_reclaim(struct store *s, const struct sqlite_budget *budget, bool *left,
                                 struct store_progress *progress, struct profd_error *e);

/* --- put.c --- */

struct sqlite_series {
    int64_t id;
    uint32_t build_count;
    int64_t builds[];
};
/* Find the row ids of a host, a build or a series, and add the rows if they are new. MIRROR: other centres have the
 * sums of the series; lists show it from its first uploads on. KNOWN: a new series is not added: NOT_FOUND, without a
 * sentence. *series is borrowed until the next call. */
enum sqlite_series_kind { SQLITE_SERIES_OWN, SQLITE_SERIES_MIRROR, SQLITE_SERIES_KNOWN };
enum profd_status sqlite_intern_host(struct store *s, const char *host, int64_t *id, struct profd_error *e);
enum profd_status sqlite_intern_build(struct store *s, const char *build_id, int64_t *id, struct profd_error *e);
enum profd_status sqlite_intern_series(struct store *s, const struct store_upload *u, enum sqlite_series_kind kind,
                                       const struct sqlite_series **series, struct profd_error *e);
/* Finds or adds the series of an upload, for which values of labels that are too many become STORE_OTHER. labels: has
 * space for all, and may be those of u; u refers to them afterwards. *outcome: STORED or RELABELLED. */
enum profd_status sqlite_intern_limited(struct store *s, struct store_upload *u, struct store_label *labels,
                                        const struct sqlite_series **series, enum store_outcome *outcome,
                                        struct profd_error *e);

/* What one transaction adds to sums and lists. */
struct sqlite_batch {
    struct store *s;
    struct hashmap shares; /* uid → bytes that the user may still store (sqlite_share_take) */
    struct buffer touched; /* a JSON array of the series whose reports change */
    struct hashmap hours;  /* series, hour → struct sqlite_sums to be added */
    bool changed;
};
void sqlite_batch_init(struct sqlite_batch *b, struct store *s);
void sqlite_batch_done(struct sqlite_batch *b);
/* Returns the next number of the database, for what is stored now. */
int64_t sqlite_batch_number(struct sqlite_batch *b);
/* Adds what a row of table upload has gained to the sums of its hour, of its series and of everything, and to what is
 * forwarded. one: how much of u is new; u->counts are these counts. */
enum profd_status sqlite_batch_add(struct sqlite_batch *b, const struct store_upload *u,
                                   const struct sqlite_series *series, const struct sqlite_sums *one,
                                   struct profd_error *e);
/* Writes the sums and the lists. */
enum profd_status sqlite_batch_flush(struct sqlite_batch *b, struct profd_error *e);

/* --- quota.c: the bytes that each user stores --- */

/* From now on every row that this connection changes is noted. */
void sqlite_users_watch(struct store *s);
/* Removes the rows of a series that SQL_ROLLUP_REMOVE names, and notes their bytes from their lengths. The hook would
 * read each row completely for that, which takes longer than removing it. */
enum profd_status sqlite_users_remove_sums(struct store *s, int64_t series, const struct sqlite_value *which,
                                           size_t count, uint64_t *removed, struct profd_error *e);
/* Writes what was noted to table user_bytes, and forgets it. */
enum profd_status sqlite_users_flush(struct store *s, struct profd_error *e);
/* Forgets what was noted, because it was undone. */
void sqlite_users_discard(struct store *s);
/* Returns the bytes that a user may store if all users store total and this user own: the share of the limit without
 * the bytes of the others. UINT64_MAX: no limit. */
uint64_t sqlite_share_most(const struct store_share *share, uint64_t own, uint64_t total);
/* Reads the bytes of one user and of all, as they were when the transaction began. */
enum profd_status sqlite_get_use(struct store *s, uint32_t uid, uint64_t *bytes, uint64_t *total,
                                 struct profd_error *e);
/* Subtracts bytes from what the user may still store; *may is false if they exceed it. users: sqlite_batch.shares. */
enum profd_status sqlite_share_take(struct store *s, struct hashmap *users, uint32_t uid, uint64_t bytes, bool *may,
                                    struct profd_error *e);
/* Sets the members of *t about users. */
enum profd_status sqlite_users_list(struct store *s, struct store_totals *t, struct profd_error *e);
/* Subtracts the bytes of an object, or of all objects of a build, from the user that alone has sent them (sign −1), or
 * adds them (1). Call it before and after the senders of an object change. */
enum profd_status sqlite_count_object(struct store *s, int64_t object, int sign, struct profd_error *e);
enum profd_status sqlite_count_objects_of(struct store *s, int64_t build, int sign, struct profd_error *e);

/* --- outgoing.c: the uploads that a host sends --- */

void outgoing_amount_add(struct store_amount *to, const struct store_amount *more);
/* Reads the amount in a segment's bytes, and the ticks of its stacks. DAMAGED: the bytes are malformed. */
enum profd_status outgoing_measure(const uint8_t *bytes, size_t size, struct store_amount *amount,
                                   uint64_t *stack_ticks, struct profd_error *e);
/* Writes to table relay whether uploads are forwarded, and the epoch. Called in the transaction of the first upload,
 * before anything of it is stored, so that a start writes nothing and cannot fail for want of space. */
enum profd_status sqlite_relay_settle(struct store *s, struct profd_error *e);
/* Adds what was accepted of an upload to the open segment of its series and hour. one: how much of u is new. */
enum profd_status sqlite_segment_add(struct store *s, const struct store_upload *u, int64_t series,
                                     const struct sqlite_sums *one, struct profd_error *e);
/* For a database that was restored from a backup, or copied: what the host accepted since then is in no segment. Adds a
 * SEGMENT_DROPPED for each hour from the backup until now, so that the centre marks these hours. What live processes
 * have counted until now counts here only. Outside a transaction. O(hours), at most a year. */
enum profd_status sqlite_relay_mark_gap(struct store *s, struct profd_error *e);
/* Withdraws the segments of a deleted series that are not sealed. */
enum profd_status sqlite_segment_withdraw(struct store *s, int64_t series, struct profd_error *e);

/* --- incoming.c, host_totals.c: the uploads that a centre receives --- */

/* A segment as it is stored. Arrays live in the arena or are those of the decoded segment. */
struct incoming {
    struct store_upload upload; /* of a tenant: builds with their shares, labels with the host's name, window, sums;
                                   no counts */
    struct store_label *labels; /* of upload */
    struct random_groups groups;
    uint64_t uploads, processes;
    struct counts counts; /* those of the segment */
    int64_t hour;
    int64_t width; /* ns: 1, 5, 15 or 60 minutes of the clock that contain all ends in it. Less than an hour only in the
                      hour of its receipt and the one before */
    int64_t ended; /* ns: earliest end; 0: width is an hour */
    struct counts_order order; /* when the first of its rows arrived */
    bool relabelled;           /* it had another label `host` */
};
/* Sets what a segment adds to sums. */
void sqlite_incoming_sums(const struct incoming *in, struct sqlite_sums *out);

/* A total by host of counts that are stored without the host. The calls of its shares are those of arcs that begin or
 * end in the build. Strings are borrowed until the callback returns. */
struct sqlite_host_total {
    int64_t host; /* row of fleet_host; 0: it comes from the tier */
    const char *name, *identity;
    struct sqlite_sums sums;
};
typedef enum profd_status sqlite_host_total_sink(void *context, const struct sqlite_host_total *x,
                                                 struct profd_error *e);
/* Adds a segment to the total of its series, hour and host (row of fleet_host). late: the block for which its day is
 * frozen; 0: it is not. */
enum profd_status sqlite_host_total_add(struct store *s, int64_t series, int64_t host, int64_t late,
                                        const struct incoming *in, struct profd_error *e);
/* Calls each with the totals of a series with this number of builds in these hours, both included, by hour. before:
 * without what came when the day was frozen for this block or a later one; INT64_MAX: with all. */
enum profd_status sqlite_host_totals_each(struct store *s, int64_t series, size_t builds, int64_t from, int64_t to,
                                          int64_t before, sqlite_host_total_sink *each, void *context,
                                          struct profd_error *e);
/* Encodes these totals, added up by host, in the arena. *size 0: there are none. */
enum profd_status sqlite_host_totals_encode(struct store *s, struct arena *a, int64_t series, size_t builds,
                                            int64_t from, int64_t to, int64_t before, const uint8_t **out, size_t *size,
                                            struct profd_error *e);
/* Calls each with the encoded totals. DAMAGED: the bytes are malformed. */
enum profd_status sqlite_host_totals_decode(struct store *s, const uint8_t *bytes, size_t size, size_t builds,
                                            sqlite_host_total_sink *each, void *context, struct profd_error *e);

/* --- centre.c --- */

/* Read and write the row of table centre: the members of *out that are not in it become 0. */
enum profd_status sqlite_centre_load(struct store *s, struct store_centre *out, struct profd_error *e);
enum profd_status sqlite_centre_save(struct store *s, const struct store_centre *c, struct profd_error *e);
/* Counts an upload that a tenant sent itself, without a host's daemon, as of an epoch of zeros. */
enum profd_status sqlite_centre_add(struct store *s, const struct store_upload *u, struct profd_error *e);
/* Notes that retention or a deletion has removed something of a series. */
enum profd_status sqlite_centre_removed(struct store *s, const struct sqlite_identity *series,
                                        const struct sqlite_sums *gone, struct profd_error *e);
/* Removes digests of arrivals before then (ns) of some epochs; their keys stay. */
enum profd_status sqlite_centre_forget(struct store *s, int64_t before, struct profd_error *e);
/* Marks an hour of a host (row id), of local users or of every host. *changed becomes true if it did not have these
 * reasons; it never becomes false. */
enum { SQLITE_MARK_LOCAL = -1, SQLITE_MARK_HOSTS = 0 };
enum profd_status sqlite_hour_mark(struct store *s, int64_t hour, int64_t host, uint32_t reasons, bool *changed,
                                   struct profd_error *e);
/* For a database that was restored from a backup: marks the hours from the latest sign of life in it until now for
 * local users. If the last segment in it came longer ago than hosts keep segments, the hours for which they may have
 * removed some are marked for every host. An empty database has no such hours. Outside a transaction. O(hours), at most
 * a year. */
enum profd_status sqlite_mark_gap(struct store *s, struct profd_error *e);
/* Reports on the counts of the tenants from one to another are new from this number on. */
enum profd_status sqlite_centre_touch(struct store *s, int64_t number, uint32_t from, uint32_t to,
                                      struct profd_error *e);
/* Decides whether the series of what arrives from a tenant in that hour contain the host. A transaction that begins
 * with this number of the centre puts that many segments. Exact: the series are counted anew when the hour changes, and
 * when segments since the last count could have reached the limit. */
enum profd_status sqlite_host_detail(struct store *s, uint32_t uid, int64_t hour, uint64_t number, size_t segments,
                                     bool *detail, struct profd_error *e);
/* Writes the name of a tenant, or "uid N" of another user. */
#define SQLITE_OWNER_SIZE (LIMIT_LABEL_VALUE + 1)
enum profd_status sqlite_owner_name(struct store *s, uint32_t uid, char out[SQLITE_OWNER_SIZE], struct profd_error *e);
/* Finds the id of a tenant, and adds it if it is new. LIMIT: there are too many. */
enum profd_status sqlite_find_tenant(struct store *s, const char *name, int64_t *id, struct profd_error *e);

/* --- objects.c --- */

/* The object of a build (row id) that may name functions for some users; 0: none. note: of the object, or of a failure
 * that one of them or a trusted sender met; a new string, or NULL if there is nothing to say. */
struct sqlite_choice {
    int64_t object;
    bool has_names, trusted;
    bool by_operators, apart; /* as in struct store_naming */
    char *note;
};
enum profd_status sqlite_choose_object(struct store *s, int64_t build, const struct store_senders *of,
                                       struct sqlite_choice *choice, struct profd_error *e);
/* Unpacks the content of an object in the current row of q, which begins with size and encoded, into a new block that
 * the caller frees. DAMAGED: it cannot be unpacked. */
enum profd_status sqlite_take_content(struct store *s, sqlite3_stmt *q, uint8_t **bytes, size_t *size,
                                      struct profd_error *e);
/* Notes that the host has sent counts of the builds of this series, so that it is asked to offer their symbols. */
enum profd_status sqlite_await_objects(struct store *s, int64_t series, int64_t host, struct profd_error *e);

/* --- sqlite_retire.c --- */

/* Adds removed counts to the totals. */
void sqlite_retired_add(struct sqlite_state *t, const struct sqlite_sums *gone);
/* Notes that something that ended at last was removed from a series. gone: build, user → the latest of these times. */
enum profd_status sqlite_withdraw(struct hashmap *gone, const struct sqlite_identity *series, int64_t last,
                                  struct profd_error *e);
/* Brings the lists and the epochs up to date, after the tables of series are. */
enum profd_status sqlite_withdrawal_apply(struct store *s, const struct hashmap *gone, struct profd_error *e);
/* Deletes the scope's data of a program. before: ns, as in table deletion; 0: now. *any: there was some. */
enum profd_status sqlite_program_delete(struct store *s, const struct store_scope *scope, const char *build_id,
                                        int64_t before, uint64_t *uploads, bool *any, struct profd_error *e);
/* Removes all of a day but what was mirrored, with its blocks. Inside a transaction of upkeep. O(the day). */
enum profd_status sqlite_retire_day(struct store *s, int64_t day, struct profd_error *e);
/* Removes a series' row, and its set if no other series has it. */
enum profd_status sqlite_series_remove(struct store *s, const struct sqlite_identity *series, struct profd_error *e);

/* --- read.c --- */

/* A series that matches a filter, with what its rows share. */
struct series_info {
    int64_t id, set;
    uint32_t uid, program;
    bool totals; /* it is given as totals by host: its row_refs are of blocks */
    size_t build_count;
    const uint32_t *rows; /* row ids of the builds, in load order. Adjacent series of one set and user share them */
    struct store_build *builds; /* likewise */
    size_t label_count;
    const struct store_label *labels;
    bool begun; /* one of its rows was given or announced */
};
/* A row of table upload, rollup or sealed. */
struct row_ref {
    int64_t number; /* rows are given by ascending number */
    int64_t id;     /* of a sum; 0: a single upload */
    bool sealed;
    uint32_t series; /* index of the series_info */
};
/* Sums of blocks that are fetched after the transaction. Arrays live in the selection's arena. */
struct fetch_list {
    struct store_row *rows; /* without their counts */
    struct store_stub *stubs;
    size_t count;
};
/* The series and rows that a filter selects. */
struct row_selection {
    struct store *s;
    struct arena *arena;
    const struct store_filter *filter;
    int64_t since, until; /* the filter's, moved to the borders of sums: see store_get_range */
    struct series_info *series;
    size_t series_count, series_capacity;
    struct row_ref *refs;
    size_t ref_count, ref_capacity;
    struct hashmap hosts; /* int64_t → text */
    bool totals_only;     /* other series are not read */
    size_t sealed_count;  /* of the refs */
    struct fetch_list sums, totals;
};
enum profd_status sqlite_reading_init(struct row_selection *r, struct store *s, const struct store_filter *filter,
                                      struct profd_error *e);
void sqlite_reading_done(struct row_selection *r);
/* Finds the series of a row id, with names; it becomes the only one. *found: false if it does not exist. */
enum profd_status sqlite_select_one(struct row_selection *r, int64_t series, bool *found, struct profd_error *e);
/* Decodes a list of hosts of table rollup. The array lives in the arena a, names live as long as the selection. */
enum profd_status sqlite_select_hosts(struct row_selection *r, struct arena *a, const uint8_t *bytes, size_t n,
                                      const char *const **hosts, size_t *count, struct profd_error *e);
/* Reads the columns of a block from this one on. */
void sqlite_block_take(sqlite3_stmt *q, int column, struct store_block *out);
/* Reads the block that a statement with a number finds. */
enum profd_status sqlite_block_find(struct store *s, enum sqlite_sql which, uint64_t number, struct store_block *out,
                                    bool *found, struct profd_error *e);
#define SQLITE_BLOCK_COLUMNS 9
/* Computes the key of a sum's series. */
void sqlite_series_key_make(const struct store_block_sum *sum, uint8_t key[STORE_SERIES_KEY_SIZE]);
/* Reads the name of the user of a series, and computes its key. *name lives in the selection's arena. */
enum profd_status sqlite_series_key(struct row_selection *r, const struct series_info *info, const char **name,
                                    uint8_t key[STORE_SERIES_KEY_SIZE], struct profd_error *e);

#endif
