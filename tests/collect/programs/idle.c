/* Does what it is told, line by line: "N" makes N calls of leaf; "spin N" takes N ms of CPU time without a call;
 * "close" closes every descriptor but the first three; "kill" is SIGKILL; "setuid N" becomes that user; "fork N" has
 * a child that makes N calls and ends by _exit(), "twice N" a grandchild whose parent ends first, "raw N" a child
 * without fork()'s handlers, "vfork N" one in the parent's memory, "child" one that only runs /bin/true; "keep N" has a
 * child that makes N calls and uses CPU time until "reap" kills it; "leave N" leaves a child behind, made without
 * fork()'s handlers, that makes N calls after SIGUSR1 and whose process id is written to the file "left"; "again" runs
 * this program in its place, "away" /bin/sleep without an environment. Answers "done". At the end of its input it ends
 * by exit(). */
#define _GNU_SOURCE
#include "cpu.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUIET __attribute__((no_instrument_function))

__attribute__((noinline)) void leaf(void)
{
    __asm__ volatile("");
}

static QUIET void call(long n)
{
    for (; n > 0; n--) {
        leaf();
    }
}

static QUIET void spin(long ms)
{
    for (double end = cpu() + (double)ms / 1000; cpu() < end;) {
    }
}

static pid_t kept;

static QUIET void keep(long n)
{
    kept = fork();
    if (kept == 0) {
        call(n);
        for (;;) {
            spin(20);
            usleep(20000);
        }
    }
}

static QUIET void twice(long n)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fork() == 0) {
        pid_t child = fork();
        if (child == 0) {
            call(n);
        }
        _exit(0);
    }
}

static QUIET void leave(long n)
{
    sigset_t wanted;
    int number;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        sigwait(&wanted, &number);
        call(n);
        _exit(0);
    }
    FILE *left = fopen("left", "w");
    if (!left || fprintf(left, "%ld", child) < 0 || fclose(left) != 0) {
        exit(1);
    }
    kept = (pid_t)child; /* not waited for */
}

static QUIET void children(const char *line)
{
    if (strncmp(line, "fork ", 5) == 0 && fork() == 0) {
        call(atol(line + 5));
        _exit(0);
    }
    if (strncmp(line, "twice ", 6) == 0) {
        twice(atol(line + 6));
    }
    if (strncmp(line, "raw ", 4) == 0 && syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0) {
        call(atol(line + 4));
        _exit(0);
    }
    if (strncmp(line, "vfork ", 6) == 0 && vfork() == 0) {
        call(atol(line + 6));
        _exit(0);
    }
    if (strcmp(line, "child\n") == 0 && fork() == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    if (strncmp(line, "leave ", 6) == 0) {
        leave(atol(line + 6));
    }
    if (strncmp(line, "keep ", 5) == 0) {
        keep(atol(line + 5));
    }
    if (strcmp(line, "reap\n") == 0 && kill(kept, SIGKILL) == 0) {
        kept = 0;
    }
    while (kept == 0 && wait(NULL) > 0) {
    }
}

static QUIET void become(const char *line, char *self)
{
    if (strncmp(line, "setuid ", 7) == 0 && setuid((uid_t)atol(line + 7)) != 0) {
        exit(1);
    }
    if (strcmp(line, "again\n") == 0) {
        execl(self, self, "again", (char *)NULL);
    }
    if (strcmp(line, "away\n") == 0) {
        execle("/bin/sleep", "sleep", "600", (char *)NULL, (char *const[]){NULL});
    }
}

QUIET int main(int count, char **arguments)
{
    char line[64];
    if (count > 1) {
        puts("done");
        fflush(stdout);
    }
    while (fgets(line, sizeof line, stdin)) {
        call(strtol(line, NULL, 10));
        children(line);
        become(line, arguments[0]);
        if (strncmp(line, "spin ", 5) == 0) {
            spin(atol(line + 5));
        }
        if (strcmp(line, "close\n") == 0) {
            for (int fd = 3; fd < 1024; fd++) {
                close(fd);
            }
        }
        if (strcmp(line, "kill\n") == 0) {
            raise(SIGKILL);
        }
        puts("done");
        fflush(stdout);
    }
    return 0;
}
