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
#include "tests/unit/store/faults.h"

/* --- what is stored and what must be there afterwards
 * ------------------------------------------------------------------ */

static char directory[64], path[96];
static struct profd_error e;

static void enter(void)
{
    faults_directory(directory);
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
enum { UPLOADS = 60 };
/* Uploads first to first + n - 1 of one sender, size bytes of counts each. */
static enum profd_status put(struct store *s, uint32_t first, uint32_t n, size_t size, enum store_outcome outcomes[])
{
    static uint8_t counts[100000];
    struct store_build b = {.id = {.text = "abcd"}, .name = "n"};
    struct store_upload u[UPLOADS];
    for (uint32_t i = 0; i < n; i++) {
        u[i] = (struct store_upload){.sender = {1},
                                     .sequence = first + i,
                                     .build_count = 1,
                                     .builds = &b,
                                     .counts = counts,
                                     .counts_size = size,
                                     .start = first + i,
                                     .end = first + i,
                                     .ticks = 1};
    }
    return store_put_uploads(s, u, n, outcomes, &e);
}

static enum profd_status put_one(struct store *s, uint32_t sequence, size_t size, enum store_outcome *outcome)
{
    return put(s, sequence, 1, size, outcome);
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
    cr_assert_eq(store_each_upload(s, &all, &(struct store_filter){.build_id = "abcd"}, note_row, seen, &e), PROFD_OK,
                 "%s", e.sentence);
    for (int i = 0; i < MOST; i++) {
        cr_assert_leq(seen[i], 1, "upload %d is there %d times", i, seen[i]);
        cr_assert(!acked[i] || seen[i] == 1, "upload %d was acknowledged and is lost", i);
        total += (uint64_t)seen[i];
    }
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
    cr_assert_eq(t.uploads, total);
    cr_assert_eq(t.ticks, total);
}

/* The n-th write, sync or truncation fails with an I/O error: nothing is written after it, reads go on, and the next
 * start finds all that was acknowledged. */
static bool run_with_fault(int n)
{
    struct store *s = NULL;
    bool acked[MOST] = {false};
    enum store_outcome outcome, outcomes[UPLOADS];
    faults_countdown = n;
    faults_happened = faults_operations = 0;
    wipe();
    enum profd_status status = store_sqlite_open_writer(path, &s, &e);
    for (uint32_t i = 1; status == PROFD_OK && i <= UPLOADS; i++) {
        status = put_one(s, i, 100 + i * 700, &outcome);
        acked[i] = status == PROFD_OK;
    }
    bool hit = faults_happened > 0;
    if (s && status != PROFD_OK) {
        cr_assert_eq(status, PROFD_IO, "fault %d: %s", n, e.sentence);
        cr_assert(store_get_health(s)->failed && !strcmp(store_get_health(s)->error.sentence, e.sentence), "fault %d",
                  n);
        cr_assert_eq(put_one(s, 70, 10, &outcome), PROFD_IO, "fault %d: it went on writing", n);
        cr_assert(strstr(e.sentence, path), "%s", e.sentence);
        int before = faults_operations;
        struct store_totals t;
        cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK, "fault %d: reads go on: %s", n, e.sentence);
        store_close(s);
        cr_assert_eq(faults_operations, before, "fault %d: closing wrote", n);
    } else {
        cr_assert(s || status == PROFD_IO || status == PROFD_CANT_CREATE, "fault %d: %d %s", n, status, e.sentence);
        store_close(s);
    }
    faults_countdown = -1;
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "after fault %d: %s", n, e.sentence);
    check_contents(s, acked);
    cr_assert_eq(put(s, 1, UPLOADS, 100, outcomes), PROFD_OK);
    for (uint32_t i = 1; i <= UPLOADS; i++) {
        cr_assert(!acked[i] || outcomes[i - 1] == STORE_DUPLICATE);
        acked[i] = true;
    }
    check_contents(s, acked);
    store_close(s);
    return hit;
}

Test(store_faults, every_failing_write_and_sync)
{
    faults_install();
    int n = 0, hits = 0;
    faults_kind = SQLITE_IOERR_FSYNC;
    while (n < 5000 && run_with_fault(n)) {
        hits++;
        n += faults_step() * (n < 150 ? 1 : 13); /* the creation and the first uploads wholly, then samples */
    }
    cr_assert_gt(hits, 150 / faults_step(), "the layer was not asked");
}

static void replace_database(void)
{
    char copy[128];
    snprintf(copy, sizeof copy, "%s.new", path);
    faults_copy_file(path, copy);
    cr_assert_eq(rename(copy, path), 0);
}

