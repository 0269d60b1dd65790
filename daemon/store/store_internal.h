/* What the files of the store share. */
#ifndef PROFD_STORE_STORE_INTERNAL_H
#define PROFD_STORE_STORE_INTERNAL_H

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/hashmap.h"
#include "core/rollup.h"
#include "core/shares.h"
#include "core/spread.h"
#include "proto/limits.h"
#include "store/store.h"

/* Segments in the making: the bytes of a segment, and parts that are to be folded into it. Pure. */

/* Parts are folded when they are more than this, and more than what they are to be folded into. */
#define OUTGOING_PARTS 256u
#define OUTGOING_PART_BYTES (256u << 10)

/* A segment without counts that the upload can be added to, in a new block that the caller frees. */
enum profd_status outgoing_open(const struct store_upload *u, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                                uint64_t sequence, uint8_t **out, size_t *size, struct profd_error *e);
/* How often the centre acknowledges. */
struct outgoing_pace {
    int64_t acknowledged; /* ns: when it did last, or, before that, when something was accepted first; 0: neither */
    int64_t apart;        /* ns: between the last two times */
};
void outgoing_pace_note(struct outgoing_pace *p, int64_t now);
/* The slice of time of a new segment for this upload: ends of windows in it are in [*since, *until). It is as wide as
 * the centre's acknowledgements are apart, so that a centre that is far away gets few segments. */
void outgoing_slice(struct outgoing_pace *p, const struct store_upload *u, int64_t *since, int64_t *until);
/* One that is only a key. */
enum profd_status outgoing_mark(enum segment_kind kind, const uint8_t epoch[SEGMENT_EPOCH_SIZE], uint64_t sequence,
                                int64_t hour, uint8_t **out, size_t *size, struct profd_error *e);

/* What is added to one segment at a time: an upload, or a part of a large one. */
struct outgoing_part {
    uint32_t group;
    int64_t start, end;
    uint32_t inexact;
    uint64_t uploads, started;
    const uint8_t *counts; /* proto/counts.h */
    size_t counts_size;
};
struct outgoing_chunk {
    struct outgoing_part part;
    struct store_amount amount;
    uint64_t stack_ticks; /* of its ticks, those that have a stack */
    uint32_t weight;      /* at most LIMIT_SEGMENT_ROWS */
};
/* The parts of an upload with the sums amount, in an arena; one, unless it has more rows than a segment may have.
 * Whole parts borrow the upload's counts. NO_MEMORY, INTERNAL (its counts do not decode) or OK. */
enum profd_status outgoing_split(struct arena *a, const struct store_upload *u, const struct store_amount *amount,
                                 uint64_t started, uint32_t inexact, const struct outgoing_chunk **chunks,
                                 size_t *count, struct profd_error *e);

/* Folding: begin with a segment's bytes, add parts in their order, finish with new bytes. DAMAGED if something does not
 * decode; done frees everything but the result. */
struct outgoing_sum {
    struct arena *arena;
    struct segment segment;
    struct rollup_sum *sum;
    uint64_t parts;
    uint64_t stack_ticks; /* by finish: of the stacks that it has */
    bool clocks_full;     /* by finish: it has stacks of as many clocks as fit; those of others are left out */
};
enum profd_status outgoing_sum_begin(struct outgoing_sum *s, const uint8_t *bytes, size_t size, struct profd_error *e);
enum profd_status outgoing_sum_add(struct outgoing_sum *s, const struct outgoing_part *part, struct profd_error *e);
enum profd_status outgoing_sum_finish(struct outgoing_sum *s, uint8_t **out, size_t *size, uint32_t *weight,
                                      struct profd_error *e);
void outgoing_sum_done(struct outgoing_sum *s);

/* What a segment's bytes hold, and the ticks of its stacks. DAMAGED if they do not decode. */
enum profd_status outgoing_measure(const uint8_t *bytes, size_t size, struct store_amount *amount,
                                   uint64_t *stack_ticks, struct profd_error *e);

/* Sums of amounts, stopping at 2^63−1; taking away what was added. */
void outgoing_amount_add(struct store_amount *to, const struct store_amount *more);
void outgoing_amount_subtract(struct store_amount *from, const struct store_amount *part);

/* Sums of uploads as they are stored, beside what a rollup has: how many uploads and processes, when, of which
 * hosts. Pure. */

/* A row, or what is to be added to one. Arrays live in an arena. */
struct folded {
    bool folded;
    int64_t number; /* of its first upload */
    uint64_t uploads, processes;
    struct random_groups groups; /* of the processes */
    int64_t first, last;
    uint32_t inexact;
    uint64_t ticks, calls; /* as its columns say; not looked at when it is stored */
    size_t host_count;
    const int64_t *hosts; /* row ids, ascending */
    struct counts counts;
    struct counts_shares spread;
};

