/* Harvests on disks that fail and under kill -9: row, ledger and snapshot are all there or none of them is. PROFD_KILLS
 * sets how often a writer is killed (30). */
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
#define BEGIN (INT64_C(400000) * HOUR)

enum { PROCESSES = 4 };

static char directory[64], path[96];
static struct profd_error e;
static uint64_t acked[PROCESSES]; /* generations */

static void wipe(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".new", ".new-journal"};
    char name[128];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
    memset(acked, 0, sizeof acked);
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

TestSuite(store_harvest_faults, .init = enter, .fini = leave);

/* The harvest after generation g brings 10·g + p calls into 0x1000 + p; its snapshot is their sum. A quarter of an hour
 * each. */
static uint64_t calls_of(unsigned p, uint64_t generation)
{
    return generation * (generation - 1) * 5 + generation * p;
}

static uint8_t *make_counts(unsigned p, uint64_t calls, size_t *size)
{
    struct counts c;
    uint8_t *bytes;
    if (counts_init(&c, 0, 0, 1, NULL) != PROFD_OK) {
        return NULL;
    }
    c.from_build[0] = COUNTS_NOWHERE;
    c.from[0] = calls % 3;
    c.to[0] = 0x1000 + p;
    c.calls[0] = calls;
    enum profd_status status = counts_encode(&c, &bytes, size, NULL);
    counts_done(&c);
    return status == PROFD_OK ? bytes : NULL;
}

/* One batch: every process goes on from what was acknowledged. */
static enum profd_status put_all(struct store *s, enum store_outcome outcomes[PROCESSES])
{
    struct store_upload h[PROCESSES];
    struct store_build b[PROCESSES];
    uint64_t sums[PROCESSES];
    enum profd_status status = PROFD_OK;
    memset(h, 0, sizeof h);
    for (unsigned p = 0; p < PROCESSES; p++) {
        uint64_t g = acked[p], calls = calls_of(p, g + 1) - calls_of(p, g);
        int64_t at = BEGIN + (int64_t)g * (HOUR / 4);
        sums[p] = calls_of(p, g + 1);
        b[p] = (struct store_build){.id = {.text = "abcd"}, .name = "n", .calls = calls};
        h[p] = (struct store_upload){.start = at,
                                     .end = at,
                                     .received = at,
                                     .build_count = 1,
                                     .builds = &b[p],
                                     .calls = calls,
                                     .group = p,
                                     .processes_started = g == 0,
                                     .live = true,
                                     .instance = {(uint8_t)p},
                                     .base = g,
                                     .snapshot = (const uint8_t *)&sums[p],
                                     .snapshot_size = sizeof sums[p]};
        h[p].counts = make_counts(p, calls, &h[p].counts_size);
        if (!h[p].counts) {
            status = PROFD_NO_MEMORY;
        }
    }
    if (status == PROFD_OK) {
        status = store_put_uploads(s, h, PROCESSES, outcomes, &e);
    }
    for (unsigned p = 0; p < PROCESSES; p++) {
        free((void *)(uintptr_t)h[p].counts);
    }
    return status;
}

static void say_mismatch(void *context, const char *sentence)
{
    cr_assert_fail("%s: %s", (const char *)context, sentence);
}

static enum profd_status add_calls(void *context, const struct store_row *row, struct profd_error *why)
{
    uint64_t *sums = context;
    struct arena *a = arena_new(0);
    struct counts c;
    struct counts r;
    if (row->rolled) {
        cr_assert_eq(rollup_decode(a, row->counts, row->counts_size, 1, false, &r, why), PROFD_OK);
        for (uint32_t i = 0; i < r.arc_count; i++) {
            sums[r.to[i] - 0x1000] += r.calls[i];
        }
    } else {
        cr_assert_eq(counts_decode(row->counts, row->counts_size, 1, &c, why), PROFD_OK);
        for (uint32_t i = 0; i < c.arc_count; i++) {
            sums[c.to[i] - 0x1000] += c.calls[i];
        }
        counts_done(&c);
    }
    arena_free(a);
    return PROFD_OK;
}

/* What is stored of every process is what its snapshot says, and nothing acknowledged is missing. The processes then go
 * on from there, as a new daemon makes them. */
static void check(struct store *s, const char *when)
{
    uint64_t checked, sums[PROCESSES] = {0};
    struct store_scope all = {.all = true};
    for (struct store_cursor c = {.done = false}; !c.done;) {
        cr_assert_eq(store_verify(s, &c, say_mismatch, (void *)(uintptr_t)when, &checked, &e), PROFD_OK, "%s: %s", when,
                     e.sentence);
    }
    cr_assert_eq(store_each_upload(s, &all, &(struct store_filter){.build_id = "abcd"}, add_calls, sums, &e), PROFD_OK,
                 "%s: %s", when, e.sentence);
    for (unsigned p = 0; p < PROCESSES; p++) {
        uint8_t name[STORE_INSTANCE_SIZE] = {(uint8_t)p}, *snapshot;
        uint64_t generation, sum = 0;
        size_t size;
        cr_assert_eq(store_get_instance(s, 0, name, &generation, &snapshot, &size, &e), PROFD_OK, "%s: %s", when,
                     e.sentence);
        cr_assert(generation >= acked[p], "%s: generation %llu was acknowledged, %llu is there", when,
                  (unsigned long long)acked[p], (unsigned long long)generation);
        if (generation > 0) {
            cr_assert_eq(size, sizeof sum);
            memcpy(&sum, snapshot, sizeof sum);
        }
        free(snapshot);
        cr_assert_eq(sum, calls_of(p, generation), "%s: the snapshot is of another generation", when);
        cr_assert_eq(sums[p], sum, "%s: process %u: %llu calls are stored, %llu were counted", when, p,
                     (unsigned long long)sums[p], (unsigned long long)sum);
        acked[p] = generation;
    }
}

