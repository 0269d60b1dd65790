#include "profctl/profctl_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

static enum profd_status start(const char *const *words, const char *package, pid_t *pid, int *from,
                               struct profd_error *e)
{
    posix_spawn_file_actions_t actions;
    int ends[2], error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (error == 0 && (error = posix_spawn_file_actions_init(&actions)) == 0) {
        char *copies[16] = {NULL}; /* posix_spawn promises not to write to them, its prototype does not */
        size_t i = 0;
        do {
            memcpy(&copies[i], &words[i], sizeof copies[i]);
        } while (words[++i] && i + 1 < sizeof copies / sizeof copies[0]);
        (void)setenv("LC_ALL", "C", 1);
        error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        error = error ? error : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        error = error ? error : posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        error = error ? error : posix_spawnp(pid, words[0], &actions, NULL, copies, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        if (error != 0) {
            close(ends[0]);
        }
    }
    if (error == ENOENT || error == EACCES) {
        return profd_error_set(e, PROFD_NOT_FOUND, "%s is not in PATH; the package %s has it", words[0], package);
    }
    *from = ends[0];
    return error == 0 ? PROFD_OK : profd_error_set(e, PROFD_INTERNAL, "cannot start %s: %s", words[0], strerror(error));
}

enum profd_status pipe_read_lines(const char *const *words, const char *package,
                                  bool (*each)(void *context, char *line), void *context, struct profd_error *e)
{
    pid_t pid = 0;
    int from = -1, how = 0;
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    bool goes_on = true;
    if (getauxval(AT_SECURE)) {
        return profd_error_set(e, PROFD_FORBIDDEN, "%s is not started when profctl runs set-user-ID", words[0]);
    }
    enum profd_status status = start(words, package, &pid, &from, e);
    if (status != PROFD_OK) {
        return status;
    }
    FILE *in = fdopen(from, "r");
    while (in && goes_on && (n = getline(&line, &size, in)) >= 0) {
        if (n > 0 && line[n - 1] == '\n') {
            line[n - 1] = '\0';
        }
        goes_on = each(context, line);
    }
    free(line);
    if (in) {
        (void)fclose(in);
    } else {
        close(from);
    }
    if (pid > 0 && (!goes_on || !in)) {
        kill(pid, SIGTERM);
    }
    while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (goes_on && (!in || !WIFEXITED(how) || WEXITSTATUS(how) != 0)) {
        status = profd_error_set(e, PROFD_INTERNAL, "%s failed", words[0]);
    }
    return status;
}
