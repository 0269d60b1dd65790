#include "admin/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/store_verify.h"

#define DATABASE "profd.db"
#define PART DATABASE ".restore-part" /* not yet judged */
#define READY DATABASE ".restored"
#define COPY_BYTES (1u << 20)
#define NAME_MAX_BYTES 128

static enum profd_status restore_fail(enum profd_status status, const char *what, const char *path,
                                      struct profd_error *e)
{
    const int why = errno;

    if (why == ENOSPC || why == EDQUOT)
        status = PROFD_FULL;
    return profd_error_set(e, status, "cannot %s %s: %s", what, path, strerror(why));
}

static void restore_remove_part(int dir)
{
    unlinkat(dir, PART, 0);
    unlinkat(dir, PART "-wal", 0);
    unlinkat(dir, PART "-shm", 0);
    unlinkat(dir, PART "-journal", 0);
}

/* A copy of a living database lacks what is in its log. */
static enum profd_status restore_judge_source(const char *file, int fd, struct profd_error *e)
{
    char log[PATH_MAX];
    struct stat st, log_st;

    if (fstat(fd, &st))
        return restore_fail(PROFD_NO_INPUT, "look at", file, e);
    if (!S_ISREG(st.st_mode))
        return profd_error_set(e, PROFD_REFUSED, "%s is not a file", file);
    if (snprintf(log, sizeof log, "%s-wal", file) >= (int)sizeof log)
        return profd_error_set(e, PROFD_TOO_LARGE, "the path %.100s… has more than %d bytes", file, PATH_MAX - 5);
    if (!stat(log, &log_st) && log_st.st_size > 0)
        return profd_error_set(e, PROFD_REFUSED,
                               "%s has a write-ahead log beside it (%s): it is no backup, but a database in use", file,
                               log);
    return PROFD_OK;
}

static enum profd_status restore_write(int fd, const char *bytes, size_t n, struct profd_error *e)
{
    while (n) {
        const ssize_t put = write(fd, bytes, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return restore_fail(PROFD_IO, "write", PART, e);
        bytes += put;
        n -= (size_t)put;
    }
    return PROFD_OK;
}

static enum profd_status restore_copy_bytes(const char *file, int from, int to, struct profd_error *e)
{
    char *block = malloc(COPY_BYTES);
    enum profd_status status = PROFD_OK;
    ssize_t got = 1;

    if (!block)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to copy %s", file);
    while (!status && got > 0) {
        got = read(from, block, COPY_BYTES);
        if (got > 0)
            status = restore_write(to, block, (size_t)got, e);
        else if (got < 0 && errno == EINTR)
            got = 1;
        else if (got < 0)
            status = restore_fail(PROFD_IO, "read", file, e);
    }
    free(block);
    return status;
}

/* The files belong to whom the directory belongs to: the daemon may be another user than who restores. */
static enum profd_status restore_give(int dir, int fd, struct profd_error *e)
{
    struct stat st;

    if (fstat(dir, &st))
        return restore_fail(PROFD_IO, "look at", "the state directory", e);
    if (!geteuid() && st.st_uid && fchown(fd, st.st_uid, st.st_gid))
        return restore_fail(PROFD_CANT_CREATE, "give away", PART, e);
    return PROFD_OK;
}

static enum profd_status restore_copy(int dir, const char *file, struct profd_error *e)
{
    enum profd_status status;
    int to, from = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (from < 0)
        return restore_fail(PROFD_NO_INPUT, "read", file, e);
    status = restore_judge_source(file, from, e);
    if (status) {
        close(from);
        return status;
    }
    restore_remove_part(dir);
    to = openat(dir, PART, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (to < 0)
        status = restore_fail(PROFD_CANT_CREATE, "make", PART, e);
    if (!status)
        status = restore_give(dir, to, e);
    if (!status)
        status = restore_copy_bytes(file, from, to, e);
    if (to >= 0 && close(to) && !status)
        status = restore_fail(PROFD_IO, "write", PART, e);
    close(from);
    return status;
}

struct restore_faults {
    void (*complain)(void *context, const char *sentence);
    void *context;
    uint64_t count;
};

static void restore_on_fault(void *context, const char *sentence)
{
    struct restore_faults *f = context;

    f->count++;
    f->complain(f->context, sentence);
}

/* All rounds of the store's own verification, on the open copy. */
static enum profd_status restore_verify(struct store *store, struct restore_faults *f, struct profd_error *e)
{
    struct store_cursor cursor = {.done = false};
    enum profd_status status = PROFD_OK;
    uint64_t uploads;

    while (!status && !cursor.done)
        status = store_verify(store, &cursor, restore_on_fault, f, &uploads, e);
    return status;
}

/* Opened for writing, so that an older schema is migrated now and not while somebody waits for the daemon. */
static enum profd_status restore_judge(const char *path, const char *file, const struct restore_engine *engine,
                                       struct restore_faults *f, struct profd_error *e)
{
    struct store *store = NULL;
    enum profd_status status = engine->open(path, &store, e);