/* Now and then uploads become sums, so that the next harvests make new ones. */
static enum profd_status compact(struct store *s)
{
    struct store_policy policy = {.raw_age = HOUR};
    enum profd_status status = PROFD_OK;
    int64_t now = BEGIN + (int64_t)acked[0] * (HOUR / 4) + 2 * HOUR;
    for (struct store_progress p = {.more = true}; status == PROFD_OK && p.more;) {
        status = store_compact(s, &policy, now, &p, &e);
    }
    return status;
}

static enum profd_status live(struct store *s, unsigned rounds)
{
    enum store_outcome outcomes[PROCESSES];
    enum profd_status status = PROFD_OK;
    for (unsigned i = 1; status == PROFD_OK && i <= rounds; i++) {
        status = put_all(s, outcomes);
        for (unsigned p = 0; status == PROFD_OK && p < PROCESSES; p++) {
            cr_assert_eq(outcomes[p], STORE_STORED);
            acked[p]++;
        }
        if (status == PROFD_OK && i % 5 == 0) {
            status = compact(s);
        }
    }
    return status;
}

/* The n-th write, sync or truncation after the creation fails. */
static bool run_with_fault(const char *kept, int n, int kind)
{
    char when[64];
    struct store *s = NULL;
    snprintf(when, sizeof when, "fault %d of kind %d", n, kind);
    wipe();
    faults_copy_file(kept, path);
    faults_kind = kind;
    faults_happened = 0;
    faults_countdown = n;
    enum profd_status status = store_sqlite_open_writer(path, &s, &e);
    if (status == PROFD_OK) {
        status = live(s, 12);
    }
    bool hit = faults_happened > 0;
    faults_countdown = -1;
    cr_assert(hit || status == PROFD_OK, "%s: %s", when, e.sentence);
    if (s && status != PROFD_OK && kind == SQLITE_FULL) {
        cr_assert_eq(status, PROFD_FULL, "%s: %s", when, e.sentence);
        check(s, when); /* nothing of it was done, and there is room again */
        cr_assert_eq(live(s, 2), PROFD_OK, "%s: %s", when, e.sentence);
    }
    store_close(s);
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "after %s: %s", when, e.sentence);
    check(s, when);
    cr_assert_eq(live(s, 3), PROFD_OK, "after %s: %s", when, e.sentence);
    check(s, when);
    store_close(s);
    return hit;
}

Test(store_harvest_faults, every_failing_write_and_sync)
{
    static const int kinds[] = {SQLITE_IOERR_FSYNC, SQLITE_FULL};
    char kept[128];
    struct store *s = NULL;
    snprintf(kept, sizeof kept, "%s/kept", directory);
    cr_assert_eq(store_sqlite_open_writer(kept, &s, &e), PROFD_OK, "%s", e.sentence);
    store_close(s);
    faults_install();
    for (size_t k = 0; k < 2; k++) {
        int hits = 0;
        for (int n = 0; run_with_fault(kept, n, kinds[k]);
             n += faults_step() * (n < 50 ? 1 : 7)) { /* the first wholly */
            hits++;
        }
        cr_assert_gt(hits, 50 / faults_step(), "the layer was not asked");
    }
    unlink(kept);
}

static void harvest_for_ever(int pipe_end)
{
    struct store *s;
    if (store_sqlite_open_writer(path, &s, NULL) != PROFD_OK) {
        _exit(3);
    }
    for (;;) {
        if (live(s, 1) != PROFD_OK) {
            _exit(4);
        }
        if (acked[0] % 7 == 0 && compact(s) != PROFD_OK) {
            _exit(5);
        }
        if (write(pipe_end, acked, sizeof acked) != (ssize_t)sizeof acked) {
            _exit(6);
        }
    }
}

Test(store_harvest_faults, kill_9)
{
    const char *wanted = getenv("PROFD_KILLS");
    int kills = wanted ? atoi(wanted) : 30;
    struct store *s;
    srand(7);
    for (int i = 0; i < kills; i++) {
        int ends[2], status;
        uint64_t word[PROCESSES];
        cr_assert_eq(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            harvest_for_ever(ends[1]);
        }
        close(ends[1]);
        if (i % 3 == 0 && read(ends[0], word, sizeof word) == (ssize_t)sizeof word) { /* however slow the machine is */
            memcpy(acked, word, sizeof acked);
        }
        nanosleep(&(struct timespec){.tv_nsec = rand() % 60000000}, NULL);
        kill(child, SIGKILL);
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFSIGNALED(status), "the writer ended by itself with %d", WEXITSTATUS(status));
        while (read(ends[0], word, sizeof word) == (ssize_t)sizeof word) {
            memcpy(acked, word, sizeof acked);
        }
        close(ends[0]);
        cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
        check(s, "after a kill");
        store_close(s);
    }
    cr_log_info("%d kills, %llu harvests", kills, (unsigned long long)acked[0] * PROCESSES);
}
