#include "profctl/profctl_drawing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profctl/profctl.h"

extern char **environ;

bool drawing_is_format(const char *format)
{
    return format && strcmp(format, DRAWING_FORMAT) == 0;
}

enum profd_status drawing_open(struct drawing *d, struct profd_error *e)
{
    d->fd = memfd_create("profctl-dot", MFD_CLOEXEC);
    return d->fd >= 0 ? PROFD_OK
                      : profd_error_set(e, PROFD_CANT_CREATE, "no memory for a drawing: %s", strerror(errno));
}

enum profd_status drawing_write(struct drawing *d, const void *bytes, size_t n, struct profd_error *e)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t put = write(d->fd, p, n);
        if (put < 0 && errno != EINTR) {
            return profd_error_set(e, PROFD_CANT_CREATE, "no memory for a drawing: %s", strerror(errno));
        }
        p += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return PROFD_OK;
}

/* dot reads fd and writes into a pipe; *from is its other end. */
static enum profd_status dot_start(int fd, pid_t *pid, int *from, struct profd_error *e)
{
    posix_spawn_file_actions_t actions;
    char name[] = "dot", kind[] = "-T" DRAWING_FORMAT;
    char *words[] = {name, kind, NULL};
    int ends[2], error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (error == 0 && (error = posix_spawn_file_actions_init(&actions)) == 0) {
        (void)setenv("SERVER_NAME", "profctl", 0); /* to Graphviz: it must not open files named in the graph */
        error = posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
        error = error ? error : posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        error = error ? error : posix_spawnp(pid, "dot", &actions, NULL, words, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        if (error != 0) {
            close(ends[0]);
        }
    }
    if (error == ENOENT || error == EACCES) {
        return profd_error_set(e, PROFD_NOT_FOUND,
                               "-f " DRAWING_FORMAT " requires the program \"dot\" of Graphviz, which is not in PATH");
    }
    *from = ends[0];
    return error == 0 ? PROFD_OK : profd_error_set(e, PROFD_INTERNAL, "cannot start dot: %s", strerror(error));
}

enum profd_status drawing_run(struct drawing *d, struct output *out, struct profd_error *e)
{
    char piece[65536];
    pid_t pid;
    int from = -1, how = 0;
    if (getauxval(AT_SECURE)) {
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "-f " DRAWING_FORMAT
                               " starts another program, which is refused when profctl runs set-user-ID");
    }
    enum profd_status status = lseek(d->fd, 0, SEEK_SET) == 0
                                   ? dot_start(d->fd, &pid, &from, e)
                                   : profd_error_set(e, PROFD_INTERNAL, "cannot read the drawing");
    if (status != PROFD_OK) {
        return status;
    }
    for (;;) {
        ssize_t n = read(from, piece, sizeof piece);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            break;
        }
        if (n > 0 && status == PROFD_OK) { /* what cannot be written is still taken from dot */
            status = output_write(out, piece, (size_t)n, e);
        }
    }
    close(from);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (status == PROFD_OK && (!WIFEXITED(how) || WEXITSTATUS(how) != 0)) {
        status = WIFEXITED(how) ? profd_error_set(e, PROFD_INTERNAL, "dot failed with status %d", WEXITSTATUS(how))
                                : profd_error_set(e, PROFD_INTERNAL, "dot was ended by signal %d", WTERMSIG(how));
    }
    return status;
}

void drawing_close(struct drawing *d)
{
    close(d->fd);
}
