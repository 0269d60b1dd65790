/* storm threads N | forks DEPTH | execs N | short: much at once, each with CPU time in a leaf of its own. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define LEAF(name, rounds)                                                                                             \
    APART void leaf_##name(void)                                                                                       \
    {                                                                                                                  \
        for (volatile unsigned i = 0; i < (rounds); i++) {                                                             \
        }                                                                                                              \
    }

LEAF(thread, 2000000)
LEAF(fork, 15000000)
LEAF(exec, 15000000)
LEAF(short, 15000000)

typedef void leaf(void);
static volatile uint64_t sink;

APART void shared(leaf *to)
{
    to();
    sink++;
}

APART void *worker(void *context)
{
    shared(leaf_thread);
    sink++;
    return context;
}

APART void threads(unsigned n)
{
    pthread_t *ids = calloc(n, sizeof *ids);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (unsigned i = 0; i < n; i++) {
        if (pthread_create(&ids[i], &attr, worker, NULL) != 0) {
            exit(1);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        pthread_join(ids[i], NULL);
    }
    free(ids);
}

/* Each process makes two, and these do so, too. */
APART void spawn(unsigned depth)
{
    for (unsigned i = 0; i < 2 && depth > 0; i++) {
        if (fork() == 0) {
            spawn(depth - 1);
            _exit(0);
        }
    }
    shared(leaf_fork);
    while (wait(NULL) > 0) {
    }
    sink++;
}

APART void execs(char **argv, unsigned left)
{
    char number[16];
    shared(leaf_exec);
    if (left > 0) {
        snprintf(number, sizeof number, "%u", left - 1);
        execl(argv[0], argv[0], "execs", number, (char *)NULL);
        exit(1);
    }
    sink++;
}

APART void shortly(void)
{
    shared(leaf_short);
    sink++;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "short";
    unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    if (strcmp(what, "threads") == 0) {
        threads(n);
    } else if (strcmp(what, "forks") == 0) {
        spawn(n);
    } else if (strcmp(what, "execs") == 0) {
        execs(argv, n);
    } else {
        shortly();
    }
    sink++;
    return 0;
}