/* An operation that fails because somebody has replaced the file: the sentence names this, not a fault of the disk. */
Test(store_faults, a_replaced_file_is_named_as_the_cause)
{
    struct store *s = NULL;
    enum store_outcome outcome;
    faults_install();
    faults_kind = SQLITE_IOERR_FSYNC;
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK);
    cr_assert_eq(put_one(s, 1, 100, &outcome), PROFD_OK);
    faults_cause = replace_database;
    faults_countdown = 0;
    cr_assert_eq(put_one(s, 2, 100, &outcome), PROFD_IO);
    faults_countdown = -1;
    cr_assert(strstr(e.sentence, "was replaced while profd had it open"), "%s", e.sentence);
    cr_assert_str_eq(store_get_health(s)->error.sentence, e.sentence);
    store_close(s);
}

/* A disk that is full while the database is made: the next start makes it. */
Test(store_faults, creation_on_a_full_disk)
{
    faults_install();
    faults_kind = SQLITE_FULL;
    bool hit = true, acked[MOST] = {false};
    int hits = 0;
    for (int n = 0; hit; n += faults_step() * 2) {
        struct store *s = NULL;
        enum store_outcome outcome;
        wipe();
        faults_countdown = n;
        faults_happened = 0;
        enum profd_status status = store_sqlite_open_writer(path, &s, &e);
        faults_countdown = -1;
        hit = faults_happened > 0;
        hits += hit;
        cr_assert(hit || status == PROFD_OK, "fault %d: %s", n, e.sentence);
        store_close(s);
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "after fault %d: %s", n, e.sentence);
        check_contents(s, (const bool[MOST]){false});
        cr_assert_eq(put_one(s, 1, 100, &outcome), PROFD_OK, "after fault %d: %s", n, e.sentence);
        acked[1] = true;
        check_contents(s, acked);
        store_close(s);
    }
    cr_assert_gt(hits, 50 / faults_step(), "the layer was not asked");
}

/* No space: refused, retried, stored once. */
Test(store_faults, every_full_disk_recovers_by_itself)
{
    struct store *s = NULL;
    enum store_outcome outcome;
    faults_install();
    faults_kind = SQLITE_FULL;
    int refusals = 0;
    bool acked[MOST] = {false};
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK);
    for (uint32_t i = 1; i < MOST; i++) {
        faults_countdown = (int)(i % 60);
        enum profd_status status = put_one(s, i, 100 + i * 200, &outcome);
        faults_countdown = -1;
        if (status != PROFD_OK) {
            cr_assert_eq(status, PROFD_FULL, "%u: %s", i, e.sentence);
            cr_assert(strstr(e.sentence, "no space"), "%s", e.sentence);
            cr_assert(store_get_health(s)->full && !strcmp(store_get_health(s)->error.sentence, e.sentence));
            refusals++;
            cr_assert_eq(put_one(s, i, 100, &outcome), PROFD_OK, "%u: %s", i, e.sentence);
            cr_assert(!store_get_health(s)->full && !store_get_health(s)->failed);
        }
        acked[i] = true;
    }
    cr_assert_gt(refusals, 50);
    check_contents(s, acked);
    store_close(s);
}

static enum profd_status fail_row(void *context, const struct store_row *row, struct profd_error *why)
{
    (void)row;
    return profd_error_set(why, *(const enum profd_status *)context, "the caller's own trouble");
}

/* What a reader of rows returns, and an unusable upload, say nothing of the database. */
Test(store_faults, health_is_of_writing_only)
{
    struct store *s = NULL;
    enum store_outcome outcome;
    const struct store_scope all = {.all = true};
    const enum profd_status bad[] = {PROFD_IO, PROFD_DAMAGED, PROFD_FULL};
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK);
    cr_assert_eq(put_one(s, 1, 100, &outcome), PROFD_OK);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(store_each_upload(s, &all, &(struct store_filter){.build_id = "abcd"}, fail_row,
                                       (void *)(uintptr_t)&bad[i], &e),
                     bad[i]);
    }
    cr_assert_eq(put_one(s, 0, 100, &outcome), PROFD_INTERNAL);
    cr_assert_eq(store_get_health(s)->changes, 0);
    cr_assert_eq(put_one(s, 2, 100, &outcome), PROFD_OK, "%s", e.sentence);
    store_close(s);
}

Test(store_faults, really_full_file_system)
{
    struct store *s;
    struct store_totals t;
    enum store_outcome outcome;
    bool acked[MOST] = {false};
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", 0, "size=3m") != 0) {
        cr_skip_test("needs root and the right to mount");
    }
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    uint32_t i = 1;
    enum profd_status status;
    while (i < MOST && (status = put_one(s, i, 50000, &outcome)) == PROFD_OK) {
        acked[i++] = true;
    }
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
