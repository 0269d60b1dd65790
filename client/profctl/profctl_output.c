#include "profctl/profctl_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum profd_status cannot(const char *path, struct profd_error *e)
{
    return profd_error_set(e, PROFD_CANT_CREATE, "cannot write %s: %s", path, strerror(errno));
}

/* A file beside path, with the permissions that a new file gets. */
static enum profd_status part_open(const char *path, struct output *o, struct profd_error *e)
{
    size_t n = strlen(path) + 32;
    o->path = strdup(path);
    o->part = malloc(n);
    if (!o->path || !o->part) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a file name");
    }
    (void)snprintf(o->part, n, "%s.%ld.part", path, (long)getpid());
    int fd = open(o->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    o->stream = fd < 0 ? NULL : fdopen(fd, "w");
    return o->stream ? PROFD_OK : cannot(path, e);
}

enum profd_status output_open(const char *path, struct output *out, struct profd_error *e)
{
    struct output o = {.stream = stdout};
    struct stat s;
    enum profd_status status = PROFD_OK;
    if (!path) {
        o.terminal = isatty(STDOUT_FILENO) == 1;
    } else if (stat(path, &s) == 0 && !S_ISREG(s.st_mode)) {
        o.stream = fopen(path, "we");
        status = o.stream ? PROFD_OK : cannot(path, e);
    } else {
        char *real = realpath(path, NULL); /* a symbolic link stays one */
        status = part_open(real ? real : path, &o, e);
        free(real);
    }
    if (status != PROFD_OK) {
        free(o.path);
        free(o.part);
        return status;
    }
    *out = o;
    return PROFD_OK;
}

void output_dress(struct output *out, struct paint *paint, const char *pager_command)
{
    out->paint = paint;
    out->pager_command = pager_command;
}

static void piece_write(struct output *out, const char *bytes, size_t n)
{
    if (out->paint) {
        paint_run(out->paint, bytes, n, out->stream);
    } else {
        (void)fwrite(bytes, 1, n, out->stream);
    }
}

enum profd_status output_write(struct output *out, const void *bytes, size_t n, struct profd_error *e)
{
    const char *p = bytes;
    if (out->pager_command && n > 0) { /* not earlier: a question that fails needs no pager */
        const char *command = out->pager_command;
        out->pager_command = NULL;
        if (pager_start(&out->pager, command, NULL) == PROFD_OK) {
            out->stream = out->pager.stream;
        }
    }
    while (n > 0) {
        char clean[TERMINAL_BOUND(4096)];
        bool filtered = out->terminal || out->paint;
        size_t piece = filtered && n > 4096 ? 4096 : n;
        size_t size = filtered ? terminal_filter_run(&out->filter, p, piece, clean) : n;
        errno = 0;
        piece_write(out, filtered ? clean : p, size);
        if (ferror(out->stream)) {
            out->left = out->pager.pid != 0 && errno == EPIPE;
            return profd_error_set(e, PROFD_IO, "cannot write %s: %s", out->path ? out->path : "to stdout",
                                   strerror(errno));
        }
        p += piece;
        n -= piece;
    }
    return PROFD_OK;
}

enum profd_status output_close(struct output *out, bool keep, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (out->terminal || out->paint) {
        char rest[TERMINAL_BOUND(0)];
        piece_write(out, rest, terminal_filter_run(&out->filter, NULL, 0, rest));
    }
    if (out->paint) {
        paint_end(out->paint, out->stream);
    }
    bool failed = fflush(out->stream) != 0 || ferror(out->stream);
    if (out->pager.pid != 0) {
        out->left |= failed && errno == EPIPE;
        failed = false; /* it does not matter whether the reader read everything */
        status = pager_end(&out->pager, e);
    } else if (out->stream != stdout) {
        failed |= fclose(out->stream) != 0;
    }
    if (failed && keep) {
        status =
            profd_error_set(e, PROFD_IO, "cannot write %s: %s", out->path ? out->path : "the output", strerror(errno));
    }
    if (out->part && (failed || !keep)) {
        (void)unlink(out->part);
    } else if (out->part && rename(out->part, out->path) != 0) {
        status = cannot(out->path, e);
        (void)unlink(out->part);
    }
    free(out->path);
    free(out->part);
    *out = (struct output){.left = out->left};
    return status;
}
