/* The files that a writer watches.
 *
 * SQLite continues with a file that was removed, renamed or truncated: what is committed then is lost, and another
 * process that opens the name is not seen. Therefore the writer checks names and sizes before and after each commit. It
 * only calls stat, because closing a descriptor of the database would drop SQLite's locks.
 *
 * The size of the index of the log is not checked: SQLite maps this file, and the kernel ends a process that reads
 * beyond its end with SIGBUS. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store_internal.h"

#define WATCHED_DATABASE 0u /* index in store.watched, */
#define WATCHED_LOG 1u      /* likewise */
#define LOG_HEADER 32       /* bytes, of the file format of SQLite */
#define LOG_FRAME_HEADER 24 /* likewise, before each page */

void sqlite_break(struct store *s, enum profd_status status, const char *why)
{
    if (!s->writable || s->broken != PROFD_OK || (status != PROFD_IO && status != PROFD_DAMAGED)) {
        return;
    }
    s->broken = status;
    s->health.failed = true;
    s->health.damaged = status == PROFD_DAMAGED;
    s->health.full = false;
    s->health.changes++;
    profd_error_set(&s->health.error, status, "%s", why);
}

static enum profd_status watch(struct store *s, const char *path, const struct stat *st, struct profd_error *e)
{
    struct sqlite_watched *w = &s->watched[s->watched_count];
    FAIL_IF(s->watched_count == SQLITE_WATCHED, e, PROFD_INTERNAL, "more than %u files are watched", SQLITE_WATCHED);
    w->path = strdup(path);
    TRY(w->path ? PROFD_OK : profd_no_memory(e));
    w->device = st->st_dev;
    w->inode = st->st_ino;
    w->size = 0;
    s->watched_count++;
    return PROFD_OK;
}

void sqlite_watch_note_database(struct store *s)
{
    struct stat st;
    if (s->watched_count > WATCHED_DATABASE && stat(s->path, &st) == 0) {
        s->watched[WATCHED_DATABASE].size = st.st_size;
    }
}

enum profd_status sqlite_watch_begin(struct store *s, struct profd_error *e)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char path[PATH_MAX];
    struct stat st;
    int moved = 0;
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; !status && i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(path, sizeof path, "%s%s", s->path, suffixes[i]);
        status = stat(path, &st) == 0
                     ? watch(s, path, &st, e)
                     : profd_error_set(e, PROFD_IO, "cannot look at \"%s\": %s", path, strerror(errno));
    }
    /* Checks that the file with this name is the one that SQLite has opened. */
    if (!status && (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved)) {
        status = profd_error_set(e, PROFD_IO, "\"%s\" was replaced while it was opened", s->path);
    }
    sqlite_watch_note_database(s);
    return status;
}

void sqlite_watch_note_log(struct store *s)
{
    s->watched[WATCHED_LOG].size =
        s->wal_frames > 0 ? LOG_HEADER + s->wal_frames * (LOG_FRAME_HEADER + s->page_size) : 0;
}

enum profd_status store_sqlite_watch(struct store *s, const char *path, int fd, struct profd_error *e)
{
    struct stat st;
    FAIL_IF(fstat(fd, &st) != 0, e, PROFD_IO, "cannot look at \"%s\": %s", path, strerror(errno));
    return watch(s, path, &st, e);
}

void sqlite_watch_end(struct store *s)
{
    while (s->watched_count > 0) {
        free(s->watched[--s->watched_count].path);
    }
}

/* Returns what happened to the file; "" if it is unchanged. */
static const char *judge(const struct sqlite_watched *w, int *error)
{
    struct stat st;
    *error = stat(w->path, &st) == 0 ? 0 : errno;
    return *error != 0                                       ? "was removed"
           : st.st_dev != w->device || st.st_ino != w->inode ? "was replaced"
           : st.st_size < w->size                            ? "was truncated"
                                                             : "";
}

enum profd_status sqlite_watch_look(struct store *s, struct profd_error *e)
{
    int error = 0, ignored;
    size_t at = 0, others = 0;
    const char *happened = "";
    while (!s->broken && at < s->watched_count && *(happened = judge(&s->watched[at], &error)) == '\0') {
        at++;
    }
    if (*happened != '\0') {
        struct profd_error why;
        profd_error_set(&why, PROFD_IO, "\"%s\" %s while profd had it open%s%s; put it back or restore a backup",
                        s->watched[at].path, happened, error ? ": " : "", error ? strerror(error) : "");
        sqlite_break(s, PROFD_IO, why.sentence);
        for (size_t i = 0; i < s->watched_count; i++) {
            others += i != at && *judge(&s->watched[i], &ignored) != '\0';
        }
        /* If only the name of the log was removed, its commits would be lost with the descriptor: they are copied into
         * the database now. */
        if (at == WATCHED_LOG && error == ENOENT && others == 0) {
            s->saved = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_FULL, NULL, NULL) == SQLITE_OK;
        }
    }
    return s->broken ? profd_error_set(e, s->broken, "%s", s->health.error.sentence) : PROFD_OK;
}

enum profd_status store_look(struct store *s, struct profd_error *e)
{
    return sqlite_watch_look(s, e);
}
