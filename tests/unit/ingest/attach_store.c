/* Harvests and the store together, as the daemon has them: what is read back is what was counted, whoever died in
 * between. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ingest/attach_bed.h"
#include "tests/unit/ingest/bed.h"

#define SECOND INT64_C(1000000000)

static char folder[64];
static char path[80];

static void open_sqlite(void)
{
    cr_assert_eq(store_sqlite_open_writer(path, &store, &sentence), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(build_cache_new(store, &checker, &sentence), PROFD_OK);
}

static void close_sqlite(void)
{
    build_cache_free(checker);
    store_close(store);
}

static void enter(void)
{
    strcpy(folder, "/tmp/ingest-attach-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/db", folder);
    origin = (struct attach_origin){.pid = 4711, .started = 99, .boot = {1, 2, 3}, .host = HOST};
    open_sqlite();
}

static int remove_one(const char *name, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(name);
}

static void leave(void)
{
    close_sqlite();
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(ingest_attach_store, .init = enter, .fini = leave);

/* What a daemon does when a process attaches. */
static struct attach_process *attach(struct live *l)
{
    struct attach_process *p = live_attach(l, NULL);
    uint64_t generation = 0;
    uint8_t *snapshot = NULL;
    size_t size = 0;
    cr_assert_eq(store_get_instance(store, 1000, attach_get_instance(p), &generation, &snapshot, &size, &sentence),
                 PROFD_OK);
    if (generation > 0) {
        cr_assert_eq(attach_resume(p, generation, snapshot, size, &sentence), PROFD_OK, "%s", sentence.sentence);
    }
    free(snapshot);
    return p;
}

static void harvest(struct attach_process *p, int64_t now, enum attach_end end, enum store_outcome wanted)
{
    struct attach_harvest h;
    enum store_outcome outcome;
    cr_assert_eq(attach_harvest(p, checker, 0, now, end, &h, &sentence), PROFD_OK, "%s", sentence.sentence);
    if (h.any) {
        cr_assert_eq(store_put_uploads(store, &h.put, 1, &outcome, &sentence), PROFD_OK, "%s", sentence.sentence);
        cr_assert_eq(outcome, wanted);
        if (outcome == STORE_STORED) {
            attach_settle(p, &h);
        }
    }
    attach_harvest_done(&h);
}

struct stored {
    uint64_t calls, ticks, counters[COLLECTOR_COUNTERS_MAX], processes, uploads;
    uint32_t inexact;
};

static enum profd_status stored_add(void *context, const struct store_row *row, struct profd_error *e)
{
    struct stored *s = context;
    struct counts c;
    cr_assert(!row->rolled && row->uid == 1000);
    enum profd_status status = counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, &c, e);
    if (status != PROFD_OK) {
        return status;
    }
    uint64_t ticks, calls;
    counts_totals(&c, &ticks, &calls);
    s->ticks += ticks;
    s->calls += calls;
    for (uint32_t i = 0; i < c.histogram_count; i++) {
        for (uint32_t k = 0; k < c.histograms[i].used && collector_is_dimension(c.histograms[i].dimension); k++) {
            s->counters[c.bin_index[c.histograms[i].first + k]] += c.bin_ticks[c.histograms[i].first + k];
        }
    }
    s->processes += row->processes_started;
    s->uploads++;
    s->inexact |= row->inexact;
    counts_done(&c);
    return PROFD_OK;
}

