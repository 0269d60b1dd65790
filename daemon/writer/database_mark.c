/* One line: "database INODE", then "damaged", or "log INODE", or "closed SALT NUMBER TEXT". */
#include "writer/database_mark.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"

#define MARK_SIZE (128 + STORE_STATE_TEXT)

/* Skips the word at *at; false, and nothing is skipped, if another one stands there. */
static bool skip_word(const char **at, const char *word)
{
    if (strncmp(*at, word, strlen(word)) != 0) {
        return false;
    }
    *at += strlen(word);
    return true;
}

/* Takes the decimal number at *at. A negative one wraps around, so that a signed one is its conversion. */
static bool take_number(const char **at, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(*at, &end, 10);
    if (end == *at || errno != 0) {
        return false;
    }
    *at = end;
    return true;
}

void database_mark_read(int lock_fd, const char *path, struct database_mark *out)
{
    char text[MARK_SIZE] = "";
    const char *at = text;
    struct stat st;

    *out = (struct database_mark){.any = false};
    if (pread(lock_fd, text, sizeof text - 1, 0) <= 0 || !skip_word(&at, "database ") ||
        !take_number(&at, &out->inode)) {
        return;
    }
    out->any = true;
    out->known = !stat(path, &st) && st.st_ino == out->inode;
    out->damaged = skip_word(&at, " damaged");
    if (skip_word(&at, " closed ")) {
        uint64_t salt = 0, number = 0;
        out->closed = take_number(&at, &salt) && take_number(&at, &number) && skip_word(&at, " ");
        out->last.salt = (int64_t)salt;
        out->last.number = (int64_t)number;
        size_t n = strcspn(at, "\n");
        out->closed = out->closed && n > 0 && n < sizeof out->last.text;
        memcpy(out->last.text, at, out->closed ? n : 0);
    } else if (skip_word(&at, " log ") && !take_number(&at, &out->log_inode)) {
        out->log_inode = 0;
    }
}

static void mark_write(int lock_fd, const char *path, const char *rest)
{
    char text[MARK_SIZE];
    struct stat st;
    int n;

    if (stat(path, &st)) {
        return;
    }
    n = snprintf(text, sizeof text, "database %" PRIu64 "%s\n", (uint64_t)st.st_ino, rest);
    /* In place: a block that the file gave back might not be had again on a full disk. */
    if (pwrite(lock_fd, text, (size_t)n, 0) != n || ftruncate(lock_fd, n) || fsync(lock_fd)) {
        log_write(LOG_LEVEL_WARNING, NULL, "cannot note in the lock file what is known of %s", path);
    }
}

void database_mark_write_damaged(int lock_fd, const char *path, bool closed)
{
    char rest[48] = " damaged";
    struct database_mark mark;

    database_mark_read(lock_fd, path, &mark);
    if (!closed && mark.known && mark.log_inode != 0) {
        (void)snprintf(rest, sizeof rest, " damaged log %" PRIu64, mark.log_inode);
    }
    mark_write(lock_fd, path, rest);
}

void database_mark_write_open(int lock_fd, const char *path)
{
    char log[PATH_MAX], rest[32] = "";
    struct stat st;

    if (snprintf(log, sizeof log, "%s-wal", path) < (int)sizeof log && !stat(log, &st) && st.st_size > 0) {
        (void)snprintf(rest, sizeof rest, " log %" PRIu64, (uint64_t)st.st_ino);
    }
    mark_write(lock_fd, path, rest);
}

void database_mark_write_unsalted(int lock_fd, const char *path)
{
    mark_write(lock_fd, path, "");
}

void database_mark_write_closed(int lock_fd, const char *path, const struct store_sqlite_state *last)
{
    char rest[64 + STORE_STATE_TEXT];

    (void)snprintf(rest, sizeof rest, " closed %" PRId64 " %" PRId64 " %s", last->salt, last->number, last->text);
    mark_write(lock_fd, path, rest);
}
