/* Upkeep on disks that fail and under kill -9: nothing acknowledged is lost, nothing is there twice, the ledger fits.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/rollup.h"
#include "store/store.h"
#include "tests/unit/store/faults.h"

#define HOUR INT64_C(3600000000000)
#define DAY (24 * HOUR)

enum { MOST = 96 };

static char directory[64], path[96];
static struct profd_error e;

static void wipe(void)
{
    static const char *const suffixes[] = {
        "", "-wal", "-shm", ".new", ".new-journal", ".copy", ".copy.part", ".copy.part-journal"};
    char name[128];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static void enter(void)
{
    faults_directory(directory);
    snprintf(path, sizeof path, "%s/profd.db", directory);
}

static void leave(void)
{
    wipe();
    rmdir(directory);
}

TestSuite(store_upkeep_faults, .init = enter, .fini = leave);

/* Upload i (from 1) has i calls of an arc into 0x1000 + i % 50, and ends in quarter i of an hour. */
static enum profd_status put(struct store *s, uint32_t first, uint32_t n, enum store_outcome *outcomes)
{
    struct store_upload u[16] = {{.uid = 0}};
    struct store_build b[16];
    uint8_t *bytes[16];
    for (uint32_t k = 0; k < n; k++) {
        struct counts c;
        uint32_t i = first + k;
        cr_assert_eq(counts_init(&c, 0, 0, 1, &e), PROFD_OK);
        c.from_build[0] = COUNTS_NOWHERE;
        c.to[0] = 0x1000 + i % 50;
        c.calls[0] = i;
        b[k] = (struct store_build){.id = {.text = "abcd"}, .name = "n", .calls = i};
        u[k] = (struct store_upload){.sequence = i, .build_count = 1, .builds = &b[k], .group = i % 16, .calls = i};
        u[k].start = u[k].end = u[k].received = i * (HOUR / 4);
        u[k].sender[0] = 1;
        cr_assert_eq(counts_encode(&c, &bytes[k], &u[k].counts_size, &e), PROFD_OK);
        u[k].counts = bytes[k];
        counts_done(&c);
    }
    enum profd_status status = store_put_uploads(s, u, n, outcomes, &e);
    for (uint32_t k = 0; k < n; k++) {
        free(bytes[k]);
    }
    return status;
}

static void say_mismatch(void *context, const char *sentence)
{
    cr_assert_fail("%s: %s", (const char *)context, sentence);
}

static enum profd_status add_calls(void *context, const struct store_row *row, struct profd_error *why)
{
    uint64_t *sums = context, ticks, calls;
    struct arena *a = arena_new(0);
    struct counts c;
    struct counts r;
    sums[0] += row->uploads;
    if (row->rolled) {
        cr_assert_eq(rollup_decode(a, row->counts, row->counts_size, 1, false, &r, why), PROFD_OK);
        counts_totals(&r, &ticks, &calls);
    } else {
        cr_assert_eq(counts_decode(row->counts, row->counts_size, 1, &c, why), PROFD_OK);
        counts_totals(&c, &ticks, &calls);
        counts_done(&c);
    }
    sums[1] += calls;
    arena_free(a);
    return PROFD_OK;
}

/* The ledger fits, and what is stored and retired is exactly uploads 1 … n. */
static void check(struct store *s, uint32_t n, const char *when)
{
    uint64_t checked, sums[2] = {0, 0};
    struct store_totals t;
    struct store_scope all = {.all = true};
    for (struct store_cursor c = {.done = false}; !c.done;) {
        cr_assert_eq(store_verify(s, &c, say_mismatch, (void *)(uintptr_t)when, &checked, &e), PROFD_OK, "%s: %s", when,
                     e.sentence);
    }
    cr_assert_eq(store_each_upload(s, &all, &(struct store_filter){.build_id = "abcd"}, add_calls, sums, &e), PROFD_OK,
                 "%s: %s", when, e.sentence);
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
    cr_assert_eq(t.uploads, n, "%s: %llu of %u uploads", when, (unsigned long long)t.uploads, n);
    cr_assert_eq(sums[0] + t.retired_uploads, n, "%s", when);
    cr_assert_eq(sums[1] + t.retired_calls, (uint64_t)n * (n + 1) / 2, "%s: other calls than were sent", when);
}

static enum profd_status compact_all(struct store *s, int64_t now)
{
    struct store_policy policy = {.raw_age = HOUR, .raw_bytes = 100};
    enum profd_status status = PROFD_OK;
    for (struct store_progress p = {.more = true}; status == PROFD_OK && p.more;) {
        status = store_compact(s, &policy, now, &p, &e);
    }
    return status;
}

static enum profd_status retire_all(struct store *s, int64_t now)
{
    struct store_policy policy = {.raw_age = HOUR, .keep_age = DAY};
    enum profd_status status = PROFD_OK;
    for (struct store_progress p = {.more = true}; status == PROFD_OK && p.more;) {
        status = store_retire(s, &policy, now, &p, &e);
    }
    return status;
}