/* True if rollup_sum_limit may have cut the counts. They never get fewer again. */
bool folded_is_cut(const struct counts *c);

/* Row ids of hosts from their blob, in the arena. DAMAGED if they do not ascend. */
enum profd_status folded_decode_hosts(struct arena *a, const uint8_t *in, size_t n, const int64_t **hosts,
                                      size_t *count, struct profd_error *e);
/* Merges two ascending sets; false when out of memory. */
bool folded_merge_hosts(struct arena *a, const int64_t *x, size_t nx, const int64_t *y, size_t ny, const int64_t **out,
                        size_t *count);

/* The blob of a set of hosts, in the arena, of *n bytes; NULL when out of memory. */
uint8_t *folded_encode_hosts(struct arena *a, const int64_t *hosts, size_t count, size_t *n);

/* A sum of rows or uploads in the making. */
struct folding {
    struct arena *arena;
    struct rollup_sum *sum;
    struct folded out;
};
enum profd_status folding_begin(struct folding *f, struct arena *a, struct profd_error *e);
enum profd_status folding_add(struct folding *f, const struct folded *row, struct profd_error *e);
/* out becomes whole. */
enum profd_status folding_finish(struct folding *f, struct profd_error *e);

/* What the files of the store share. */

#define SQLITE_APPLICATION_ID 0x70726664 /* "prfd" */
#define SQLITE_SCHEMA_VERSION 1
#define SQLITE_SEAL_SIZE 8                /* bytes of the checksum at the end of each page */
#define SQLITE_WAL_FRAMES 4096            /* pages of log after which the writer checkpoints: 16 MiB */
#define SQLITE_PAGE 4096                  /* bytes, of a database that this engine made */
#define SQLITE_ROW_BYTES 128              /* that a row and its entries in indexes count beside its texts and blobs */
#define SQLITE_CACHE_BYTES (32u << 20)    /* each of the writer's memories of the database */
#define SQLITE_SECOND INT64_C(1000000000) /* times are in ns */
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
    struct hashmap owed; /* bytes of rows that the transaction has changed: quota.c */
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
#define AMOUNT(a) INTEGER((a).uploads), INTEGER((a).ticks), INTEGER((a).calls)
#define NOTHING ((struct sqlite_value){.kind = SQLITE_VALUE_NULL})
#define SCOPE(s) INTEGER((s)->all ? -1 : (int64_t)(s)->uid) /* No user has the number -1. */
#define VALUES(...)                                                                                                    \
    (const struct sqlite_value[]){__VA_ARGS__},                                                                        \
        sizeof((const struct sqlite_value[]){__VA_ARGS__}) / sizeof(struct sqlite_value)

/* --- sql.c: running SQL, and what went wrong */

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

/* --- sql.c: SQL on a bare connection */

/* Runs statements that give no rows; doing says what for when they fail. */
enum profd_status sqlite_direct_run(sqlite3 *db, const char *sql, const char *doing, struct profd_error *e);
/* The status and the sentence for the connection's last error; doing says what met it. */
enum profd_status sqlite_direct_fail(sqlite3 *db, const char *doing, struct profd_error *e);
/* First column of the first row of a statement without parameters. */
enum profd_status sqlite_direct_integer(sqlite3 *db, const char *sql, int64_t *value, struct profd_error *e);

/* --- open.c, sqlite_seal.c */

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

/* --- transaction.c: files that keep their names */

/* Notes which files the writing handle has open, once they are there. */
enum profd_status sqlite_watch_begin(struct store *s, struct profd_error *e);
/* The log has wal_frames pages now. */
void sqlite_watch_note_log(struct store *s);
/* IO when the handle has failed, or one of them has lost its name or the end of what was committed to it: then the
 * handle never writes again. A few microseconds. */
enum profd_status sqlite_watch_look(struct store *s, struct profd_error *e);
void sqlite_watch_end(struct store *s);

/* --- put.c */

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

/* --- objects.c */

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

/* --- objects.c */

/* The content of an object in the current row of q, which begins with size and encoded: a new block
 * that the caller frees. DAMAGED: it cannot be unpacked. */
enum profd_status sqlite_take_content(struct store *s, sqlite3_stmt *q, uint8_t **bytes, size_t *size,
                                      struct profd_error *e);

/* --- centre.c: the id of the tenant of a name, made if there is none; LIMIT: too many. In a transaction. */
enum profd_status sqlite_find_tenant(struct store *s, const char *name, int64_t *id, struct profd_error *e);

/* --- objects.c. Inside a write transaction, but for sqlite_find_dispute */

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

/* The numbers that the ledger, a series and lists add up. */

