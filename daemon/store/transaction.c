/* Transactions, and the space that the writer's log needs. */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "store/store_internal.h"

#define WAL_FRAMES 4096 /* pages of log after which the writer checkpoints: 16 MiB */

enum profd_status sqlite_load_state(struct store *s, struct sqlite_state *state, struct profd_error *e)
{
    sqlite3_stmt *q;
    bool row = false;
    TRY(sqlite_first(s, SQL_STATE_GET, NULL, 0, &q, &row, e));
    FAIL_IF(!row, e, PROFD_DAMAGED, "database %s: table state is empty", s->path);
    *state = (struct sqlite_state){.number = sqlite3_column_int64(q, 0),
                                   .list_epoch = sqlite3_column_int64(q, 1),
                                   .salt = sqlite3_column_int64(q, 2),
                                   .accepted = sqlite_amount(q, 3),
                                   .version = sqlite3_column_int64(q, 6),
                                   .retired = sqlite_amount(q, 7),
                                   .raw_uploads = sqlite_u64(q, 10),
                                   .raw_bytes = sqlite_u64(q, 11),
                                   .rollups = sqlite_u64(q, 12),
                                   .retiring = sqlite3_column_int64(q, 13),
                                   .live_bytes = sqlite_u64(q, 14)};
    sqlite_finish(q);
    return PROFD_OK;
}

enum profd_status sqlite_save_state(struct store *s, struct profd_error *e)
{
    const struct sqlite_state *t = &s->state;
    return sqlite_run(s, SQL_STATE_SET,
                      VALUES(INTEGER(t->number), INTEGER(t->list_epoch), AMOUNT(t->accepted), INTEGER(t->version),
                             AMOUNT(t->retired), INTEGER(t->raw_uploads), INTEGER(t->raw_bytes), INTEGER(t->rollups),
                             INTEGER(t->retiring), INTEGER(t->live_bytes)),
                      e);
}

const struct store_health *store_get_health(const struct store *s)
{
    return &s->health;
}

void sqlite_discard_rows(struct store *s)
{
    hashmap_clear(&s->hosts);
    hashmap_clear(&s->builds);
    hashmap_clear(&s->series);
    hashmap_clear(&s->known);
}

enum profd_status sqlite_write_begin(struct store *s, struct profd_error *e)
{
    FAIL_IF(!s->writable, e, PROFD_INTERNAL, "this handle of the store only reads");
    s->spacious = false;
    TRY(sqlite_watch_look(s, e));
    TRY(sqlite_run(s, SQL_BEGIN_WRITE, NULL, 0, e));
    const enum profd_status status = sqlite_load_state(s, &s->state, e);
    return status ? sqlite_write_end(s, status, e) : PROFD_OK;
}

/* The caches may contain row ids that were not committed. */
void sqlite_write_undo(struct store *s)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_reset(s->statements[i]);
    }
    if (!sqlite3_get_autocommit(s->db)) {
        (void)sqlite_run(s, SQL_ROLLBACK, NULL, 0, NULL);
    }
    sqlite_discard_rows(s);
    sqlite_users_discard(s);
    s->relay_settled = false;
}

enum profd_status sqlite_empty_log(struct store *s, bool truncate, struct profd_error *e)
{
    TRY(sqlite_watch_look(s, e));
    int rc = sqlite3_wal_checkpoint_v2(s->db, "main", truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
                                       NULL, NULL);
    sqlite_watch_note_database(s);
    if (rc != SQLITE_OK) {
        const enum profd_status status = sqlite_fail(s, e);
        return status == PROFD_FULL || status == PROFD_BUSY ? PROFD_OK : status;
    }
    if (truncate) {
        s->wal_frames = 0;
        sqlite_watch_note_log(s);
        (void)sqlite3_exec(s->db, "UPDATE state SET salt=salt", NULL, NULL, NULL); /* see store_sqlite_touch */
        s->checkpoint_at = s->log_frames;
    }
    return PROFD_OK;
}

enum profd_status sqlite_write_end(struct store *s, enum profd_status status, struct profd_error *e)
{
    struct store_health *h = &s->health;
    status = status ? status : sqlite_users_flush(s, e);
    status = status ? status : sqlite_run(s, SQL_COMMIT, NULL, 0, e);
    if (!h->failed && (status == PROFD_FULL || (!status && s->spacious && h->full))) {
        h->full = status == PROFD_FULL;
        h->changes++;
        profd_error_set(&h->error, status, "%s", h->full && e ? e->sentence : "");
    }
    if (status) {
        sqlite_break(s, status, e ? e->sentence : "what is stored is damaged");
        sqlite_write_undo(s);
        return status;
    }
    /* Checked again, so that what is acknowledged was in these files at some time after its commit. */
    TRY(sqlite_watch_look(s, e));
    if (s->wal_frames < s->checkpoint_at) {
        return PROFD_OK;
    }

    /* What was committed stays committed if this fails; but after an I/O error sqlite_fail closes the handle for
     * further writes. A log that a reader holds back is tried again later. */
    int log = 0, done = 0;
    if (sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, &log, &done) != SQLITE_OK) {
        (void)sqlite_fail(s, NULL);
    }
    sqlite_watch_note_database(s);
    s->checkpoint_at = log > done ? s->wal_frames + s->log_frames / 4 : s->log_frames;
    return PROFD_OK;
}

enum profd_status sqlite_read_begin(struct store *s, bool *began, struct profd_error *e)
{
    *began = false;
    if (!sqlite3_get_autocommit(s->db)) {
        return PROFD_OK;
    }
    TRY(sqlite_run(s, SQL_BEGIN_READ, NULL, 0, e));
    *began = true;
    return PROFD_OK;
}