static enum profd_status back_up(struct store *s)
{
    struct store_backup *b;
    uint64_t left = 1;
    char name[128];
    snprintf(name, sizeof name, "%s.copy", path);
    enum profd_status status = store_backup_begin(s, name, &b, &e);
    if (status != PROFD_OK) {
        return status;
    }
    while (status == PROFD_OK && left > 0) {
        status = store_backup_step(b, 20000, &left, &e);
    }
    store_backup_end(b);
    cr_assert_eq(access(name, F_OK) == 0, status == PROFD_OK, "a copy that is not whole has its name");
    return status;
}

/* One part of upkeep after the other, until one fails. *stage: which. */
static enum profd_status work(struct store *s, int *stage)
{
    uint64_t uploads;
    struct store_progress p;
    struct store_scope nobody = {.uid = 99};
    enum profd_status status = compact_all(s, MOST * (HOUR / 4) + DAY);
    *stage = 1;
    if (status == PROFD_OK) {
        status = (*stage = 2, retire_all(s, MOST * (HOUR / 4) + DAY));
    }
    if (status == PROFD_OK) {
        status = (*stage = 3, compact_all(s, MOST * (HOUR / 4) + 2 * DAY));
    }
    if (status == PROFD_OK) {
        status = (*stage = 4, store_shrink(s, 1 << 20, &p, &e));
    }
    if (status == PROFD_OK) {
        status = (*stage = 5, back_up(s));
    }
    if (status == PROFD_OK && store_delete_build(s, &nobody, "abcd", &uploads, &e) != PROFD_NOT_FOUND) {
        status = PROFD_INTERNAL;
    }
    struct store_scope all = {.all = true};
    if (status == PROFD_OK) {
        status = (*stage = 6, store_delete_build(s, &all, "abcd", &uploads, &e));
    }
    if (status == PROFD_OK) {
        status = (*stage = 7, retire_all(s, MOST * (HOUR / 4) + DAY));
    }
    return status;
}

static void make_kept(const char *kept)
{
    struct store *s;
    enum store_outcome outcomes[16];
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    for (uint32_t i = 1; i <= MOST; i += 16) {
        cr_assert_eq(put(s, i, 16, outcomes), PROFD_OK, "%s", e.sentence);
    }
    store_close(s);
    faults_copy_file(path, kept);
}

/* An I/O error closes the writer for good, but for one in the copy of a backup. */
static void expect_closed(struct store *s, int stage, const char *when)
{
    enum store_outcome outcome;
    struct store_totals t;
    if (stage != 5) {
        cr_assert_eq(put(s, MOST + 1, 1, &outcome), PROFD_IO, "%s: it went on writing", when);
        cr_assert(strstr(e.sentence, path), "%s: %s", when, e.sentence);
    }
    cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK, "%s: reads go on: %s", when, e.sentence);
}

static void run_with_fault(const char *kept, int n, int stages[8], bool *hit)
{
    struct store *s;
    char when[64];
    int stage = 0;
    snprintf(when, sizeof when, "kind %d, fault %d", faults_kind, n);
    wipe();
    faults_copy_file(kept, path);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s: %s", when, e.sentence);
    faults_countdown = n;
    faults_happened = 0;
    enum profd_status status = work(s, &stage);
    *hit = faults_happened > 0;
    faults_countdown = -1;
    stages[stage] += *hit;
    if (faults_kind == SQLITE_FULL) {
        cr_assert(status == PROFD_OK || status == PROFD_FULL, "%s: %d %s", when, status, e.sentence);
        check(s, MOST, when);
        snprintf(when, sizeof when, "fault %d, then space", n);
    } else if (status != PROFD_OK) {
        cr_assert_eq(status, PROFD_IO, "%s: %d %s", when, status, e.sentence);
        expect_closed(s, stage, when);
    }
    if (faults_kind == SQLITE_FULL && stage < 6) {
        char name[128];
        snprintf(name, sizeof name, "%s.copy", path);
        unlink(name);
        cr_assert_eq(compact_all(s, MOST * (HOUR / 4) + 3 * DAY), PROFD_OK, "%s: %s", when, e.sentence);
        check(s, MOST, when);
    }
    store_close(s);
    if (faults_kind == SQLITE_FULL) {
        return;
    }
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s: %s", when, e.sentence);
    check(s, MOST, when);
    enum store_outcome outcomes[16];
    cr_assert_eq(put(s, 1, 16, outcomes), PROFD_OK, "%s: %s", when, e.sentence);
    for (int i = 0; i < 16; i++) {
        cr_assert_eq(outcomes[i], STORE_DUPLICATE, "%s", when);
    }
    cr_assert_eq(compact_all(s, MOST * (HOUR / 4) + 3 * DAY), PROFD_OK, "%s: %s", when, e.sentence);
    check(s, MOST, when);
    store_close(s);
}

