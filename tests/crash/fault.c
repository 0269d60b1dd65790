/* Preloaded into profd by the campaign; see fault.h. Only what is done to the files of the database counts. */
#include "tests/crash/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static struct fault *fault;
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_fsync)(int), (*real_fdatasync)(int), (*real_ftruncate)(int, off_t);
static int (*real_fallocate)(int, int, off_t, off_t);
static int (*real_unlink)(const char *), (*real_rename)(const char *, const char *);

/* A function pointer out of an object pointer, which C itself does not offer. */
#define FIND(name)                                                                                                     \
    do {                                                                                                               \
        void *symbol = dlsym(RTLD_NEXT, #name);                                                                        \
        memcpy(&real_##name, &symbol, sizeof symbol);                                                                  \
    } while (0)

/* Children touch no database, and one may make hardly any system call. */
static void fault_forget(void)
{
    fault = NULL;
}

__attribute__((constructor)) static void fault_open(void)
{
    const char *path = getenv("PROFD_FAULT");
    int fd;

    FIND(pwrite);
    FIND(write);
    FIND(fsync);
    FIND(fdatasync);
    FIND(ftruncate);
    FIND(fallocate);
    FIND(unlink);
    FIND(rename);
    fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    fault = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (fault == MAP_FAILED) {
        fault = NULL;
    }
    pthread_atfork(NULL, NULL, fault_forget);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The base name of a database's file, or NULL. */
static const char *name_of(int fd, char path[4096])
{
    char link[64];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, 4095);
    if (n <= 0) {
        return NULL;
    }
    path[n] = 0;
    return strncmp(base_name(path), "profd.db", 8) ? NULL : base_name(path);
}

/* Counts one operation and says what to do with it. */
static enum fault_action judge(enum fault_kind kind, const char *doing, const char *name)
{
    const uint32_t action = fault ? fault->action : FAULT_NONE;
    uint64_t number;

    if (!name || !fault || !(fault->kinds & kind)) {
        return FAULT_NONE;
    }
    number = ++fault->operations;
    if (fault->hits) {
        fault->after++;
    }
    if (action == FAULT_LIE) {
        return FAULT_LIE;
    }
    if (action == FAULT_NONE || number < fault->at ||
        (number > fault->at && action != FAULT_ON && action != FAULT_TEAR)) {
        return FAULT_NONE;
    }
    if (!fault->hits++) {
        snprintf(fault->last, sizeof fault->last, "%s %s", doing, name);
    }
    if (action == FAULT_KILL || (action == FAULT_KILL_TORN && kind == FAULT_NAME)) {
        kill(getpid(), SIGKILL);
    }
    return (enum fault_action)(number > fault->at ? FAULT_ON : action);
}

/* The error of a failing operation; 0: it is to be done. */
static int error_of(enum fault_action action)
{
    switch (action) {
    case FAULT_ONCE:
    case FAULT_ON:
    case FAULT_TEAR:
        return (int)fault->error;
    case FAULT_INTERRUPT:
        return EINTR;
    default:
        return 0;
    }
}

static ssize_t fail(enum fault_action action)
{
    errno = error_of(action);
    return -1;
}

/* What of a write of n bytes is done; the rest is not. */
static size_t part_of(enum fault_action action, size_t n)
{
    return action == FAULT_TEAR || action == FAULT_SHORT || action == FAULT_KILL_TORN ? n / 2 : n;
}

EXPORT ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    char path[4096];
    const enum fault_action action = judge(FAULT_WRITE, "write", fault ? name_of(fd, path) : NULL);
    ssize_t written;

    if (action == FAULT_ONCE || action == FAULT_ON || action == FAULT_INTERRUPT) {
        return fail(action);
    }
    written = real_pwrite(fd, bytes, part_of(action, n), at);
    if (action == FAULT_KILL_TORN) {
        kill(getpid(), SIGKILL);
    }
    return action == FAULT_TEAR ? fail(action) : written;
}

EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    return pwrite(fd, bytes, n, at);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t n)
{
    char path[4096];
    const enum fault_action action = judge(FAULT_WRITE, "write", fault ? name_of(fd, path) : NULL);
    ssize_t written;

    if (action == FAULT_ONCE || action == FAULT_ON || action == FAULT_INTERRUPT) {
        return fail(action);
    }
    written = real_write(fd, bytes, part_of(action, n));
    if (action == FAULT_KILL_TORN) {
        kill(getpid(), SIGKILL);
    }
    return action == FAULT_TEAR ? fail(action) : written;
}

static int sync_file(int fd, int (*real)(int))
{
    char path[4096];
    const char *name = fault ? name_of(fd, path) : NULL;
    struct stat st;
    enum fault_action action;
    int rc;

    if (fault && !name && !fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        action = judge(FAULT_DIRECTORY, "sync of", "the directory");
    } else {
        action = judge(FAULT_SYNC, "sync of", name);
    }
    if (action == FAULT_LIE && strstr(name ? name : "", "-wal")) {
        fault->hits++;
        return 0;
    }
    if (error_of(action)) {
        return (int)fail(action);
    }
    rc = real(fd);
    if (action == FAULT_KILL_TORN) {
        kill(getpid(), SIGKILL);
    }
    return rc;
}

EXPORT int fsync(int fd)
{
    return sync_file(fd, real_fsync);
}

EXPORT int fdatasync(int fd)
{
    return sync_file(fd, real_fdatasync);
}

EXPORT int ftruncate(int fd, off_t size)
{
    char path[4096];
    const enum fault_action action = judge(FAULT_TRUNCATE, "truncation of", fault ? name_of(fd, path) : NULL);

    if (error_of(action)) {
        return (int)fail(action);
    }
    return real_ftruncate(fd, size);
}

EXPORT int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

EXPORT int fallocate(int fd, int mode, off_t at, off_t size)
{
    char path[4096];
    const enum fault_action action = judge(FAULT_TRUNCATE, "allocation in", fault ? name_of(fd, path) : NULL);

    if (error_of(action)) {
        return (int)fail(action);
    }
    return real_fallocate(fd, mode, at, size);
}

static const char *name_in(const char *path)
{
    return strncmp(base_name(path), "profd.db", 8) ? NULL : base_name(path);
}

EXPORT int unlink(const char *path)
{
    const enum fault_action action = judge(FAULT_NAME, "removal of", name_in(path));

    if (error_of(action)) {
        return (int)fail(action);
    }
    return real_unlink(path);
}

EXPORT int rename(const char *from, const char *to)
{
    const enum fault_action action = judge(FAULT_NAME, "renaming of", name_in(from));

    if (error_of(action)) {
        return (int)fail(action);
    }
    return real_rename(from, to);
}