/* Sums stop at 2^63−1; one that did sets INEXACT_SATURATED. Of no uploads, first is INT64_MAX and last INT64_MIN. */
struct sqlite_sums {
    uint64_t uploads, processes, ticks, calls;
    uint64_t stack_ticks; /* of ticks, those that have a stack */
    int64_t first, last;
    uint32_t inexact;
    uint64_t raw_uploads, raw_bytes, live_bytes; /* live_bytes: of the raw ones, those of live processes */
    int64_t raw_since;                           /* seconds; INT64_MAX: no raw uploads, or not known here */
    size_t build_count;
    struct share shares[LIMIT_BUILDS]; /* of the set's builds, in load order; only build_count are there */
};
#define SQLITE_SUMS_SIZE(builds) (offsetof(struct sqlite_sums, shares) + (builds) * sizeof(struct share))
#define SQLITE_SUM_COLUMNS 12 /* that a row read as sums begins with */
#define SQLITE_SHARES_BYTES (((size_t)LIMIT_BUILDS * 2 + 1) * 10)

/* Sums without uploads, for that many builds. */
void sqlite_sums_init(struct sqlite_sums *s, size_t builds);
void sqlite_sums_add(struct sqlite_sums *to, const struct sqlite_sums *more);
/* Takes a part away. False, and to is not usable, when the rest must be added up anew: a sum was at its end, or the
 * part held the earliest or latest time or all of a reason for inexactness. */
bool sqlite_sums_subtract(struct sqlite_sums *to, const struct sqlite_sums *part);

/* A set's builds from its blob. */
static inline uint32_t sqlite_set_build(const uint8_t *set, size_t i)
{
    return (uint32_t)set[4 * i] | (uint32_t)set[4 * i + 1] << 8 | (uint32_t)set[4 * i + 2] << 16 |
           (uint32_t)set[4 * i + 3] << 24;
}

/* Writes the shares, and behind them the ticks of stacks: at most SQLITE_SHARES_BYTES. Returns how many bytes they are.
 */
size_t sqlite_shares_encode(const struct sqlite_sums *s, uint8_t *out);
/* Reads them, of build_count builds. False: the bytes break their rules. */
bool sqlite_shares_decode(const uint8_t *in, size_t n, struct sqlite_sums *s);
/* Reads the sums that the current row of q begins with (SUM_COLUMNS, raw_since, shares). DAMAGED if they cannot be. */
enum profd_status sqlite_sums_read(struct store *s, sqlite3_stmt *q, size_t builds, struct sqlite_sums *out,
                                   struct profd_error *e);

/* Σ of the rows of a statement that begin with sums. */
enum profd_status sqlite_sums_of_rows(struct store *s, enum sqlite_sql which, const struct sqlite_value *values,
                                      size_t count, size_t builds, struct sqlite_sums *out, struct profd_error *e);
/* The ledger's row of a series and hour; sums without uploads if there is none. */
enum profd_status sqlite_ledger_load(struct store *s, int64_t series, int64_t hour, size_t builds,
                                     struct sqlite_sums *out, bool *found, struct profd_error *e);
/* Writes the row. raw_since is that of a new row; SQL_LEDGER_SINCE changes it. */
enum profd_status sqlite_ledger_save(struct store *s, int64_t series, int64_t hour, const struct sqlite_sums *sums,
                                     struct profd_error *e);
/* Σ of the ledger's rows of the series in these hours, both included. */
enum profd_status sqlite_ledger_sum(struct store *s, int64_t series, int64_t from, int64_t to, size_t builds,
                                    struct sqlite_sums *out, struct profd_error *e);

enum profd_status sqlite_series_load(struct store *s, int64_t series, size_t builds, struct sqlite_sums *out,
                                     bool *found, struct profd_error *e);
enum profd_status sqlite_series_save(struct store *s, int64_t series, const struct sqlite_sums *sums,
                                     struct profd_error *e);

/* The key of a series. builds lives in the arena. */
struct sqlite_identity {
    int64_t id, set, program;
    uint32_t uid;
    bool mirror; /* its sums are in no total */
    size_t build_count;
    const uint32_t *builds; /* row ids in load order */
};
enum profd_status sqlite_series_identify(struct store *s, struct arena *a, int64_t series, struct sqlite_identity *out,
                                         bool *found, struct profd_error *e);

/* Slices of time: the uploads that live processes grow. */

#define SQLITE_SLICE_NARROW 1 /* minutes: what a slice begins with */
#define SQLITE_SLICE_WIDE 60
#define SQLITE_SLICE_WIDTHS 4
extern const int sqlite_slice_widths[SQLITE_SLICE_WIDTHS]; /* ascending */

/* A row of table slice. */
struct sqlite_slice {
    int64_t series;
    int width;   /* minutes: 1, 5, 15 or 60. Slices are nested: each lies in one of each greater width */
    int64_t end; /* a time in it, ns: the end of the upload's window, by which an upload is in one slice */
    int64_t instance, upload;
};

