/* kill -9 at random moments: nothing acknowledged is lost, nothing is counted twice. PROFD_KILLS sets how often (30).
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

enum { SENDERS = 3, BATCH = 16 };

static char path[96];
static uint32_t acked[SENDERS]; /* highest sequence acknowledged; all below were, too */

static void fill(struct store_upload *u, const struct store_build *b, unsigned sender, uint32_t sequence,
                 uint8_t *counts)
{
    *u = (struct store_upload){.uid = sender,
                               .sequence = sequence,
                               .build_count = 1,
                               .builds = b,
                               .counts = counts,
                               .counts_size = 4500,
                               .start = sequence,
                               .end = sequence,
                               .ticks = 1};
    u->sender[11] = 1;
}

/* Writes batches for ever. After each commit the end of the batch goes into the pipe. A batch begins a little before
 * what is known to be acknowledged: clients retry. */
static void write_for_ever(int pipe_end)
{
    static uint8_t counts[4500];
    struct store *s;
    struct store_build b = {.id = {.text = "abcd"}, .name = "n"};
    struct store_upload u[BATCH];
    enum store_outcome outcomes[BATCH];
    if (store_sqlite_open_writer(path, &s, NULL) != PROFD_OK) {
        _exit(3);
    }
    for (unsigned turn = 0;; turn++) {
        unsigned sender = turn % SENDERS;
        uint32_t first = acked[sender] > 3 ? acked[sender] - 2 : 1;
        for (uint32_t i = 0; i < BATCH; i++) {
            fill(&u[i], &b, sender, first + i, counts);
        }
        if (store_put_uploads(s, u, BATCH, outcomes, NULL) != PROFD_OK) {
            _exit(4);
        }
        acked[sender] = first + BATCH - 1;
        uint32_t word[2] = {sender, acked[sender]};
        if (write(pipe_end, word, sizeof word) != (ssize_t)sizeof word) {
            _exit(5);
        }
    }
}

struct tally {
    uint32_t seen[SENDERS];
    uint8_t *times[SENDERS];
    uint32_t capacity;
};

static enum profd_status count_row(void *context, const struct store_row *row, struct profd_error *e)
{
    (void)e;
    struct tally *t = context;
    cr_assert_lt(row->uid, SENDERS);
    cr_assert(row->start > 0 && row->start < (int64_t)t->capacity);
    cr_assert_eq(t->times[row->uid][row->start]++, 0, "upload %u of sender %u is there twice", (unsigned)row->start,
                 row->uid);
    cr_assert_eq(row->counts_size, 4500);
    t->seen[row->uid]++;
    return PROFD_OK;
}

static uint64_t check_store(void)
{
    struct store *s;
    struct profd_error e;
    struct store_totals totals;
    struct tally t = {.capacity = 1};
    uint64_t sum = 0;
    for (unsigned i = 0; i < SENDERS; i++) {
        if (acked[i] + 2 * BATCH + 1 > t.capacity) {
            t.capacity = acked[i] + 2 * BATCH + 1;
        }
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        t.times[i] = calloc(t.capacity, 1);
    }
    cr_assert_eq(store_sqlite_open_writer(path, &s, &e), PROFD_OK, "%s", e.sentence);
    struct store_scope all = {.all = true};
    cr_assert_eq(store_each_upload(s, &all, &(struct store_filter){.build_id = "abcd"}, count_row, &t, &e), PROFD_OK,
                 "%s", e.sentence);
    for (unsigned i = 0; i < SENDERS; i++) {
        for (uint32_t k = 1; k <= acked[i]; k++) {
            cr_assert_eq(t.times[i][k], 1, "upload %u of sender %u was acknowledged and is lost", k, i);
        }
        sum += t.seen[i];
        free(t.times[i]);
    }
    cr_assert_eq(store_get_totals(s, &totals, &e), PROFD_OK);
    cr_assert_eq(totals.uploads, sum);
    cr_assert_eq(totals.ticks, sum);
    store_close(s);
    return sum;
}

Test(store_kill, loses_nothing_acknowledged_counts_nothing_twice)
{
    const char *wanted = getenv("PROFD_KILLS");
    int kills = wanted ? atoi(wanted) : 30;
    char directory[] = "/tmp/profd-kill-XXXXXX", name[128];
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/profd.db", directory);
    srand(7);
    uint64_t stored = 0;
    for (int i = 0; i < kills; i++) {
        int ends[2];
        uint32_t word[2];
        cr_assert_eq(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            write_for_ever(ends[1]);
        }
        close(ends[1]);
        if (i % 3 == 0 && read(ends[0], word, sizeof word) == (ssize_t)sizeof word) { /* however slow the machine is */
            acked[word[0]] = word[1];
        }
        nanosleep(&(struct timespec){.tv_nsec = rand() % 60000000}, NULL);
        kill(child, SIGKILL);
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFSIGNALED(status), "the writer ended by itself with %d", WEXITSTATUS(status));
        while (read(ends[0], word, sizeof word) == (ssize_t)sizeof word) {
            acked[word[0]] = word[1];
        }
        close(ends[0]);
        if (i % 10 == 9 || i + 1 == kills || kills <= 50) {
            stored = check_store();
        }
    }
    cr_assert_gt(stored, 0, "nothing was ever written");
    cr_log_info("%d kills, %llu uploads", kills, (unsigned long long)stored);
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
    rmdir(directory);
}