enum profd_status sqlite_read_end(struct store *s, bool began, enum profd_status status, struct profd_error *e)
{
    if (!began) {
        return status;
    }
    enum profd_status ended = sqlite_run(s, SQL_COMMIT, NULL, 0, status == PROFD_OK ? e : NULL);
    if (ended != PROFD_OK && !sqlite3_get_autocommit(s->db)) {
        (void)sqlite_run(s, SQL_ROLLBACK, NULL, 0, NULL);
    }
    return status != PROFD_OK ? status : ended;
}

/* --- Space: stored data must fit into the log and into the database --- */

#define LOG_FRAMES_LEAST 64
#define LOG_PART 16 /* share of the file system that the log may use: half of the reserve's share */
#define LOG_MOST 16 /* multiple of it above which storing waits for the reader that holds the log */

enum profd_status sqlite_space_open(struct store *s, struct profd_error *e)
{
    struct statvfs fs;
    char sql[64];
    s->log_frames = WAL_FRAMES;
    if (statvfs(s->path, &fs) == 0 && fs.f_blocks > 0) {
        uint64_t frames = (uint64_t)fs.f_blocks * fs.f_frsize / LOG_PART / SQLITE_PAGE;
        s->log_frames = frames < LOG_FRAMES_LEAST ? LOG_FRAMES_LEAST : frames < WAL_FRAMES ? (int)frames : WAL_FRAMES;
    }
    s->checkpoint_at = s->log_frames;
    snprintf(sql, sizeof sql, "PRAGMA journal_size_limit=%lld", (long long)s->log_frames * SQLITE_PAGE);
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? PROFD_OK : sqlite_fail(s, e);
}

/* Computes the bytes by which the database grows when the log is copied into it, and the free bytes of the disk. */
static enum profd_status measure(struct store *s, uint64_t *grows, uint64_t *available, struct profd_error *e)
{
    struct stat st;
    struct statvfs fs;
    sqlite3_stmt *q;
    bool row = false;
    *grows = 0;
    *available = UINT64_MAX;
    enum profd_status status = sqlite_first(s, SQL_PAGES, NULL, 0, &q, &row, e);
    if (!row) {
        return status;
    }
    uint64_t bytes = (uint64_t)(sqlite3_column_int64(q, 0) * sqlite3_column_int64(q, 1));
    sqlite_finish(q);
    if (stat(s->path, &st) == 0 && statvfs(s->path, &fs) == 0) {
        *grows = bytes > (uint64_t)st.st_size ? bytes - (uint64_t)st.st_size : 0;
        *available = (uint64_t)fs.f_bavail * fs.f_frsize;
    }
    return PROFD_OK;
}

enum profd_status sqlite_space_begin(struct store *s, struct profd_error *e)
{
    uint64_t grows, available;
    if (!s->writable) { /* sqlite_write_begin refuses */
        return PROFD_OK;
    }
    TRY(measure(s, &grows, &available, e));
    bool long_log = s->wal_frames >= LOG_MOST * s->log_frames;
    if (long_log || grows > available / 4) {
        TRY(sqlite_empty_log(s, long_log, e));
    }
    FAIL_IF(s->wal_frames >= LOG_MOST * s->log_frames, e, PROFD_BUSY,
            "a report that is being made holds the write-ahead log, which has %lld MiB; at most %lld",
            (long long)s->wal_frames * SQLITE_PAGE >> 20, (long long)LOG_MOST * s->log_frames * SQLITE_PAGE >> 20);
    return PROFD_OK;
}

enum profd_status sqlite_space_judge(struct store *s, struct profd_error *e)
{
    uint64_t grows, available;
    enum profd_status status = measure(s, &grows, &available, e);
    if (!status && grows > available / 2) {
        status = profd_error_set(
            e, PROFD_FULL,
            "no space left for the database %s: it is to grow by %llu bytes, and as many are needed for its log; "
            "%llu are available",
            s->path, (unsigned long long)grows, (unsigned long long)available);
    }
    s->spacious = status == PROFD_OK;
    return status;
}

enum profd_status sqlite_store_begin(struct store *s, struct profd_error *e)
{
    TRY(sqlite_space_begin(s, e));
    return sqlite_write_begin(s, e);
}

enum profd_status sqlite_store_end(struct store *s, enum profd_status status, struct profd_error *e)
{
    return sqlite_write_end(s, status == PROFD_OK ? sqlite_space_judge(s, e) : status, e);
}

/* --- Upkeep --- */

#define SLICE_NANOSECONDS 20000000 /* uploads wait this long for a slice */
#define SLICE_UPLOADS 512

int64_t sqlite_work_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * SQLITE_SECOND + t.tv_nsec;
}

struct sqlite_budget sqlite_budget_begin(void)
{
    return (struct sqlite_budget){.deadline = sqlite_work_now() + SLICE_NANOSECONDS, .uploads = SLICE_UPLOADS};
}

bool sqlite_budget_spent(const struct sqlite_budget *b)
{
    return b->uploads == 0 || sqlite_work_now() >= b->deadline;
}

enum profd_status sqlite_upkeep_begin(struct store *s, struct profd_error *e)
{
    enum profd_status status = sqlite_write_begin(s, e);
    s->before = s->state;
    return status;
}

enum profd_status sqlite_upkeep_end(struct store *s, enum profd_status status, struct profd_error *e)
{
    if (!status && memcmp(&s->before, &s->state, sizeof s->state) != 0) {
        status = sqlite_save_state(s, e);
    }
    return sqlite_write_end(s, status, e);
}