/* Number of the slice in which a time lies. */
static inline int64_t sqlite_slice_at(int width, int64_t time)
{
    return time / (width * INT64_C(60000000000));
}

enum profd_status sqlite_slice_add(struct store *s, const struct sqlite_slice *slice, struct profd_error *e);
enum profd_status sqlite_slice_find(struct store *s, const struct sqlite_slice *slice, bool *found,
                                    struct profd_error *e);
/* Those of a series in these hours, both included. */
enum profd_status sqlite_slice_remove_hours(struct store *s, int64_t series, int64_t from, int64_t to,
                                            struct profd_error *e);

/* Sums of uploads as rows: the pyramid of hours, days and all time. */

enum { SQLITE_LEVEL_HOUR, SQLITE_LEVEL_DAY, SQLITE_LEVEL_ALL };

/* Columns that both statements which read rows begin with. */
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

/* The groups of the processes of a sum, from column groups of a row of rollup with that many; those of an older version
 * are in no group. */
enum profd_status sqlite_processes_decode(const struct store *s, sqlite3_stmt *q, int column, uint64_t processes,
                                          struct random_groups *out, struct profd_error *e);
/* Reads a row with everything in it. */
enum profd_status sqlite_rollup_load(struct store *s, struct arena *a, int64_t series, int level, int64_t at,
                                     size_t builds, struct folded *out, bool *found, struct profd_error *e);

/* Removes rows of a level. *removed: how many. */
enum profd_status sqlite_rollup_remove(struct store *s, int64_t series, int level, int64_t from, int64_t to,
                                       uint64_t *removed, struct profd_error *e);
/* Removes the sum of all time; sqlite_compact adds it up anew from the days. *removed increases. */
enum profd_status sqlite_rollup_remove_all(struct store *s, int64_t series, uint64_t *removed, struct profd_error *e);

/* The day of the block that is open or written, and its number: the day's sums do not change. -1 and 0: none. */
enum profd_status sqlite_frozen_day(struct store *s, int64_t *day, int64_t *block, struct profd_error *e);

/* A write transaction of upkeep: begins as any; end commits the state too, if anything was changed. */
enum profd_status sqlite_upkeep_begin(struct store *s, struct profd_error *e);
enum profd_status sqlite_upkeep_end(struct store *s, enum profd_status status, struct profd_error *e);

/* How much one transaction of upkeep does. */
struct sqlite_budget {
    int64_t deadline; /* of the thread's own time, ns: a busy machine does not make slices useless */
    uint64_t uploads; /* left */
};
struct sqlite_budget sqlite_budget_begin(void);
bool sqlite_budget_spent(const struct sqlite_budget *b);

/* Rolls up uploads of a series and hour, as many as the budget allows but at least one, and adds them to the rows above
 * that contain the hour. *readable is false, and nothing has changed, if one cannot be decoded: it is excluded from
 * rolling up, and verification reports it. */
enum profd_status sqlite_roll_hour(struct store *s, int64_t series, int64_t hour, struct sqlite_budget *budget,
                                   bool *readable, struct store_progress *progress, struct profd_error *e);

/* Removes rows of deleted series. *left: some remain. */
enum profd_status sqlite_reclaim(struct store *s, const struct sqlite_budget *budget, bool *left,
                                 struct store_progress *progress, struct profd_error *e);

/* --- sqlite_retire.c */

/* Adds removed counts to the totals. */
void sqlite_retired_add(struct sqlite_state *t, const struct sqlite_sums *gone);
/* Notes that something that ended at last was removed from a series. gone: build, user → the latest of these times. */
enum profd_status sqlite_withdraw(struct hashmap *gone, const struct sqlite_identity *series, int64_t last,
                                  struct profd_error *e);
/* Brings the lists and the epochs up to date, after the tables of series are. */
enum profd_status sqlite_withdrawal_apply(struct store *s, const struct hashmap *gone, struct profd_error *e);
/* Removes all of a day but what was mirrored, with its blocks. Inside a transaction of upkeep. O(the day). */
enum profd_status sqlite_retire_day(struct store *s, int64_t day, struct profd_error *e);
/* Removes a series' row, and its set if no other series has it. */
enum profd_status sqlite_series_remove(struct store *s, const struct sqlite_identity *series, struct profd_error *e);

/* Rows of sending intervals: what a centre has counted in the current hour and the one before, as sums of 1, 5 or 15
 * minutes. They become sums of hours as the uploads of live processes do. */

/* Levels of table rollup. Of these, at is the number of the slice of sqlite_slice_widths[level − SQLITE_LEVEL_SLICE]; a
 * row is in no other sum. */
