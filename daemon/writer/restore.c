#include "writer/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "writer/aside.h"
#include "proto/whole.h"

#define DATABASE ASIDE_DATABASE
#define PART DATABASE ".restore-part" /* not yet checked */
#define READY DATABASE ".restored"
#define COPY_BYTES (1u << 20)

static enum profd_status restore_fail(enum profd_status status, const char *what, const char *path,
                                      struct profd_error *e)
{
    const int why = errno;

    if (why == ENOSPC || why == EDQUOT) {
        status = PROFD_FULL;
    }
    return profd_error_set(e, status, "cannot %s %s: %s", what, path, strerror(why));
}

static void restore_remove_part(int dir)
{
    unlinkat(dir, PART, 0);
    unlinkat(dir, PART "-wal", 0);
    unlinkat(dir, PART "-shm", 0);
    unlinkat(dir, PART "-journal", 0);
    unlinkat(dir, PART "-sealed", 0);
    unlinkat(dir, PART "-sealed-journal", 0);
}

/* Refuses the given file. Damage is that of the file, not of the store. */
static enum profd_status restore_refuse(enum profd_status status, const char *file, struct profd_error *e)
{
    return profd_error_wrap(e, status == PROFD_DAMAGED ? PROFD_REFUSED : status, "%s is not restored", file);
}

/* Checks that the file is a backup, and not a database in use, whose log a copy would lack. */
static enum profd_status restore_judge_source(const char *file, int fd, const struct restore_engine *engine,
                                              off_t *size, struct profd_error *e)
{
    char log[PATH_MAX];
    struct stat st, log_st;

    if (fstat(fd, &st)) {
        return restore_fail(PROFD_NO_INPUT, "look at", file, e);
    }
    FAIL_IF(!S_ISREG(st.st_mode), e, PROFD_REFUSED, "%s is not a file", file);
    /* the engine would make a new database of it */
    FAIL_IF(st.st_size == 0, e, PROFD_REFUSED, "%s is empty, not a backup", file);
    FAIL_IF(snprintf(log, sizeof log, "%s-wal", file) >= (int)sizeof log, e, PROFD_TOO_LARGE,
            "the path %.100s… has more than %d bytes", file, PATH_MAX - 5);
    FAIL_IF(!stat(log, &log_st) && log_st.st_size > 0, e, PROFD_REFUSED,
            "%s has a write-ahead log (%s): it is a database in use, not a backup", file, log);
    *size = st.st_size;
    const enum profd_status status = engine->judge(fd, file, (uint64_t)st.st_size, e);

    return status ? restore_refuse(status, file, e) : PROFD_OK;
}

/* Copies the bytes from at to end. */
static enum profd_status restore_copy_range(const char *file, int from, int to, off_t at, off_t end, char *block,
                                            struct profd_error *e)
{
    while (at < end) {
        const size_t n = end - at < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
        const ssize_t got = whole_read(from, block, n, (uint64_t)at);
        if (got < (ssize_t)n) {
            errno = got < 0 ? errno : EIO; /* it became shorter */
            return restore_fail(PROFD_IO, "read", file, e);
        }
        for (ssize_t done = 0, put; done < got; done += put < 0 ? 0 : put) {
            put = pwrite(to, block + done, (size_t)(got - done), at + done);
            if (put < 0 && errno != EINTR) {
                return restore_fail(PROFD_IO, "write", PART, e);
            }
        }
        at += got;
    }
    return PROFD_OK;
}

/* Copies the file, without its holes. */
static enum profd_status restore_copy_bytes(const char *file, int from, int to, off_t size, struct profd_error *e)
{
    char *block = malloc(COPY_BYTES);
    enum profd_status status = PROFD_OK;
    off_t at = 0, end;

    TRY(block ? PROFD_OK : profd_no_memory(e));
    if (ftruncate(to, size)) {
        status = restore_fail(PROFD_IO, "write", PART, e);
    }
    while (!status && at < size && (at = lseek(from, at, SEEK_DATA)) >= 0) {
        end = lseek(from, at, SEEK_HOLE);
        end = end < 0 || end > size ? size : end;
        status = restore_copy_range(file, from, to, at, end, block, e);
        at = end;
    }
    if (!status && at < 0 && errno != ENXIO) { /* ENXIO: only a hole is left */
        status = restore_fail(PROFD_IO, "read", file, e);
    }
    free(block);
    return status;
}

