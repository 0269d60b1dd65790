#include "client/profctl_output.h"

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

enum profd_status output_write(struct output *out, const void *bytes, size_t n, struct profd_error *e)
{
    const char *p = bytes;
    while (n > 0) {
        char clean[4096 + 4];
        size_t piece = n < 4096 ? n : 4096;
        size_t size = out->terminal ? terminal_filter_run(&out->filter, p, piece, clean) : n;
        if (fwrite(out->terminal ? clean : p, 1, size, out->stream) != size) {
            return profd_error_set(e, PROFD_IO, "cannot write %s: %s", out->path ? out->path : "to stdout", strerror(errno));
        }
        p += out->terminal ? piece : n;
        n -= out->terminal ? piece : n;
    }
    return PROFD_OK;
}

enum profd_status output_close(struct output *out, bool keep, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (out->terminal) {
        char rest[4];
        size_t n = terminal_filter_run(&out->filter, NULL, 0, rest);
        (void)fwrite(rest, 1, n, out->stream);
    }
    bool failed = fflush(out->stream) != 0 || ferror(out->stream);
    if (out->stream != stdout) {
        failed |= fclose(out->stream) != 0;
    }
    if (failed && keep) {
        status = profd_error_set(e, PROFD_IO, "cannot write %s: %s", out->path ? out->path : "the output", strerror(errno));
    }
    if (out->part && (failed || !keep)) {
        (void)unlink(out->part);
    } else if (out->part && rename(out->part, out->path) != 0) {
        status = cannot(out->path, e);
        (void)unlink(out->part);
    }
    free(out->path);
    free(out->part);
    *out = (struct output){.stream = NULL};
    return status;
}