#define SQLITE_LEVEL_SLICE (SQLITE_LEVEL_ALL + 1)
#define SQLITE_LEVEL_SLICES (SQLITE_LEVEL_SLICE + SQLITE_SLICE_WIDTHS - 1) /* the first that is none */
#define SQLITE_LEVEL_ASIDE 16 /* and above: what could not be read; at is its hour. No query sees it */

/* Minutes of a row of an hour or slice. */
static inline int64_t sqlite_level_minutes(int level)
{
    return level >= SQLITE_LEVEL_SLICE ? sqlite_slice_widths[level - SQLITE_LEVEL_SLICE] : SQLITE_SLICE_WIDE;
}
/* The level of rows of that many minutes. */
int sqlite_level_of(int64_t minutes);

/* Adds more to a row of an hour or slice, and to those above that hold it. A row that cannot be read is put aside: its
 * hour is marked, and more begins a new one; a sum of a day or of all time is added up anew by sqlite_compact. Inside a
 * write transaction that saves the state. */
enum profd_status sqlite_interval_add(struct store *s, struct arena *a, const struct sqlite_identity *series, int level,
                                      int64_t at, const struct folded *more, struct profd_error *e);

/* Segments as rows. */

/* Values of segment.state. */
enum {
    SEGMENT_OPEN,
    SEGMENT_CLOSED,
    SEGMENT_SEALED,
    SEGMENT_ACKNOWLEDGED,
    SEGMENT_REMOVED,
    SEGMENT_UNREADABLE,
    SEGMENT_HELD
};

/* The row of table relay. known: there is one. */
struct sqlite_relay {
    bool known, active;
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    struct store_amount outside, acknowledged, rejected, withdrawn;
    bool met;
    uint8_t incarnation[STORE_INCARNATION_SIZE];
    bool has_centre;
    uint8_t centre[STORE_CENTRE_SIZE];
    uint64_t backup;
    uint64_t held;                    /* 1 + number of the database before the start; 0: nothing is held */
    int64_t held_since, held_hour;    /* ns: of that start; the hour of the last sign of life before it */
    int64_t apart_before, apart_hour; /* ns: what began before counts here only; last hour that is marked for it */
};
enum profd_status sqlite_relay_load(struct store *s, struct sqlite_relay *out, struct profd_error *e);
enum profd_status sqlite_relay_save(struct store *s, const struct sqlite_relay *r, struct profd_error *e);

/* Three columns of the current row as an amount. */
struct store_amount sqlite_amount(sqlite3_stmt *q, int column);
/* The epoch in a column of the current row. DAMAGED if it is none. */
enum profd_status sqlite_segment_epoch(struct store *s, sqlite3_stmt *q, int column, uint8_t out[SEGMENT_EPOCH_SIZE],
                                       struct profd_error *e);

/* Writes into table relay whether something is forwarded, and the epoch, in the transaction of the first upload, before
 * anything of it is stored: so a start writes nothing, and cannot fail for want of space. */
enum profd_status sqlite_relay_settle(struct store *s, struct profd_error *e);
/* Adds what was accepted of an upload to the open segment of its series and hour: one says how much of it. Inside the
 * write transaction that accepts it. */
enum profd_status sqlite_segment_add(struct store *s, const struct store_upload *u, int64_t series,
                                     const struct sqlite_sums *one, struct profd_error *e);
/* Of a database that was restored from a backup, or copied: what the host accepted since then is in no segment. Adds a
 * SEGMENT_DROPPED for each hour from the backup until now, so that the centre marks these hours; what live processes
 * have counted until now counts here only. Not inside a transaction. O(hours), at most a year of them. */
enum profd_status sqlite_relay_mark_gap(struct store *s, struct profd_error *e);
/* A start with this row: differences that began before it are to be held. Inside a write transaction. */
enum profd_status sqlite_relay_hold(struct store *s, struct sqlite_relay *r, struct profd_error *e);
/* What began at that time, and is accepted now, is to be held, or not to be forwarded at all. */
enum sqlite_fate { SQLITE_FORWARDED, SQLITE_HELD, SQLITE_APART };
enum profd_status sqlite_relay_judge(struct store *s, int64_t since, enum sqlite_fate *fate, struct profd_error *e);
/* Of an upload that is not forwarded: it counts as withdrawn, and its hours are marked. Inside a write transaction. */
enum profd_status sqlite_relay_set_apart(struct store *s, int64_t end, const struct store_amount *amount,
                                         struct profd_error *e);
/* What is held counts here only, and what began before the start and is accepted later. Saves the row. Inside a write
 * transaction. */