    if (!status)
        status = engine->check(store, restore_on_fault, f, e);
    if (!status && !f->count)
        status = restore_verify(store, f, e);
    store_close(store);
    if (status)
        return profd_error_wrap(e, status, "%s is not restored", file);
    if (f->count)
        return profd_error_set(e, PROFD_DAMAGED, "%s is not restored: %llu faults were found in it", file,
                               (unsigned long long)f->count);
    return PROFD_OK;
}

static enum profd_status restore_sync(int dir, const char *name, struct profd_error *e)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    enum profd_status status = fd < 0 || fsync(fd) ? restore_fail(PROFD_IO, "sync", name, e) : PROFD_OK;

    if (fd >= 0)
        close(fd);
    return status;
}

/* What closing the copy should have removed must not turn up beside the new database. */
static enum profd_status restore_promote(int dir, struct profd_error *e)
{
    struct stat st;
    enum profd_status status;

    if (!fstatat(dir, PART "-wal", &st, AT_SYMLINK_NOFOLLOW) && st.st_size > 0)
        return profd_error_set(e, PROFD_IO, "the copy could not be closed: its log was not written back");
    status = restore_sync(dir, PART, e);
    if (!status && renameat(dir, PART, dir, READY))
        status = restore_fail(PROFD_CANT_CREATE, "rename", PART, e);
    if (!status && fsync(dir))
        status = restore_fail(PROFD_IO, "sync", "the state directory", e);
    return status;
}

static enum profd_status restore_open_dir(const char *state_dir, int *dir, struct profd_error *e)
{
    *dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *dir < 0 ? restore_fail(PROFD_CANT_CREATE, "open", state_dir, e) : PROFD_OK;
}

enum profd_status restore_prepare(const char *state_dir, const char *file, const struct restore_engine *engine,
                                  void (*complain)(void *context, const char *sentence), void *context,
                                  struct profd_error *e)
{
    struct restore_faults faults = {.complain = complain, .context = context};
    char path[PATH_MAX];
    enum profd_status status;
    int dir;

    if (snprintf(path, sizeof path, "%s/" PART, state_dir) >= (int)sizeof path)
        return profd_error_set(e, PROFD_TOO_LARGE, "the path of the state directory is too long");
    status = restore_open_dir(state_dir, &dir, e);
    if (status)
        return status;
    status = restore_copy(dir, file, e);
    if (!status)
        status = restore_judge(path, file, engine, &faults, e);
    if (!status)
        status = restore_promote(dir, e);
    restore_remove_part(dir);
    close(dir);
    return status;
}

/* A name that nothing has yet: profd.db.before-restore-20261121T185436Z, with .2, .3, … behind it if need be. */
static void restore_name(int dir, time_t when, char name[NAME_MAX_BYTES])
{
    char stamp[32] = "";
    struct stat st;
    struct tm t;

    if (gmtime_r(&when, &t))
        strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &t);
    snprintf(name, NAME_MAX_BYTES, DATABASE ".before-restore-%s", stamp);
    for (unsigned i = 2; !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && i < 1000; i++)
        snprintf(name, NAME_MAX_BYTES, DATABASE ".before-restore-%s.%u", stamp, i);
}

/* The database first: should we end between the two, a log without its database is refused by whoever opens it, a
 * database without its log would not be. */
static enum profd_status restore_set_aside(int dir, const char *name, struct profd_error *e)
{
    char log[NAME_MAX_BYTES + 8];

    snprintf(log, sizeof log, "%s-wal", name);
    if (renameat(dir, DATABASE, dir, name) && errno != ENOENT)
        return restore_fail(PROFD_CANT_CREATE, "rename", DATABASE, e);
    if (renameat(dir, DATABASE "-wal", dir, log) && errno != ENOENT)
        return restore_fail(PROFD_CANT_CREATE, "rename", DATABASE "-wal", e);
    if (unlinkat(dir, DATABASE "-shm", 0) && errno != ENOENT)
        return restore_fail(PROFD_CANT_CREATE, "remove", DATABASE "-shm", e);
    return PROFD_OK;
}

enum profd_status restore_finish(const char *state_dir, bool *restored, char *kept, size_t size, struct profd_error *e)
{
    char name[NAME_MAX_BYTES] = "";
    enum profd_status status;
    struct stat ready, old;
    bool had;
    int dir;

    status = restore_open_dir(state_dir, &dir, e);
    if (status)
        return status;
    if (fstatat(dir, READY, &ready, AT_SYMLINK_NOFOLLOW)) {
        close(dir);
        *restored = false;
        return PROFD_OK;
    }
    had = !fstatat(dir, DATABASE, &old, AT_SYMLINK_NOFOLLOW);
    restore_name(dir, ready.st_mtime, name);
    status = restore_set_aside(dir, name, e);
    if (!status && fsync(dir))
        status = restore_fail(PROFD_IO, "sync", "the state directory", e);
    if (!status && renameat(dir, READY, dir, DATABASE))
        status = restore_fail(PROFD_CANT_CREATE, "rename", READY, e);
    if (!status && fsync(dir))
        status = restore_fail(PROFD_IO, "sync", "the state directory", e);
    close(dir);
    if (status)
        return status;
    *restored = true;
    snprintf(kept, size, "%s", had ? name : "");
    return PROFD_OK;
}
