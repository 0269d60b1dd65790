/* Disks that fail: a SQLite file system layer that lies on command, and a real one that is full. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "store/store.h"

/* --- the layer: every file of the real one, with methods that count down to a failure ------------------------------ */

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real;
};

static int countdown = -1; /* writes, syncs and truncations left until one fails; −1: none */
static int failure = SQLITE_IOERR_FSYNC;
static int happened, operations;

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct faulty_file *)f)->real;
}

static bool fails_now(void)
{
    operations++;
    if (countdown < 0 || countdown-- > 0)
        return false;
    happened++;
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
    if (!fails_now())
        return real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
    real_of(f)->pMethods->xWrite(real_of(f), p, n / 2, at); /* torn */
    return failure == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return fails_now() ? SQLITE_IOERR_TRUNCATE : real_of(f)->pMethods->xTruncate(real_of(f), n);
}
static int f_sync(sqlite3_file *f, int flags)
{
    return fails_now() ? (failure == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_FSYNC)
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

static const sqlite3_io_methods methods = {2,         f_close,   f_read,  f_write,  f_truncate, f_sync,     f_size,
                                           f_lock,    f_unlock,  f_check, f_control, f_sector,  f_device,   f_shm_map,
                                           f_shm_lock, f_shm_barrier, f_shm_unmap, NULL, NULL};
static sqlite3_vfs *real_vfs, faulty_vfs;

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    (void)vfs;
    struct faulty_file *file = (struct faulty_file *)f;
    file->base.pMethods = NULL;
    file->real = calloc(1, (size_t)real_vfs->szOsFile);
    int rc = real_vfs->xOpen(real_vfs, name, file->real, flags, out);
    if (rc == SQLITE_OK)
        file->base.pMethods = &methods;
    else
        free(file->real);
    return rc;
}

static void install_layer(void)
{
    sqlite3_initialize();
    real_vfs = sqlite3_vfs_find(NULL);
    faulty_vfs = *real_vfs;
    faulty_vfs.zName = "faulty";
    faulty_vfs.szOsFile = sizeof(struct faulty_file);
    faulty_vfs.xOpen = vfs_open;
    cr_assert_eq(sqlite3_vfs_register(&faulty_vfs, 1), SQLITE_OK);
}

/* --- what is stored and what must be there afterwards ------------------------------------------------------------------ */

static char directory[64], path[96];
static struct profd_error e;

static void enter(void)
{
    strcpy(directory, "/tmp/profd-fault-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
}

static void wipe(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".new", ".new-journal"};
    char name[128];
    for (size_t i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static void leave(void)
{
    wipe();
    rmdir(directory);
}

TestSuite(store_faults, .init = enter, .fini = leave);

enum { MOST = 400 };
static enum profd_status put_one(struct store *s, uint32_t sequence, size_t size, enum store_outcome *outcome)
{
    static uint8_t counts[100000];
    struct store_build b = {.id = {.text = "abcd"}, .name = "n"};
    struct store_upload u = {.sequence = sequence, .build_count = 1, .builds = &b, .counts = counts, .counts_size = size,
                             .start = sequence, .end = sequence, .ticks = 1};
    u.sender[0] = 1;
    return store_put_uploads(s, &u, 1, outcome, &e);
}

static enum profd_status note_row(void *context, const struct store_row *row, struct profd_error *why)
{
    (void)why;
    int *seen = context;
    cr_assert(row->start > 0 && row->start < MOST);
    seen[row->start]++;
    return PROFD_OK;
}

/* Everything acknowledged is there once; everything else at most once. The sums agree. */
static void check_contents(struct store *s, const bool *acked)
{
    int seen[MOST] = {0};
    uint64_t total = 0;
    struct store_totals t;
    struct store_scope all = {.all = true};
    cr_assert_eq(store_each_upload(s, &all, &(struct store_filter){.build_id = "abcd"}, note_row, seen, &e), PROFD_OK, "%s",
                 e.sentence);
    for (int i = 0; i < MOST; i++) {
        cr_assert_leq(seen[i], 1, "upload %d is there %d times", i, seen[i]);
        cr_assert(!acked[i] || seen[i] == 1, "upload %d was acknowledged and is lost", i);
        total += (uint64_t)seen[i];
    }
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
    cr_assert_eq(t.uploads, total);
    cr_assert_eq(t.ticks, total);
}

/* The n-th write, sync or truncation fails with an I/O error: nothing is written after it, reads go on, and the next start finds
 * all that was acknowledged. */
static bool run_with_fault(int n)
{
    struct store *s = NULL;
    bool acked[MOST] = {false};
    enum store_outcome outcome;
    countdown = n;
    happened = operations = 0;
    wipe();
    enum profd_status status = store_sqlite_open_writer(path, &s, &e);
    for (uint32_t i = 1; status == PROFD_OK && i <= 60; i++) {
        status = put_one(s, i, 100 + i * 700, &outcome);
        acked[i] = status == PROFD_OK;
    }
    bool hit = happened > 0;
    if (s && status != PROFD_OK) {
        cr_assert_eq(status, PROFD_IO, "fault %d: %s", n, e.sentence);
        cr_assert_eq(put_one(s, 70, 10, &outcome), PROFD_IO, "fault %d: it went on writing", n);
        cr_assert(strstr(e.sentence, "nothing is written any more"), "%s", e.sentence);
        int before = operations;
        struct store_totals t;
        cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK, "fault %d: reads go on: %s", n, e.sentence);
        store_close(s);
        cr_assert_eq(operations, before, "fault %d: closing wrote", n);
    } else {
        cr_assert(s || status == PROFD_IO || status == PROFD_CANT_CREATE, "fault %d: %d %s", n, status, e.sentence);
        store_close(s);
    }
    countdown = -1;
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "after fault %d: %s", n, e.sentence);
    check_contents(s, acked);
    for (uint32_t i = 1; i <= 60; i++) {
        cr_assert_eq(put_one(s, i, 100, &outcome), PROFD_OK);
        cr_assert(!acked[i] || outcome == STORE_DUPLICATE);
        acked[i] = true;
    }
    check_contents(s, acked);
    store_close(s);
    return hit;
}