enum profd_status sqlite_relay_reject_held(struct store *s, struct sqlite_relay *r, struct profd_error *e);
/* Of the segment in the current row of q, only a key of this kind remains; what it held is added to *gone. */
enum profd_status sqlite_segment_reduce(struct store *s, sqlite3_stmt *q, enum segment_kind kind,
                                        struct store_amount *gone, struct profd_error *e);
/* Folds the parts of a segment into its bytes. *readable: false, and nothing has changed, if it is damaged. */
enum profd_status sqlite_segment_fold(struct store *s, int64_t id, bool *readable, struct profd_error *e);
/* Folds one segment that has many parts. *more: there was one. */
enum profd_status sqlite_segment_fold_next(struct store *s, bool *more, struct profd_error *e);
/* The series is deleted: segments of it that are not sealed become withdrawn ones. Inside a write transaction. */
enum profd_status sqlite_segment_withdraw(struct store *s, int64_t series, struct profd_error *e);

/* What a centre has accepted, as rows. */

/* The row of table centre. */
struct sqlite_centre {
    uint8_t name[STORE_CENTRE_SIZE], incarnation[STORE_INCARNATION_SIZE];
    uint64_t number, backup;
    int64_t last;
    struct store_amount counted, removed;
    bool restored; /* and nothing was adopted since */
};
enum profd_status sqlite_centre_load(struct store *s, struct sqlite_centre *out, struct profd_error *e);
enum profd_status sqlite_centre_save(struct store *s, const struct sqlite_centre *c, struct profd_error *e);

/* Something of a series was removed, by retention or delete. Inside a write transaction. */
enum profd_status sqlite_centre_removed(struct store *s, const struct sqlite_identity *series,
                                        const struct sqlite_sums *gone, struct profd_error *e);
/* A backup contains the arrivals with numbers up to this one. Inside a write transaction. */
enum profd_status sqlite_centre_backed_up(struct store *s, int64_t number, struct profd_error *e);
/* Removes digests of arrivals before then (ns) of some epochs; their keys stay. Inside a write transaction. */
enum profd_status sqlite_centre_forget(struct store *s, int64_t before, struct profd_error *e);
/* Marks an hour of a host, or of these. *changed becomes true if it was not marked so, and never false. Inside a write
 * transaction. */
enum { SQLITE_MARK_LOCAL = -1, SQLITE_MARK_HOSTS = 0 }; /* what local users counted; every host */
enum profd_status sqlite_hour_mark(struct store *s, int64_t hour, int64_t host, uint32_t reasons, bool *changed,
                                   struct profd_error *e);
/* Of a database that was restored from a backup: marks the hours from the latest sign of life in it until now for local
 * users. If the last segment in it came longer ago than hosts keep them, marks the hours from then on of which hosts
 * may have removed segments. Nothing in an empty database. Not inside a transaction. O(hours), at most a year. */
enum profd_status sqlite_mark_gap(struct store *s, struct profd_error *e);
/* Reports on what came from hosts are new from this number on. Inside a write transaction. */
enum profd_status sqlite_centre_touch(struct store *s, int64_t number, uint32_t from, uint32_t to,
                                      struct profd_error *e);

/* What one transaction of uploads and harvests adds to sums and lists. */

struct sqlite_batch {
    struct store *s;
    struct hashmap shares; /* user → bytes that it may still store (quota.c) */
    struct buffer touched; /* of these series, reports change: a JSON array */
    struct hashmap hours;  /* series, hour → struct sqlite_sums: what is added */
    bool changed;
};

void sqlite_batch_init(struct sqlite_batch *b, struct store *s);
void sqlite_batch_done(struct sqlite_batch *b);
/* Gives the next number to what is stored now. */
int64_t sqlite_batch_number(struct sqlite_batch *b);
/* Adds what a row of table upload holds, or has gained, to all sums: of the hour in which its window ends, its series
 * and everything, and to what is forwarded. one: how much of u is new; u->counts are these counts. */
enum profd_status sqlite_batch_add(struct sqlite_batch *b, const struct store_upload *u,
                                   const struct sqlite_series *series, const struct sqlite_sums *one,
                                   struct profd_error *e);
/* Writes all of it. */
enum profd_status sqlite_batch_flush(struct sqlite_batch *b, struct profd_error *e);

/* How many bytes each user stores. */

/* From now on every row that this connection changes is noted. */
void sqlite_users_watch(struct store *s);
/* Removes the rows of a series that SQL_ROLLUP_REMOVE names, and notes their bytes from their lengths. The hook would
 * read all of each row for that, which takes longer than removing it. */
enum profd_status sqlite_users_remove_sums(struct store *s, int64_t series, const struct sqlite_value *which,
                                           size_t count, uint64_t *removed, struct profd_error *e);
/* Writes what was noted into table user_bytes, inside the transaction, and forgets it. */
enum profd_status sqlite_users_flush(struct store *s, struct profd_error *e);
/* Forgets what was noted: it was undone. */
void sqlite_users_discard(struct store *s);