static struct stored stored(void)
{
    struct stored s = {0};
    struct store_scope scope = {.all = true};
    struct store_filter filter = {.build_id = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    cr_assert_eq(store_each_upload(store, &scope, &filter, stored_add, &s, &sentence), PROFD_OK, "%s",
                 sentence.sentence);
    return s;
}

Test(ingest_attach_store, processes_survive_daemons)
{
    struct live lives[5];
    struct attach_process *p[5];
    struct attach_chunk *arcs[5], *ticks[5];
    uint64_t calls = 0, seed = 1;
    for (unsigned i = 0; i < 5; i++) {
        live_open(&lives[i], 1u << 20, i + 1);
        live_seal(&lives[i]);
        live_usual(&lives[i]);
        arcs[i] = live_table(&lives[i], ATTACH_KIND_ARCS, 500);
        ticks[i] = live_table(&lives[i], ATTACH_KIND_SAMPLES, 500);
        p[i] = attach(&lives[i]);
    }
    for (int round = 0; round < 60; round++) {
        for (unsigned i = 0; i < 5; i++) {
            for (unsigned n = 0; n < 20; n++) {
                seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
                uint32_t slot = (uint32_t)(seed >> 40) % 500;
                live_count(arcs[i], slot, 1, slot, 2, slot, 1 + slot % 3);
                live_count(ticks[i], slot, 0, 0, 1, slot, 1);
                calls += 1 + slot % 3;
            }
            if ((seed >> 33) % 3 != 0) {
                harvest(p[i], START + round * SECOND, ATTACH_LIVES, STORE_STORED);
            }
        }
        if ((seed >> 34) % 5 == 0) { /* the daemon dies */
            for (unsigned i = 0; i < 5; i++) {
                attach_close(p[i]);
            }
            close_sqlite();
            open_sqlite();
            for (unsigned i = 0; i < 5; i++) {
                p[i] = attach(&lives[i]);
            }
        }
    }
    for (unsigned i = 0; i < 5; i++) {
        harvest(p[i], START + 61 * SECOND, ATTACH_ENDED, STORE_STORED);
        attach_close(p[i]);
        live_close(&lives[i]);
    }
    struct stored s = stored();
    cr_assert(s.calls == calls && s.ticks == 60 * 5 * 20, "%llu and %llu", (unsigned long long)s.calls,
              (unsigned long long)calls);
    uint64_t minutes =
        (START + 61 * SECOND) / (60 * SECOND) - START / (60 * SECOND) + 1; /* each has an upload of its own */
    cr_assert(s.processes == 5 && s.counters[COLLECTOR_PROCESSES] == 5 && s.uploads == 5 * minutes && s.inexact == 0,
              "%llu uploads", (unsigned long long)s.uploads);
}

/* Two daemons' threads, or a child made without fork(): the second one's difference is from an old snapshot. */
Test(ingest_attach_store, of_two_readers_one_is_stale)
{
    struct live l;
    live_open(&l, 1u << 20, 1);
    live_seal(&l);
    live_usual(&l);
    struct attach_chunk *t = live_table(&l, ATTACH_KIND_ARCS, 10);
    live_count(t, 1, 1, 1, 1, 1, 5);
    struct attach_process *a = attach(&l), *b = attach(&l);
    harvest(a, START, ATTACH_LIVES, STORE_STORED);
    harvest(b, START, ATTACH_LIVES, STORE_STALE);
    attach_close(b);
    b = attach(&l);
    harvest(b, START, ATTACH_LIVES, STORE_STORED); /* nothing */
    live_count(t, 1, 1, 1, 1, 1, 2);
    harvest(b, START, ATTACH_ENDED, STORE_STORED);
    cr_assert(stored().calls == 7 && stored().counters[COLLECTOR_PROCESSES] == 1);
    attach_close(a);
    attach_close(b);
    live_close(&l);
}

static bool close_each(void *context, const struct store_instance *i)
{
    return attach_close_orphan(i, false, START + 9 * SECOND, context, &sentence) != PROFD_OK;
}

static bool count_each(void *context, const struct store_instance *i)
{
    (void)i;
    ++*(unsigned *)context;
    return true;
}

Test(ingest_attach_store, an_end_that_nobody_saw)
{
    struct live l;
    struct attach_harvest h = {.any = false};
    enum store_outcome outcome;
    unsigned left = 0;
    live_open(&l, 1u << 20, 1);
    live_seal(&l);
    live_usual(&l);
    live_count(live_table(&l, ATTACH_KIND_ARCS, 10), 1, 1, 1, 1, 1, 5);
    struct attach_process *p = attach(&l);
    harvest(p, START, ATTACH_LIVES, STORE_STORED);
    attach_close(p);
    live_close(&l);
    cr_assert_eq(store_each_instance(store, close_each, &h, &sentence), PROFD_OK);
    cr_assert(h.any);
    cr_assert_eq(store_put_uploads(store, &h.put, 1, &outcome, &sentence), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(outcome, STORE_STORED);
    attach_harvest_done(&h);
    struct stored s = stored();
    cr_assert(s.calls == 5 && s.inexact == INEXACT_END_NOT_SEEN && s.counters[COLLECTOR_END_NOT_SEEN] == 1 &&
              s.counters[COLLECTOR_PROCESSES] == 1);
    cr_assert_eq(store_each_instance(store, count_each, &left, &sentence), PROFD_OK);
    cr_assert_eq(left, 0);
}

/* The last call was of a module that never got its row: nothing is new, but that is not all there was. */
Test(ingest_attach_store, a_reason_without_counts_is_stored)
{
    struct live l;
    live_open(&l, 1u << 20, 1);
    live_seal(&l);
    live_usual(&l);
    struct attach_process *p = attach(&l);
    harvest(p, START, ATTACH_LIVES, STORE_STORED);
    live_count(live_table(&l, ATTACH_KIND_ARCS, 10), 1, 1, 1, 9, 1, 5);
    harvest(p, START, ATTACH_ENDED, STORE_STORED);
    cr_assert_eq(stored().inexact, INEXACT_CALLS_LOST | INEXACT_TICKS_LOST);
    attach_close(p);
    live_close(&l);
}

/* It was taken for ended, attached again, and said nothing until the store had forgotten it: what it counted before is
 * not new. */
Test(ingest_attach_store, one_that_was_forgotten_goes_on)
{
    const int64_t days = INT64_C(86400) * SECOND;
    struct live l;
    live_open(&l, 1u << 20, 1);
    live_seal(&l);
    live_usual(&l);
    struct attach_chunk *t = live_table(&l, ATTACH_KIND_ARCS, 10);
    live_count(t, 1, 1, 1, 1, 1, 5);
    struct attach_process *p = attach(&l);
    uint64_t generation = 1;
    uint8_t *snapshot = NULL;
    size_t size = 0;
    harvest(p, START, ATTACH_ENDED, STORE_STORED);
    harvest(p, START + SECOND, ATTACH_LIVES, STORE_STORED); /* nothing: it stays ended */
    cr_assert_eq(store_remove_ids(store, START + 2 * STORE_ENDED_DAYS * days - LIMIT_ID_DAYS * days, &sentence),
                 PROFD_OK);
    cr_assert_eq(store_get_instance(store, 1000, attach_get_instance(p), &generation, &snapshot, &size, &sentence),
                 PROFD_OK);
    cr_assert(generation == 0 && !snapshot);
    live_count(t, 1, 1, 1, 1, 1, 2);
    harvest(p, START + 2 * days, ATTACH_LIVES, STORE_STALE);
    cr_assert_eq(attach_resume(p, generation, snapshot, size, &sentence), PROFD_OK, "%s", sentence.sentence);
    harvest(p, START + 2 * days, ATTACH_LIVES, STORE_STORED);
    live_count(t, 1, 1, 1, 1, 1, 1);
    harvest(p, START + 2 * days + SECOND, ATTACH_ENDED, STORE_STORED);
    struct stored s = stored();
    cr_assert(s.calls == 8 && s.processes == 1 && s.counters[COLLECTOR_PROCESSES] == 1, "%llu calls",
              (unsigned long long)s.calls);
    attach_close(p);
    live_close(&l);
}

/* A snapshot that was let go of is read again; where the store has forgotten it, nothing is counted twice. */
Test(ingest_attach_store, a_snapshot_that_is_not_kept_is_read_again)
{
    struct live l;
    uint64_t generation = 0;
    uint8_t *snapshot = NULL;
    size_t size = 0;
    live_open(&l, 1u << 20, 1);
    live_seal(&l);
    live_usual(&l);
    struct attach_chunk *t = live_table(&l, ATTACH_KIND_ARCS, 10);
    struct attach_process *p = attach(&l);
    cr_assert_eq(attach_get_kept(p), 0);
    for (unsigned i = 0; i < 3; i++) {
        live_count(t, 1, 1, 1, 1, 1, 5);
        harvest(p, START + i * SECOND, ATTACH_LIVES, STORE_STORED);
        cr_assert_gt(attach_get_kept(p), 0);
        attach_let_go(p);
        cr_assert_eq(attach_get_kept(p), 0);
        cr_assert_eq(attach_resume(p, 0, NULL, 0, &sentence), PROFD_DAMAGED);
        cr_assert(strstr(sentence.sentence, "is not in the store"));
        cr_assert_eq(store_get_instance(store, 1000, attach_get_instance(p), &generation, &snapshot, &size, &sentence),
                     PROFD_OK);
        cr_assert_eq(attach_resume(p, generation, snapshot, size, &sentence), PROFD_OK);
        cr_assert_eq(attach_get_kept(p), size);
        free(snapshot);
    }
    cr_assert(stored().calls == 15 && stored().processes == 1);
    attach_close(p);
    live_close(&l);
}
