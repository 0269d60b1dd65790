/* The files of an open database, and that they keep their names and what was committed to them. SQLite goes on with a
 * file that was removed, renamed or truncated: what is committed then cannot be found again, and another process that
 * opens the name is not seen. Only stat is used: to close a descriptor of the database would drop SQLite's locks on it.
 *
 * The size of the index of the log is not looked at. SQLite maps this file, and the kernel ends a process that reads
 * beyond its end by SIGBUS. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/sqlite.h"

#define LOG_HEADER 32       /* bytes, of the file format of SQLite */
#define LOG_FRAME_HEADER 24 /* likewise, before each page */

static enum profd_status watch(struct store *s, const char *path, const struct stat *st, struct profd_error *e)
{
    struct sqlite_watched *w = &s->watched[s->watched_count];
    if (s->watched_count == SQLITE_WATCHED) {
        return profd_error_set(e, PROFD_INTERNAL, "more than %u files are watched", SQLITE_WATCHED);
    }
    w->path = strdup(path);
    if (!w->path) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to watch \"%s\"", path);
    }
    w->device = st->st_dev;
    w->inode = st->st_ino;
    w->size = 0;
    s->watched_count++;
    return PROFD_OK;
}

enum profd_status sqlite_watch_begin(struct store *s, struct profd_error *e)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char path[PATH_MAX];
    struct stat st;
    int moved = 0;
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(path, sizeof path, "%s%s", s->path, suffixes[i]);
        status = stat(path, &st) == 0
                     ? watch(s, path, &st, e)
                     : profd_error_set(e, PROFD_IO, "cannot look at \"%s\": %s", path, strerror(errno));
    }
    /* Checks that the file with this name is the one that SQLite has opened. */
    if (status == PROFD_OK &&
        (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved)) {
        status = profd_error_set(e, PROFD_IO, "\"%s\" was replaced while it was opened", s->path);
    }
    sqlite_watch_note_database(s);
    return status;
}

void sqlite_watch_note_database(struct store *s)
{
    struct stat st;
    if (s->watched_count > SQLITE_WATCHED_DATABASE && stat(s->path, &st) == 0) {
        s->watched[SQLITE_WATCHED_DATABASE].size = st.st_size;
    }
}

void sqlite_watch_note_log(struct store *s)
{
    s->watched[SQLITE_WATCHED_LOG].size =
        s->wal_frames > 0 ? LOG_HEADER + s->wal_frames * (LOG_FRAME_HEADER + s->page_size) : 0;
}

enum profd_status store_sqlite_watch(struct store *s, const char *path, int fd, struct profd_error *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return profd_error_set(e, PROFD_IO, "cannot look at \"%s\": %s", path, strerror(errno));
    }
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

/* Only the name of the log was removed: its commits would be lost with the descriptor, so they are copied into the
 * database now. */
static void save_log(struct store *s, size_t missing, int error)
{
    int other;
    if (missing != SQLITE_WATCHED_LOG || error != ENOENT) {
        return;
    }
    for (size_t i = 0; i < s->watched_count; i++) {
        if (i != missing && *judge(&s->watched[i], &other) != '\0') {
            return;
        }
    }
    s->saved = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_FULL, NULL, NULL) == SQLITE_OK;
}

enum profd_status sqlite_watch_look(struct store *s, struct profd_error *e)
{
    int error = 0;
    if (s->broken != PROFD_OK) {
        return profd_error_set(e, s->broken, "%s", s->health.error.sentence);
    }
    for (size_t i = 0; i < s->watched_count; i++) {
        const char *happened = judge(&s->watched[i], &error);
        if (*happened == '\0') {
            continue;
        }
        struct profd_error why;
        profd_error_set(&why, PROFD_IO, "\"%s\" %s while profd had it open%s%s; put it back or restore a backup",
                        s->watched[i].path, happened, error ? ": " : "", error ? strerror(error) : "");
        sqlite_break(s, PROFD_IO, why.sentence);
        save_log(s, i, error);
        return profd_error_set(e, s->broken, "%s", s->health.error.sentence);
    }
    return PROFD_OK;
}

enum profd_status store_look(struct store *s, struct profd_error *e)
{
    return sqlite_watch_look(s, e);
}
