/* The write-ahead log and the disk: stored data must always fit into the database, too. */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/sqlite.h"

#define LOG_FRAMES_LEAST 64
#define LOG_PART 16 /* share of the file system that the log may use: half of the reserve's share */
#define LOG_MOST 16 /* multiple of it above which storing waits for the reader that holds the log */

enum profd_status sqlite_space_open(struct store *s, struct profd_error *e)
{
    struct statvfs fs;
    char sql[64];
    s->log_frames = SQLITE_WAL_FRAMES;
    if (statvfs(s->path, &fs) == 0 && fs.f_blocks > 0) {
        uint64_t frames = (uint64_t)fs.f_blocks * fs.f_frsize / LOG_PART / SQLITE_PAGE;
        s->log_frames = frames < LOG_FRAMES_LEAST    ? LOG_FRAMES_LEAST
                        : frames < SQLITE_WAL_FRAMES ? (int)frames
                                                     : SQLITE_WAL_FRAMES;
    }
    s->checkpoint_at = s->log_frames;
    snprintf(sql, sizeof sql, "PRAGMA journal_size_limit=%lld", (long long)s->log_frames * SQLITE_PAGE);
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? PROFD_OK : sqlite_fail(s, e);
}

/* Computes the bytes by which the database grows when the log is copied into it, and those that the disk has. */
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
    if (s->wal_frames >= LOG_MOST * s->log_frames) {
        return profd_error_set(
            e, PROFD_BUSY, "a report that is being made holds the write-ahead log, which has %lld MiB; at most %lld",
            (long long)s->wal_frames * SQLITE_PAGE >> 20, (long long)LOG_MOST * s->log_frames * SQLITE_PAGE >> 20);
    }
    return PROFD_OK;
}

enum profd_status sqlite_space_judge(struct store *s, struct profd_error *e)
{
    uint64_t grows, available;
    enum profd_status status = measure(s, &grows, &available, e);
    if (status == PROFD_OK && grows > available / 2) {
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