static bool all_met(const int stages[8])
{
    for (int i = 1; i < 8; i++) {
        if (stages[i] == 0 && i != 4) {
            return false;
        }
    }
    return true;
}

static void run_all(int kind)
{
    char kept[128];
    int stages[8] = {0};
    bool hit = true;
    snprintf(kept, sizeof kept, "%s/kept", directory);
    make_kept(kept);
    faults_install();
    faults_kind = kind;
    for (int first = 0; first < 5 * faults_step() && !all_met(stages); first++) { /* stages differ in their writes */
        hit = true;
        for (int n = first; hit; n += faults_step() * (first == 0 && n < 40 ? 1 : 5)) {
            run_with_fault(kept, n, stages, &hit);
        }
    }
    unlink(kept);
    for (int i = 1; i < 8; i++) {
        cr_expect(stages[i] > 0 || i == 4, "no fault met stage %d", i);
    }
}

Test(store_upkeep_faults, every_failing_write_and_sync)
{
    run_all(SQLITE_IOERR_FSYNC);
}

Test(store_upkeep_faults, every_full_disk)
{
    run_all(SQLITE_FULL);
}

/* --- kill -9 while uploads and all of upkeep go on
 * ---------------------------------------------------------------------- */

static void work_for_ever(int pipe_end, uint32_t next)
{
    struct store *s;
    enum store_outcome outcomes[16];
    struct store_progress p;
    if (store_sqlite_open_writer(path, &s, NULL) != PROFD_OK) {
        _exit(3);
    }
    for (unsigned turn = 0;; turn++) {
        uint32_t first = next > 4 ? next - 3 : 1; /* clients retry */
        if (put(s, first, 16, outcomes) != PROFD_OK) {
            _exit(4);
        }
        next = first + 16;
        uint32_t acked = next - 1;
        if (write(pipe_end, &acked, sizeof acked) != (ssize_t)sizeof acked) {
            _exit(5);
        }
        int64_t now = next * (HOUR / 4);
        struct store_policy policy = {.raw_age = 10 * HOUR, .raw_bytes = 4000, .keep_age = 3 * DAY};
        if (store_compact(s, &policy, now, &p, &e) != PROFD_OK ||
            (turn % 4 == 3 && store_retire(s, &policy, now, &p, &e) != PROFD_OK) ||
            (turn % 16 == 7 && store_shrink(s, 1 << 20, &p, &e) != PROFD_OK) ||
            (turn % 32 == 9 && back_up(s) != PROFD_OK)) {
            _exit(6);
        }
        if (turn % 32 == 9) {
            char name[128];
            snprintf(name, sizeof name, "%s.copy", path);
            unlink(name);
        }
    }
}

/* Kills it at any moment, or after so many batches: that much is done however slow the machine is. */
static uint32_t run_and_kill(uint32_t acked, int batches)
{
    int ends[2], status;
    uint32_t word;
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        work_for_ever(ends[1], acked + 1);
    }
    close(ends[1]);
    for (int i = 0; i < batches && read(ends[0], &word, sizeof word) == (ssize_t)sizeof word; i++) {
        acked = word;
    }
    nanosleep(&(struct timespec){.tv_nsec = 1000000 + rand() % (batches ? 5000000 : 150000000)}, NULL);
    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status), "the writer ended by itself with %d", WEXITSTATUS(status));
    while (read(ends[0], &word, sizeof word) == (ssize_t)sizeof word) {
        acked = word;
    }
    close(ends[0]);
    return acked;
}

Test(store_upkeep_faults, kills_lose_nothing)
{
    const char *wanted = getenv("PROFD_KILLS");
    int kills = wanted ? atoi(wanted) : 30;
    uint32_t acked = 0;
    struct store_totals t = {.uploads = 0};
    srand(7);
    for (int i = 0; i < kills; i++) {
        struct store *s;
        char when[64], name[128];
        acked = run_and_kill(acked, i % 3 == 0 ? 10 : 0);
        snprintf(name, sizeof name, "%s.copy", path); /* whole, if it is there: its name came last */
        unlink(name);
        snprintf(when, sizeof when, "after kill %d", i + 1);
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s: %s", when, e.sentence);
        cr_assert_eq(store_get_totals(s, &t, &e), PROFD_OK);
        cr_assert_geq(t.uploads, acked, "%s: %u were acknowledged, %llu are known", when, acked,
                      (unsigned long long)t.uploads);
        acked = (uint32_t)t.uploads; /* the last batch may be there without its acknowledgement */
        check(s, acked, when);
        store_close(s);
    }
    cr_assert(t.rollups > 0 && t.retired_uploads > 0);
    cr_log_info("%d kills, %u uploads, %llu retired, %llu sums", kills, acked, (unsigned long long)t.retired_uploads,
                (unsigned long long)t.rollups);
}
