#include "tests/crash/daemon.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void daemon_init(struct daemon *d, const char *program, const char *folder, const char *name)
{
    char path[PLACE_PATH];

    *d = (struct daemon){.program = program};
    place_join(d->state, folder, "db");
    place_join(d->log, folder, "log");
    place_join(d->config, folder, "profd.conf");
    place_write(d->config, "", 0);
    place_join(path, folder, name);
    snprintf(d->socket, sizeof d->socket, "%.107s", path);
}

void daemon_pause_us(unsigned us)
{
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

    nanosleep(&pause, NULL);
}

static void become_daemon(const struct daemon *d)
{
    const char *argv[10 + DAEMON_OPTIONS] = {d->program, "--config", d->config,       "--state-dir", d->state,
                                             "--socket", d->socket,  "--http-socket", "none"};
    const int null = open("/dev/null", O_RDONLY), log = open(d->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    size_t n = 9;

    for (size_t i = 0; i < DAEMON_OPTIONS && d->options[i]; i++) {
        argv[n++] = d->options[i];
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    if (d->fault) {
        setenv("LD_PRELOAD", d->preload, 1);
        setenv("PROFD_FAULT", d->fault, 1);
    }
    if (d->clock_library) {
        setenv("LD_PRELOAD", d->clock_library, 1);
        setenv("FAKETIME_TIMESTAMP_FILE", d->clock, 1);
        setenv("FAKETIME_NO_CACHE", "1", 1);
        setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
    }
    if (d->managed) {
        setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
    } else {
        unsetenv("NOTIFY_SOCKET");
    }
    execv(d->program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

bool daemon_start(struct daemon *d)
{
    const pid_t pid = fork();

    if (pid == 0) {
        become_daemon(d);
    }
    if (pid < 0) {
        return false;
    }
    d->pid = pid;
    return true;
}

bool daemon_alive(struct daemon *d)
{
    if (d->pid && waitpid(d->pid, &d->status, WNOHANG) == d->pid) {
        d->pid = 0;
    }
    return d->pid != 0;
}

bool daemon_await(struct daemon *d, unsigned ms)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    memcpy(a.sun_path, d->socket, sizeof a.sun_path);
    for (unsigned waited = 0; waited < ms * 4; waited++) {
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool there = !connect(fd, (const struct sockaddr *)&a, sizeof a);

        close(fd);
        if (there) {
            return true;
        }
        if (!daemon_alive(d)) {
            return false;
        }
        daemon_pause_us(250);
    }
    return false;
}

void daemon_kill(struct daemon *d)
{
    if (daemon_alive(d)) {
        kill(d->pid, SIGKILL);
        waitpid(d->pid, &d->status, 0);
        d->pid = 0;
    }
}

int daemon_wait(struct daemon *d, unsigned ms)
{
    for (unsigned waited = 0; waited < ms && daemon_alive(d); waited++) {
        daemon_pause_us(1000);
    }
    if (daemon_alive(d)) {
        daemon_kill(d);
        return -1;
    }
    return WIFEXITED(d->status) ? WEXITSTATUS(d->status) : -1;
}

int daemon_stop(struct daemon *d, unsigned ms)
{
    if (daemon_alive(d)) {
        kill(d->pid, SIGTERM);
    }
    return daemon_wait(d, ms);
}

/* True if every thread is stopped: one in the middle of a write finishes it first. */
static bool threads_stopped(pid_t pid)
{
    char path[64], line[512];
    struct dirent *entry;
    bool stopped = true;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && stopped && (entry = readdir(tasks))) {
        const char *state;
        FILE *f;

        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)pid, entry->d_name);
        f = fopen(path, "re");
        if (!f) {
            continue;
        }
        state = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
        stopped = state && (state[2] == 'T' || state[2] == 't');
        fclose(f);
    }
    if (tasks) {
        closedir(tasks);
    }
    return tasks && stopped;
}

bool daemon_freeze(struct daemon *d)
{
    if (!daemon_alive(d) || kill(d->pid, SIGSTOP)) {
        return false;
    }
    for (unsigned tries = 0; tries < 20000; tries++) {
        if (threads_stopped(d->pid)) {
            return true;
        }
        daemon_pause_us(200);
    }
    return false;
}

void daemon_thaw(struct daemon *d)
{
    if (d->pid) {
        kill(d->pid, SIGCONT);
    }
}

void daemon_show_log(const struct daemon *d)
{
    char line[512];
    FILE *f = fopen(d->log, "re");

    if (f && !fseek(f, -3000, SEEK_END) && !fgets(line, sizeof line, f)) { /* the rest of a line */
        line[0] = 0;
    }
    while (f && fgets(line, sizeof line, f)) {
        if (!strstr(line, "uploads and queries on") && !strstr(line, "stopping")) {
            printf("  # %s", line);
        }
    }
    if (f) {
        fclose(f);
    }
}