static enum profd_status restore_copy(int dir, const char *file, const struct restore_engine *engine,
                                      struct profd_error *e)
{
    struct stat st;
    off_t size = 0;
    int to, from = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (from < 0) {
        return restore_fail(PROFD_NO_INPUT, "read", file, e);
    }
    enum profd_status status = restore_judge_source(file, from, engine, &size, e);
    if (status) {
        close(from);
        return status;
    }
    restore_remove_part(dir);
    to = openat(dir, PART, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (to < 0) {
        status = restore_fail(PROFD_CANT_CREATE, "make", PART, e);
    }
    /* The copy gets the owner of the directory: the user that restores may not be the daemon's. */
    if (!status && fstat(dir, &st)) {
        status = restore_fail(PROFD_IO, "look at", "the state directory", e);
    }
    if (!status && !geteuid() && st.st_uid && fchown(to, st.st_uid, st.st_gid)) {
        status = restore_fail(PROFD_CANT_CREATE, "give away", PART, e);
    }
    status = status ? status : restore_copy_bytes(file, from, to, size, e);
    if (to >= 0 && close(to) && !status) {
        status = restore_fail(PROFD_IO, "write", PART, e);
    }
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

/* Checks the copy, and makes it a database of its own. It is opened for writing, so that an older schema is converted
 * now and not when the daemon starts. */
static enum profd_status restore_judge(const char *path, const char *file, const struct restore_engine *engine,
                                       struct restore_faults *f, struct profd_error *e)
{
    struct store_cursor cursor = {.done = false};
    struct store *store = NULL;
    uint64_t uploads;
    enum profd_status status = engine->seal(path, e);

    status = status ? status : engine->open(path, &store, e);
    status = status ? status : engine->check(store, restore_on_fault, f, e);
    const bool sound = !status && !f->count;
    while (sound && !status && !cursor.done) { /* all rounds of the store's own verification */
        status = store_verify(store, &cursor, restore_on_fault, f, &uploads, e);
    }
    if (!status && !f->count) {
        status = engine->renew(store, e);
    }
    store_close(store);
    if (status) {
        return restore_refuse(status, file, e);
    }
    FAIL_IF(f->count, e, PROFD_REFUSED, "%s is not restored: it has %llu faults", file, (unsigned long long)f->count);
    return PROFD_OK;
}

/* Renames the checked copy, durably. Its log must be gone: it would belong to the new database. */
static enum profd_status restore_promote(int dir, struct profd_error *e)
{
    struct stat st;

    FAIL_IF(!fstatat(dir, PART "-wal", &st, AT_SYMLINK_NOFOLLOW) && st.st_size > 0, e, PROFD_IO,
            "cannot close the copy: its log was not written back");
    int fd = openat(dir, PART, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    enum profd_status status = fd < 0 || fsync(fd) ? restore_fail(PROFD_IO, "sync", PART, e) : PROFD_OK;
    if (fd >= 0) {
        close(fd);
    }
    if (!status && renameat(dir, PART, dir, READY)) {
        status = restore_fail(PROFD_CANT_CREATE, "rename", PART, e);
    }
    if (!status && fsync(dir)) {
        status = restore_fail(PROFD_IO, "sync", "the state directory", e);
    }
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
    int dir;

    FAIL_IF(snprintf(path, sizeof path, "%s/" PART, state_dir) >= (int)sizeof path, e, PROFD_TOO_LARGE,
            "the path of the state directory is too long");
    TRY(restore_open_dir(state_dir, &dir, e));
    enum profd_status status = restore_copy(dir, file, engine, e);
    status = status ? status : restore_judge(path, file, engine, &faults, e);
    status = status ? status : restore_promote(dir, e);
    restore_remove_part(dir);
    close(dir);
    return status;
}

enum profd_status restore_finish(const char *state_dir, bool *restored, char *kept, size_t size, struct profd_error *e)
{
    char name[ASIDE_NAME_SIZE] = "";
    struct stat ready, old;
    int dir;

    TRY(restore_open_dir(state_dir, &dir, e));
    if (fstatat(dir, READY, &ready, AT_SYMLINK_NOFOLLOW)) {
        close(dir);
        *restored = false;
        return PROFD_OK;
    }
    bool had = !fstatat(dir, DATABASE, &old, AT_SYMLINK_NOFOLLOW);
    enum profd_status status = aside_move(dir, "before-restore", ready.st_mtime, name, e);
    if (!status && renameat(dir, READY, dir, DATABASE)) {
        status = restore_fail(PROFD_CANT_CREATE, "rename", READY, e);
    }
    if (!status && fsync(dir)) {
        status = restore_fail(PROFD_IO, "sync", "the state directory", e);
    }
    close(dir);
    if (status) {
        return status;
    }
    *restored = true;
    snprintf(kept, size, "%s", had ? name : "");
    return PROFD_OK;
}