/* The bytes that a user may store, if all users store total and the user own: percent of the limit without the bytes of
 * the others. UINT64_MAX: no limit. */
uint64_t sqlite_share_most(const struct store_share *share, uint64_t own, uint64_t total);
/* Reads the bytes of one user and of all, as they were when the transaction began. */
enum profd_status sqlite_get_use(struct store *s, uint32_t uid, uint64_t *bytes, uint64_t *total,
                                 struct profd_error *e);
/* Takes bytes from what the user may still store; *may is false if it would be exceeded. users: of this transaction,
 * uid → uint64_t. */
enum profd_status sqlite_share_take(struct store *s, struct hashmap *users, uint32_t uid, uint64_t bytes, bool *may,
                                    struct profd_error *e);

/* Fills in what users store. */
enum profd_status sqlite_users_list(struct store *s, struct store_totals *t, struct profd_error *e);

/* Takes an object's bytes, or those of all objects of a build, from the user that alone has sent them (sign −1), or
 * gives them to it (1). Before and after its senders change. */
enum profd_status sqlite_count_object(struct store *s, int64_t object, int sign, struct profd_error *e);
enum profd_status sqlite_count_objects_of(struct store *s, int64_t build, int sign, struct profd_error *e);

/* Segments that arrive. Pure. */

/* A segment as it is stored. Arrays live in the arena or are those of the segment, which has been decoded. */
struct incoming {
    struct store_upload upload; /* of a tenant: builds with their shares, labels with the host's name, window, sums;
                                   no counts */
    struct random_groups groups;
    uint64_t uploads, processes;
    struct counts counts; /* those of the segment */
    int64_t hour;
    int64_t width; /* ns: 1, 5, 15 or 60 minutes of the clock that contain the ends of everything in it; an hour, unless
                      the hour is the one in which it was received, or the one before */
    int64_t ended; /* ns: earliest end; 0: width is an hour */
    struct counts_order order; /* when the first of its rows arrived */
    bool relabelled;           /* it had another label `host` */
};

/* name, clock and the tenant's uid are those of the host's latest arrival. detail: the name becomes the label `host`;
 * else there is none. NO_MEMORY or OK. O(rows). */
enum profd_status incoming_read(struct arena *a, const struct store_delivery *d, const char *name, bool detail,
                                int64_t clock, uint32_t uid, struct incoming *out, struct profd_error *e);

/* Order of first arrival in the fleet of a segment's first row: the same whatever arrives first (DECISIONS 49). */
struct counts_order incoming_order(int64_t hour, const uint8_t epoch[SEGMENT_EPOCH_SIZE], uint64_t sequence);

/* The rows of a segment as a sum with its shares, as if they had arrived in their order, the first of them at this
 * time. Arrays live in the arena or are those of the segment. NO_MEMORY or OK. O(rows) of a sum; of an upload, as
 * rollup_sum_add_upload. */
enum profd_status incoming_sum(const struct segment *s, const struct counts_order *at, struct arena *a,
                               struct counts *r, struct counts_shares *spread, struct profd_error *e);

/* Adds to calls[i] the calls of arcs that begin or end in build i, as questions about one build count them. True if a
 * sum stopped at 2^63−1. O(arcs). */
bool incoming_add_touching(const struct counts *r, uint64_t *calls, size_t builds);

/* The hour of a segment of which only the key is left. */
int64_t incoming_hour(const struct segment *s, int64_t clock);

/* Totals by host of what a centre keeps without the host in the series. */

/* A row: calls of shares are those of arcs that begin or end in the build. Strings are borrowed until the next one. */
struct sqlite_host_total {
    int64_t host; /* row of fleet_host; 0: it comes from the tier */
    const char *name, *identity;
    struct sqlite_sums sums;
};
typedef enum profd_status sqlite_host_total_sink(void *context, const struct sqlite_host_total *x,
                                                 struct profd_error *e);

/* Shall the host of what arrives from a tenant in that hour stand in the series? A transaction that begins with this
 * number of the centre puts that many segments. Exact: the series of the tenant's hosts are counted anew when the hour
 * changes, and when segments since the last count could have reached the limit. */
enum profd_status sqlite_host_detail(struct store *s, uint32_t uid, int64_t hour, uint64_t number, size_t segments,
                                     bool *detail, struct profd_error *e);
/* The number of series of hosts, of a second ago at most. On the writing handle. */
enum profd_status sqlite_tenant_series(struct store *s, int64_t hour, uint64_t *out, struct profd_error *e);
/* What a segment adds to sums. */
void sqlite_incoming_sums(const struct incoming *in, struct sqlite_sums *out);
/* Adds a segment to the total of its series, hour and host (row of fleet_host). late: the block for which its day is
 * frozen; 0: it is not. Inside a write transaction. */
