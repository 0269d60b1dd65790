/* The program's own count of its calls, in a file that outlives it: $TRUTH.PID, one row of counters for each thread
 * slot. Each counted function begins with COUNT(name). The functions are known by their place in TRUTH_NAMES. */
#ifndef TRUTH_H
#define TRUTH_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    T_leaf,
    T_middle,
    T_outer,
    T_handler,
    T_worker,
    T_compare,
    T_child,
    T_plugin_a,
    T_plugin_b,
    T_late,
    TRUTH_FUNCTIONS = 16
};
#define TRUTH_THREADS 2048

extern uint64_t (*truth)[TRUTH_FUNCTIONS];
extern __thread unsigned truth_slot;

/* One instruction: exact under signals. */
#if defined __x86_64__
#define COUNT(name) __asm__ volatile("incq %0" : "+m"(truth[truth_slot][T_##name]))
#else
#define COUNT(name) __atomic_fetch_add(&truth[truth_slot][T_##name], 1, __ATOMIC_RELAXED)
#endif
#define QUIET __attribute__((no_instrument_function))

/* A file of this process's own; a fork's child calls it again. */
static inline QUIET void truth_open(void)
{
    char path[512];
    const char *base = getenv("TRUTH");
    snprintf(path, sizeof path, "%s.%d", base ? base : "/dev/null", (int)getpid());
    int fd = base ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    size_t size = TRUTH_THREADS * sizeof *truth;
    if (fd >= 0 && ftruncate(fd, (off_t)size) == 0) {
        truth = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    } else {
        truth = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
}

#endif