Test(store_faults, every_failing_write_and_sync)
{
    install_layer();
    int n = 0, hits = 0;
    failure = SQLITE_IOERR_FSYNC;
    while (n < 5000 && run_with_fault(n)) {
        hits++;
        n += n < 150 ? 1 : 13; /* the creation and the first uploads wholly, then samples */
    }
    cr_assert_gt(hits, 150, "the layer was not asked");
}

/* No space: refused, retried, stored once. */
Test(store_faults, every_full_disk_recovers_by_itself)
{
    struct store *s = NULL;
    enum store_outcome outcome;
    install_layer();
    failure = SQLITE_FULL;
    int refusals = 0;
    bool acked[MOST] = {false};
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK);
    for (uint32_t i = 1; i < MOST; i++) {
        countdown = (int)(i % 60);
        enum profd_status status = put_one(s, i, 100 + i * 200, &outcome);
        countdown = -1;
        if (status != PROFD_OK) {
            cr_assert_eq(status, PROFD_FULL, "%u: %s", i, e.sentence);
            cr_assert(strstr(e.sentence, "no space"), "%s", e.sentence);
            refusals++;
            cr_assert_eq(put_one(s, i, 100, &outcome), PROFD_OK, "%u: %s", i, e.sentence);
        }
        acked[i] = true;
    }
    cr_assert_gt(refusals, 50);
    check_contents(s, acked);
    store_close(s);
}

Test(store_faults, really_full_file_system)
{
    struct store *s;
    struct store_totals t;
    enum store_outcome outcome;
    bool acked[MOST] = {false};
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", 0, "size=3m") != 0)
        cr_skip_test("needs root and the right to mount");
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    uint32_t i = 1;
    enum profd_status status;
    while (i < MOST && (status = put_one(s, i, 50000, &outcome)) == PROFD_OK)
        acked[i++] = true;
    cr_assert_eq(status, PROFD_FULL, "%s", e.sentence);
    cr_assert_gt(i, 10);
    cr_assert_eq(put_one(s, i, 50000, &outcome), PROFD_FULL, "full is full");
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK, "reads go on: %s", e.sentence);
    check_contents(s, acked);
    cr_assert_eq(mount("none", directory, "tmpfs", MS_REMOUNT, "size=30m"), 0);
    cr_assert_eq(put_one(s, i, 50000, &outcome), PROFD_OK, "space is back: %s", e.sentence);
    acked[i] = true;
    check_contents(s, acked);
    store_close(s);
    wipe();
    umount2(directory, MNT_DETACH);
}
