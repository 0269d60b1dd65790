/* truth MODE [N [ROUNDS]]: calls functions in one way or another, and counts them itself. */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

uint64_t (*truth)[TRUTH_FUNCTIONS];
__thread unsigned truth_slot;
static long rounds = 100000;
static char *program;

__attribute__((noinline)) void leaf(void)
{
    COUNT(leaf);
}

__attribute__((noinline)) void middle(void)
{
    COUNT(middle);
    leaf();
    leaf();
    __asm__ volatile("");
}

__attribute__((noinline)) void outer(void)
{
    COUNT(outer);
    middle();
    leaf();
    __asm__ volatile("");
}

__attribute__((noinline)) void handler(int number)
{
    COUNT(handler);
    (void)number;
    leaf();
    __asm__ volatile("");
}

__attribute__((noinline)) int compare(const void *a, const void *b)
{
    COUNT(compare);
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) void *worker(void *slot)
{
    truth_slot = (unsigned)(uintptr_t)slot;
    COUNT(worker);
    for (long i = 0; i < rounds; i++) {
        outer();
    }
    return NULL;
}

static QUIET void threads_run(unsigned n)
{
    pthread_t ids[64];
    for (unsigned i = 0; i < n && i < 64; i++) {
        pthread_create(&ids[i], NULL, worker, (void *)(uintptr_t)(i + 1));
    }
    for (unsigned i = 0; i < n && i < 64; i++) {
        pthread_join(ids[i], NULL);
    }
}

static QUIET void churn(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, worker, (void *)(uintptr_t)(i % (TRUTH_THREADS - 1) + 1)) == 0) {
            pthread_join(id, NULL);
        }
    }
}

static QUIET void storm(void)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 50}, {0, 50}};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (long i = 0; i < rounds; i++) {
        outer();
        if (i % 64 == 0) {
            raise(SIGALRM);
        }
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
}

static QUIET void forks(unsigned depth)
{
    for (unsigned i = 0; i < 2 && depth; i++) {
        if (fork() == 0) {
            truth_open();
            for (long j = 0; j < rounds * (i + 1); j++) {
                outer();
            }
            forks(depth - 1);
            _exit(0);
        }
    }
    for (long j = 0; j < rounds; j++) {
        middle();
    }
    while (wait(NULL) > 0) {
    }
}

static QUIET void plugins(unsigned n)
{
    static const char *const names[] = {"plugin_a", "plugin_b"};
    for (unsigned i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/lib%s.so", getenv("PLUGINS"), names[i % 2]);
        void *handle = dlopen(path, RTLD_NOW);
        void (*run)(long) = handle ? (void (*)(long))dlsym(handle, names[i % 2]) : NULL;
        if (!run) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        for (long j = 0; j < rounds; j++) {
            run(1);
        }
        dlclose(handle);
    }
}

/* Closes everything, and opens files of its own on the same numbers. Later none may hold a byte that is not the
 * program's. */
static QUIET int close_all(void)
{
    int mine[1024], count = 0, bad = 0;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 3; fd < (int)limit.rlim_cur && fd < 65536; fd++) {
        close(fd);
    }
    for (int i = 0; i < 20; i++) {
        mine[count++] = open(".", O_TMPFILE | O_RDWR, 0600);
    }
    for (int fd = 1000; fd < 1024 && fd < (int)limit.rlim_cur; fd++) {
        mine[count++] = dup2(open(".", O_TMPFILE | O_RDWR, 0600), fd);
    }
    struct timespec begin, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    do {
        for (int i = 0; i < 1000; i++) {
            outer();
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec - begin.tv_sec < 2);
    if (fork() == 0) { /* its collector may close what it inherited: only what is its own */
        for (int i = 0; i < count; i++) {
            bad += fcntl(mine[i], F_GETFD) < 0;
        }
        _exit(bad != 0);
    }
    int status;
    wait(&status);
    bad += status != 0;
    for (int i = 0; i < count; i++) {
        bad += lseek(mine[i], 0, SEEK_END) != 0;
    }
    return bad;
}

static QUIET void *forever(void *slot)
{
    truth_slot = (unsigned)(uintptr_t)slot;
    for (;;) {
        outer();
    }
}

/* Three timers' worth of CPU in a function that never calls anything. */
__attribute__((noinline)) void burn(double seconds)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (volatile int i = 0; i < 100000; i++) {
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
}

static QUIET void *burner(void *seconds)
{
    burn((double)(uintptr_t)seconds / 100);
    return NULL;
}

static QUIET int life(const char *mode, unsigned n)
{
    if (strcmp(mode, "threads") == 0) {
        threads_run(n);
    } else if (strcmp(mode, "churn") == 0) {
        churn(n);
    } else if (strcmp(mode, "storm") == 0) {
        storm();
    } else if (strcmp(mode, "forks") == 0) {
        forks(n);
    } else if (strcmp(mode, "plugins") == 0) {
        plugins(n);
    } else if (strcmp(mode, "closed") == 0) {
        return close_all();
    } else if (strcmp(mode, "qsort") == 0) {
        int numbers[5000];
        for (unsigned i = 0; i < 5000; i++) {
            numbers[i] = (int)(i * 7919 % 5003);
        }
        qsort(numbers, 5000, sizeof numbers[0], compare);
    } else if (strcmp(mode, "forever") == 0) {
        pthread_t id;
        for (unsigned i = 1; i < n; i++) {
            pthread_create(&id, NULL, forever, (void *)(uintptr_t)i);
        }
        puts("running"), fflush(stdout);
        forever(NULL);
    } else if (strcmp(mode, "burn") == 0) {
        pthread_t ids[16];
        for (unsigned i = 0; i < n && i < 16; i++) {
            pthread_create(&ids[i], NULL, burner, (void *)(uintptr_t)(40 * (i + 1)));
        }
        burn((double)rounds / 100);
        for (unsigned i = 0; i < n && i < 16; i++) {
            pthread_join(ids[i], NULL);
        }
    } else {
        return -1;
    }
    return 0;
}

static QUIET void end(const char *mode)
{
    for (long i = 0; i < rounds; i++) {
        outer();
    }
    if (strcmp(mode, "_exit") == 0) {
        _exit(3);
    }
    if (strcmp(mode, "quick_exit") == 0) {
        quick_exit(3);
    }
    if (strcmp(mode, "abort") == 0) {
        abort();
    }
    if (strcmp(mode, "segv") == 0) {
        *(volatile int *)8 = 1;
    }
    if (strcmp(mode, "term") == 0) {
        raise(SIGTERM);
    }
    if (strcmp(mode, "kill") == 0) {
        raise(SIGKILL);
    }
    if (strcmp(mode, "exec") == 0) {
        execl("/bin/true", "true", (char *)NULL);
    }
    if (strcmp(mode, "vfork") == 0 && vfork() == 0) {
        leaf();
        _exit(0);
    }
}

int main(int argc, char **argv)
{
    program = argv[0];
    truth_open();
    const char *mode = argc > 1 ? argv[1] : "threads";
    unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    rounds = argc > 3 ? atol(argv[3]) : rounds;
    int status = life(mode, n);
    if (status < 0) {
        end(mode);
    }
    return status > 0;
}