enum profd_status sqlite_host_total_add(struct store *s, int64_t series, int64_t host, int64_t late,
                                        const struct incoming *in, struct profd_error *e);
/* Calls each with the totals of a series with that many builds in these hours, both included, by hour. before: without
 * what came when the day was frozen for this block or a later one; INT64_MAX: with all. */
enum profd_status sqlite_host_totals_each(struct store *s, int64_t series, size_t builds, int64_t from, int64_t to,
                                          int64_t before, sqlite_host_total_sink *each, void *context,
                                          struct profd_error *e);

/* Encodes what sqlite_host_totals_each gives, added up by host, in the arena. *size 0: there are none. */
enum profd_status sqlite_host_totals_encode(struct store *s, struct arena *a, int64_t series, size_t builds,
                                            int64_t from, int64_t to, int64_t before, const uint8_t **out, size_t *size,
                                            struct profd_error *e);
/* Calls each with the totals. DAMAGED if the bytes are not an encoding. */
enum profd_status sqlite_host_totals_decode(struct store *s, const uint8_t *bytes, size_t size, size_t builds,
                                            sqlite_host_total_sink *each, void *context, struct profd_error *e);

/* Which rows a filter chooses. */

/* A series that matches, with what its rows share. */
struct series_info {
    int64_t id, set;
    uint32_t uid, program;
    bool totals; /* it is given as totals by host: row_refs are of blocks */
    size_t build_count;
    const uint32_t *rows; /* of the builds, in load order; shared with the adjacent rows of the same set and user */
    struct store_build *builds; /* likewise */
    size_t label_count;
    const struct store_label *labels;
    bool begun; /* one of its rows was given or announced */
};

/* A row of table upload, rollup or sealed. */
struct row_ref {
    int64_t number; /* its place among the others */
    int64_t id;     /* of a sum; 0: a single upload */
    bool sealed;
    uint32_t series; /* index of the series_info */
};

/* Sums of blocks that are fetched after the transaction. Arrays live in the reading's arena. */
struct fetch_list {
    struct store_row *rows; /* what is known of them */
    struct store_stub *stubs;
    size_t count;
};

struct reading {
    struct store *s;
    struct arena *arena;
    const struct store_filter *filter;
    int64_t since, until; /* the filter's, as they can be had: see store_get_range */
    struct series_info *series;
    size_t series_count, series_capacity;
    struct row_ref *refs;
    size_t ref_count, ref_capacity;
    struct hashmap hosts; /* int64_t → text */
    bool totals_only;     /* other series are not read */
    size_t sealed_count;  /* of the refs */
    struct fetch_list sums, totals;
};

/* Finds the series that match, and the edges that their sums allow. Names of builds are left out. */
enum profd_status sqlite_select_series(struct reading *r, const struct store_scope *scope, struct profd_error *e);
/* Names the builds of all series found. */
enum profd_status sqlite_select_names(struct reading *r, struct profd_error *e);
/* Finds the rows of the series found, each upload in exactly one, by ascending number. */
enum profd_status sqlite_select_rows(struct reading *r, struct profd_error *e);
/* Has a host that the filter's matchers select totals in its range, with functions that are not kept by host? */
enum profd_status sqlite_has_totals(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    bool *any, struct profd_error *e);
/* Finds the series of a row id, with names; it becomes the only one. *found: false if it is not there. */
enum profd_status sqlite_select_one(struct reading *r, int64_t series, bool *found, struct profd_error *e);
/* Decodes a list of hosts of table rollup. The array lives in the arena a, names until the reading ends. */
enum profd_status sqlite_select_hosts(struct reading *r, struct arena *a, const uint8_t *bytes, size_t n,
                                      const char *const **hosts, size_t *count, struct profd_error *e);
/* Memory of a reading, from arena on. */
enum profd_status sqlite_reading_init(struct reading *r, struct store *s, const struct store_filter *filter,
                                      struct profd_error *e);
void sqlite_reading_done(struct reading *r);

/* Reads the columns of a block from this one on. */
void sqlite_block_take(sqlite3_stmt *q, int column, struct store_block *out);
#define SQLITE_BLOCK_COLUMNS 9
/* Computes the key of a sum's series (STORE_SERIES_KEY_SIZE). */
void sqlite_series_key_make(const struct store_block_sum *sum, uint8_t key[STORE_SERIES_KEY_SIZE]);
/* Reads the name of the user of a series, and its key. *name lives in the reading's arena. */
enum profd_status sqlite_series_key(struct reading *r, const struct series_info *info, const char **name,
                                    uint8_t key[STORE_SERIES_KEY_SIZE], struct profd_error *e);

#endif
