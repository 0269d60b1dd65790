/* A SQLite file system layer that passes every call to the real one and fails on command. */
#include "tests/unit/store/faults.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the layer: every file of the real one, with methods that count down to a failure ------------------------------
 */

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real;
};

int faults_countdown = -1, faults_kind = SQLITE_IOERR_FSYNC, faults_happened, faults_operations;
void (*faults_cause)(void);

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct faulty_file *)f)->real;
}

static bool fails_now(void)
{
    faults_operations++;
    if (faults_countdown < 0 || faults_countdown-- > 0) {
        return false;
    }
    faults_happened++;
    if (faults_cause) {
        faults_cause();
    }
    return true;
}

static int f_close(sqlite3_file *f)
{
    int rc = real_of(f)->pMethods->xClose(real_of(f));
    free(real_of(f));
    return rc;
}
static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}
static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (!fails_now()) {
        return real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
    }
    real_of(f)->pMethods->xWrite(real_of(f), p, n / 2, at); /* torn */
    return faults_kind == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    const bool fails = faults_kind != SQLITE_FULL && fails_now(); /* a full disk can make files shorter */
    return fails ? SQLITE_IOERR_TRUNCATE : real_of(f)->pMethods->xTruncate(real_of(f), n);
}
static int f_sync(sqlite3_file *f, int flags)
{
    return fails_now() ? (faults_kind == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_FSYNC)
                       : real_of(f)->pMethods->xSync(real_of(f), flags);
}
static int f_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), n);
}
static int f_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}
static int f_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}
static int f_check(sqlite3_file *f, int *out)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}
static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}
static int f_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}
static int f_device(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}
static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
}
static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}
static void f_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}
static int f_shm_unmap(sqlite3_file *f, int remove_it)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove_it);
}

static const sqlite3_io_methods methods = {
    2,         f_close,  f_read,   f_write,   f_truncate, f_sync,        f_size,      f_lock, f_unlock, f_check,
    f_control, f_sector, f_device, f_shm_map, f_shm_lock, f_shm_barrier, f_shm_unmap, NULL,   NULL};
static sqlite3_vfs *real_vfs, faulty_vfs;

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    (void)vfs;
    struct faulty_file *file = (struct faulty_file *)f;
    file->base.pMethods = NULL;
    file->real = calloc(1, (size_t)real_vfs->szOsFile);
    int rc = real_vfs->xOpen(real_vfs, name, file->real, flags, out);
    if (rc == SQLITE_OK) {
        file->base.pMethods = &methods;
    } else {
        free(file->real);
    }
    return rc;
}

void faults_directory(char directory[64])
{
    snprintf(directory, 64, "%s/profd-store-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    cr_assert(mkdtemp(directory));
}

void faults_copy_file(const char *from, const char *to)
{
    struct stat st;
    const int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert(in >= 0 && out >= 0 && fstat(in, &st) == 0);
    for (off_t left = st.st_size; left > 0;) {
        const ssize_t n = sendfile(out, in, NULL, (size_t)left);
        cr_assert_gt(n, 0, "cannot copy %s to %s", from, to);
        left -= n;
    }
    close(in);
    close(out);
}

void faults_install(void)
{
    sqlite3_initialize();
    real_vfs = sqlite3_vfs_find(NULL);
    faulty_vfs = *real_vfs;
    faulty_vfs.zName = "faulty";
    faulty_vfs.szOsFile = sizeof(struct faulty_file);
    faulty_vfs.xOpen = vfs_open;
    cr_assert_eq(sqlite3_vfs_register(&faulty_vfs, 1), SQLITE_OK);
}
