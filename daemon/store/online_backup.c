/* Copies the database while it is in use. Later writes of this connection are included in the copy. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_internal.h"

struct store_backup {
    struct store *s;
    sqlite3 *to;
    sqlite3_backup *copy;
    char *path, *making; /* making: name of the unfinished file; NULL after it was renamed */
    int page;            /* bytes */
    int64_t number;      /* last number that was given to an arrival when it began */
};

void store_backup_end(struct store_backup *b)
{
    if (!b) {
        return;
    }
    sqlite3_backup_finish(b->copy);
    sqlite3_close(b->to);
    if (b->making) {
        unlink(b->making);
    }
    free(b->making);
    free(b->path);
    free(b);
}

static enum profd_status fail(const struct store_backup *b, int rc, struct profd_error *e)
{
    enum profd_status status = sqlite_status_of(rc);
    return status == PROFD_FULL ? profd_error_set(e, status, "no space left for the copy \"%s\"", b->path)
                                : profd_error_set(e, status, "cannot copy the database to \"%s\": %s (SQLite error %d)",
                                                  b->path, sqlite3_errstr(rc), rc);
}

enum profd_status store_backup_step(struct store_backup *b, uint64_t bytes, uint64_t *left, struct profd_error *e)
{
    struct stat st;
    if (!b->making) {
        *left = 0;
        return PROFD_OK;
    }
    const uint64_t pages = bytes / (uint64_t)b->page + 1;
    int rc = sqlite3_backup_step(b->copy, pages < 1 << 20 ? (int)pages : 1 << 20);
    if (rc == SQLITE_OK) {
        *left = (uint64_t)sqlite3_backup_remaining(b->copy) * (uint64_t)b->page;
        *left = *left > 0 ? *left : 1;
        return PROFD_OK;
    }
    if (rc != SQLITE_DONE) {
        return fail(b, rc, e);
    }
    rc = sqlite3_backup_finish(b->copy);
    b->copy = NULL;
    if (rc == SQLITE_OK) {
        rc = sqlite3_close(b->to);
        b->to = NULL;
    }
    if (rc != SQLITE_OK) {
        return fail(b, rc, e);
    }

    /* The copy is complete. It gets its name, unless a file has it. */
    const int fd = open(b->making, O_RDONLY | O_CLOEXEC);
    const int synced = fd >= 0 ? fsync(fd) : -1, error = errno;
    if (fd >= 0) {
        close(fd);
    }
    FAIL_IF(synced != 0, e, PROFD_IO, "cannot sync the copy \"%s\": %s", b->making, strerror(error));
    int renamed = renameat2(AT_FDCWD, b->making, AT_FDCWD, b->path, RENAME_NOREPLACE);
    if (renamed != 0 && (errno == EINVAL || errno == ENOSYS)) { /* not every file system can rename without replacing */
        renamed = lstat(b->path, &st) == 0 ? (errno = EEXIST, -1) : rename(b->making, b->path);
    }
    FAIL_IF(renamed != 0, e, PROFD_CANT_CREATE, "cannot name the copy \"%s\": %s", b->path, strerror(errno));
    free(b->making);
    b->making = NULL;
    TRY(sqlite_sync_directory(b->path, e));
    *left = 0;
    /* If this cannot be recorded, hosts keep their segments longer. */
    if (b->number > 0 && !sqlite_write_begin(b->s, NULL)) {
        (void)sqlite_write_end(b->s, sqlite_run(b->s, SQL_CENTRE_BACKED_UP, VALUES(INTEGER(b->number)), NULL), NULL);
    }
    return PROFD_OK;
}

enum profd_status store_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                     struct profd_error *e)
{
    int64_t page = 0, number = 0;
    struct stat st;
    FAIL_IF(!s->writable, e, PROFD_INTERNAL, "this handle of the store only reads");
    TRY(sqlite_direct_integer(s->db, "PRAGMA page_size", &page, e));
    TRY(sqlite_direct_integer(s->db, "SELECT number FROM centre", &number, e));
    struct store_backup *b = calloc(1, sizeof *b);
    TRY(b ? PROFD_OK : profd_no_memory(e));
    *b = (struct store_backup){.s = s, .path = strdup(path), .page = (int)page, .number = number};
    if (!b->path || asprintf(&b->making, "%s.part", path) < 0) {
        b->making = NULL;
        store_backup_end(b);
        return profd_no_memory(e);
    }

    const bool taken = lstat(path, &st) == 0;
    if (!taken) {
        unlink(b->making); /* left by a daemon that was killed */
    }
    const int fd = taken ? -1 : open(b->making, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error = errno;
    if (fd < 0) {
        free(b->making);
        b->making = NULL; /* it belongs to another program */
        store_backup_end(b);
        return taken ? profd_error_set(e, PROFD_CANT_CREATE, "\"%s\" exists already", path)
                     : profd_error_set(e, error == ENOSPC ? PROFD_FULL : PROFD_CANT_CREATE,
                                       "cannot create the copy \"%s\": %s", path, strerror(error));
    }
    close(fd);
    int rc = sqlite3_open_v2(b->making, &b->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(b->to, 1);
        /* The file is invisible until it is complete and synced, so it needs no journal. */
        rc = sqlite3_exec(b->to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK) {
        b->copy = sqlite3_backup_init(b->to, "main", s->db, "main");
        rc = b->copy ? SQLITE_OK : sqlite3_extended_errcode(b->to);
    }
    if (rc != SQLITE_OK) {
        const enum profd_status status = fail(b, rc, e);
        store_backup_end(b);
        return status;
    }
    *out = b;
    return PROFD_OK;
}

enum profd_status store_shrink(struct store *s, uint64_t bytes, struct store_progress *progress, struct profd_error *e)
{
    char sql[64];
    int64_t page = 0, before = 0, after = 0;
    TRY(sqlite_write_begin(s, e));
    enum profd_status status = sqlite_direct_integer(s->db, "PRAGMA page_size", &page, e);
    status = status ? status : sqlite_direct_integer(s->db, "PRAGMA freelist_count", &before, e);
    if (!status && before > 0) {
        /* Each page that moves is written to the log, with those that point to it. */
        uint64_t pages = bytes / (uint64_t)page + 1, most = (uint64_t)s->log_frames / 4;
        pages = pages < most ? pages : most;
        snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%d)", pages < INT32_MAX ? (int)pages : INT32_MAX);
        if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
            status = sqlite_fail(s, e);
        }
    }
    status = status ? status : sqlite_direct_integer(s->db, "PRAGMA freelist_count", &after, e);
    TRY(sqlite_write_end(s, status, e));
    *progress = (struct store_progress){.more = after > 0 && after < before};
    return progress->more ? PROFD_OK : sqlite_empty_log(s, false, e);
}
