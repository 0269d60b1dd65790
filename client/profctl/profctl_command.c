#include "profctl/profctl.h"
#include "proto/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_NOT_RUNNABLE 126
#define EXIT_NOT_THERE 127

static int not_run_complain(const struct run_command *c, int why)
{
    profctl_complain("%s: %s: %s", c->verb, c->name, strerror(why));
    return why == ENOENT ? EXIT_NOT_THERE : EXIT_NOT_RUNNABLE;
}

static void pipe_make(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ends[0] = ends[1] = -1;
    }
}

bool command_find(const char *name, char out[COMMAND_PATH_SIZE])
{
    const char *folder = getenv("PATH");
    if (strchr(name, '/')) {
        return snprintf(out, COMMAND_PATH_SIZE, "%s", name) < COMMAND_PATH_SIZE;
    }
    for (folder = folder ? folder : "/bin:/usr/bin"; folder; folder = *folder == ':' ? folder + 1 : NULL) {
        size_t n = strcspn(folder, ":");
        int written = snprintf(out, COMMAND_PATH_SIZE, "%.*s%s%s", (int)(n < COMMAND_PATH_SIZE ? n : 0), folder,
                               n ? "/" : "", name);
        if (written > 0 && written < COMMAND_PATH_SIZE && access(out, X_OK) == 0) {
            return true;
        }
        folder += n;
    }
    return false;
}

bool run_command_start(struct run_command *c, const char *verb, char **argv)
{
    int report[2], gate[2];
    static const int numbers[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    *c = (struct run_command){.verb = verb, .name = argv[0]};
    sigemptyset(&c->watched);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        sigaddset(&c->watched, numbers[i]);
    }
    signal(SIGCHLD, SIG_DFL); /* an ignored one would take the status away */
    sigprocmask(SIG_BLOCK, &c->watched, &c->before);
    pipe_make(report);
    pipe_make(gate);
    c->gate = gate[1];
    c->child = fork();
    if (c->child == 0) {
        whole_close(gate[1]);
        /* In the child. What execvp says goes through the pipe, which a success closes; or to standard error where no
         * descriptor was left for a pipe. */
        char byte;
        if (read(gate[0], &byte, 1) != 1 && c->gate >= 0) {
            _exit(EXIT_NOT_RUNNABLE); /* profctl gave up */
        }
        sigprocmask(SIG_SETMASK, &c->before, NULL);
        execvp(argv[0], argv);
        int why = errno;
        _exit(write(report[1], &why, sizeof why) == (ssize_t)sizeof why ? EXIT_NOT_THERE : not_run_complain(c, why));
    }
    const int why = errno;
    whole_close(report[1]);
    whole_close(gate[0]);
    c->report = report[0];
    if (c->child < 0) {
        whole_close(c->report);
        whole_close(c->gate);
        sigprocmask(SIG_SETMASK, &c->before, NULL);
        profctl_complain("%s: cannot create a process: %s", verb, strerror(why));
    }
    return c->child > 0;
}

bool run_command_release(struct run_command *c)
{
    if (c->gate >= 0 && write(c->gate, "", 1) != 1) {
        c->why = errno;
    }
    whole_close(c->gate);
    c->gate = -1;
    int why;
    if (read(c->report, &why, sizeof why) == (ssize_t)sizeof why) {
        c->why = why;
    }
    whole_close(c->report);
    return c->why == 0;
}

bool run_command_step(struct run_command *c, bool wait, int *status)
{
    const struct timespec now = {0, 0};
    siginfo_t info;
    int number = wait ? sigwaitinfo(&c->watched, &info) : sigtimedwait(&c->watched, &info, &now);
    for (; number > 0; number = sigtimedwait(&c->watched, &info, &now)) {
        if (number != SIGCHLD && info.si_code <= 0) {
            kill(c->child, number);
        }
    }
    siginfo_t end = {.si_pid = 0};
    if (waitid(P_PID, (id_t)c->child, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != c->child) {
        return false;
    }
    *status = end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
    return true;
}

/* Ctrl-C during the command was for the command; the next one is for us. */
static void signals_restore(const struct run_command *c)
{
    const struct timespec now = {0, 0};
    while (sigtimedwait(&c->watched, NULL, &now) > 0) {
    }
    sigprocmask(SIG_SETMASK, &c->before, NULL);
}

int run_command_end(struct run_command *c, int status)
{
    (void)waitpid(c->child, NULL, 0);
    signals_restore(c);
    return c->why == 0 ? status : not_run_complain(c, c->why);
}

void run_command_abandon(struct run_command *c)
{
    whole_close(c->gate);
    whole_close(c->report);
    if (c->gate < 0) {
        kill(c->child, SIGKILL);
    }
    (void)waitpid(c->child, NULL, 0);
    signals_restore(c);
}

int program_start(const char *const *words, int input, pid_t *pid, int *from)
{
    posix_spawn_file_actions_t actions;
    int ends[2] = {-1, -1}, error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (error == 0 && (error = posix_spawn_file_actions_init(&actions)) == 0) {
        char *copies[16] = {NULL}; /* posix_spawn promises not to write to them, its prototype does not */
        for (size_t i = 0; words[i] && i + 1 < COUNT(copies); i++) {
            memcpy(&copies[i], &words[i], sizeof copies[i]);
        }
        if (input >= 0) {
            error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        } else {
            error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
            error = error ? error : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        }
        error = error ? error : posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        error = error ? error : posix_spawnp(pid, words[0], &actions, NULL, copies, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        if (error != 0) {
            close(ends[0]);
        }
    }
    *from = ends[0];
    return error;
}
