/* profctl backup: a copy of everything stored, while uploads go on. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_progress.h"
#include "profctl/profctl_show.h"

#define ANSWER_MS 600000u

struct copy {
    const char *path; /* NULL: stdout */
    char *part;
    int fd;
    uint64_t size, total;
    struct progress progress;
};

static enum profd_status cannot(const char *what, const char *path, struct profd_error *e)
{
    enum profd_status status = errno == ENOSPC || errno == EDQUOT ? PROFD_FULL : PROFD_CANT_CREATE;
    return profd_error_set(e, status, "cannot %s %s: %s", what, path, strerror(errno));
}

static enum profd_status copy_open(const char *path, struct copy *c, struct profd_error *e)
{
    struct stat s;
    *c = (struct copy){.fd = STDOUT_FILENO};
    if (strcmp(path, "-") == 0) {
        return isatty(STDOUT_FILENO) == 1 ? profd_error_set(e, PROFD_USAGE, "a backup cannot be written to a terminal")
                                          : PROFD_OK;
    }
    if (lstat(path, &s) == 0) {
        return profd_error_set(e, PROFD_CANT_CREATE, "%s exists already; a backup does not overwrite files", path);
    }
    size_t n = strlen(path) + 8;
    c->part = malloc(n);
    if (!c->part) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a file name");
    }
    (void)snprintf(c->part, n, "%s.part", path);
    int fd = open(c->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        enum profd_status status =
            errno == EEXIST
                ? profd_error_set(
                      e, PROFD_CANT_CREATE,
                      "%s exists: another backup is in progress or was interrupted; remove it if none is in progress",
                      c->part)
                : cannot("make", c->part, e);
        free(c->part);
        return status;
    }
    c->path = path;
    c->fd = fd;
    return PROFD_OK;
}

static enum profd_status copy_take(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                   struct profd_error *e)
{
    struct copy *c = context;
    const char *p = bytes;
    c->total = answer->http_status ? answer->total : 0;
    progress_show(&c->progress, answer->http_status ? "receiving" : "copying", answer->done, answer->total, "");
    c->size += n;
    while (n > 0) {
        ssize_t put = write(c->fd, p, n);
        if (put < 0 && errno != EINTR) {
            return cannot("write", c->path ? c->part : "to stdout", e);
        }
        if (put > 0) {
            p += put;
            n -= (size_t)put;
        }
    }
    return PROFD_OK;
}

static enum profd_status copy_keep(struct copy *c, struct profd_error *e)
{
    if (c->size == 0 || c->size != c->total) {
        return profd_error_set(e, PROFD_PROTOCOL, "the backup ended after %" PRIu64 " of %" PRIu64 " bytes", c->size,
                               c->total);
    }
    if (!c->path) {
        return PROFD_OK;
    }
    if (fsync(c->fd) != 0) {
        return cannot("write", c->part, e);
    }
    struct stat s;
    if (renameat2(AT_FDCWD, c->part, AT_FDCWD, c->path, RENAME_NOREPLACE) != 0 &&
        /* a file system that cannot promise it */
        (errno != EINVAL || lstat(c->path, &s) == 0 || rename(c->part, c->path) != 0)) {
        return cannot("make", c->path, e);
    }
    /* The name itself must outlive a crash, too. */
    const char *slash = strrchr(c->path, '/');
    char *directory = slash ? strndup(c->path, (size_t)(slash - c->path) + 1) : strdup(".");
    int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    enum profd_status status = PROFD_OK;
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) {
        status = cannot("sync the directory of", c->path, e);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(directory);
    return status;
}

static enum profd_status backup_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct copy c;
    const struct profd_options o = profctl_options(call, ANSWER_MS);
    enum profd_status status = copy_open(call->arguments[0], &c, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = profd_conn_open(&o, &conn, e);
    if (status == PROFD_OK) {
        status = profd_admin(conn, "backup", NULL, 0, copy_take, &c, e);
        profd_conn_close(conn);
    }
    progress_end(&c.progress);
    if (status == PROFD_OK) {
        status = copy_keep(&c, e);
    }
    if (c.path) {
        close(c.fd);
        (void)unlink(c.part); /* gone already where all went well */
    }
    free(c.part);
    if (status == PROFD_OK && c.path && call->json) {
        status = json_print(json_pack("{s:I}", "bytes", json_count(c.size)), e);
    } else if (status == PROFD_OK && c.path) {
        char size[32];
        show_bytes(c.size, size, sizeof size);
        printf("%s: %s\n", c.path, size);
    }
    return status;
}

const struct profctl_verb verb_backup = {
    .name = "backup",
    .arguments = "FILE",
    .summary = "Write a copy of all stored data to FILE (- for stdout)",
    .details = "Uploads continue meanwhile. FILE must not exist; it appears when it is complete and synced.\n",
    .arguments_least = 1,
    .arguments_most = 1,
    .run = backup_run,
};
