#include "profctl/profctl_pager.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

/* True if a folder of PATH has it. */
static bool program_exists(const char *name)
{
    const char *path = getenv("PATH");
    char file[4096];
    while (path && *path) {
        size_t n = strcspn(path, ":");
        int written = snprintf(file, sizeof file, "%.*s/%s", n < 4000 ? (int)n : 4000, path, name);
        if (n > 0 && written > 0 && (size_t)written < sizeof file && access(file, X_OK) == 0) {
            return true;
        }
        path += n + (path[n] == ':');
    }
    return false;
}

const char *pager_choose(void)
{
    const char *command = getenv("PROFD_PAGER"), *term = getenv("TERM");
    if (getauxval(AT_SECURE) || !term || strcmp(term, "dumb") == 0) {
        return NULL;
    }
    command = command ? command : getenv("PAGER");
    if (!command) {
        return program_exists("less") ? "less -FRX" : NULL;
    }
    return command[strspn(command, " ")] == '\0' || strcmp(command, "cat") == 0 ? NULL : command;
}

enum profd_status pager_start(struct pager *p, const char *command, struct profd_error *e)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return profd_error_set(e, PROFD_IO, "cannot start the pager: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[0], STDIN_FILENO);
        (void)setenv("LESS", "FRX", 0);
        (void)setenv("LV", "-c", 0);
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    FILE *stream = pid > 0 ? fdopen(ends[1], "w") : NULL;
    if (!stream) {
        enum profd_status status = profd_error_set(e, PROFD_IO, "cannot start the pager: %s", strerror(errno));
        close(ends[1]);
        if (pid > 0) {
            (void)waitpid(pid, NULL, 0);
        }
        return status;
    }
    *p = (struct pager){.pid = pid, .stream = stream, .command = command};
    (void)sigaction(SIGINT, &ignore, &p->interrupt);
    (void)sigaction(SIGQUIT, &ignore, &p->quit);
    (void)sigaction(SIGPIPE, &ignore, &p->pipe);
    return PROFD_OK;
}

enum profd_status pager_end(struct pager *p, struct profd_error *e)
{
    int how = 0;
    if (p->pid == 0) {
        return PROFD_OK;
    }
    (void)fclose(p->stream); /* the user left the pager before the end */
    while (waitpid(p->pid, &how, 0) < 0 && errno == EINTR) {
    }
    (void)sigaction(SIGINT, &p->interrupt, NULL);
    (void)sigaction(SIGQUIT, &p->quit, NULL);
    (void)sigaction(SIGPIPE, &p->pipe, NULL);
    p->pid = 0;
    if (WIFEXITED(how) && (WEXITSTATUS(how) == 127 || WEXITSTATUS(how) == 126)) {
        return profd_error_set(e, PROFD_USAGE, "cannot run the pager \"%s\"; use --no-pager", p->command);
    }
    return PROFD_OK;
}
