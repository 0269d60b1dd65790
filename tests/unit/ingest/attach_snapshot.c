/* What is remembered of a process: it comes back, it is small, it is never believed when it is not whole. */
#include "ingest/attach_internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/ingest/attach_bed.h"
#include "tests/unit/ingest/bed.h"

static struct live live;
static struct ledger ledger;

static void enter(void)
{
    attach_bed_open();
    live_open(&live, 8u << 20, 1);
    live_seal(&live);
    memset(&ledger, 0, sizeof ledger);
}

static void leave(void)
{
    ledger_done(&ledger);
    live_close(&live);
    attach_bed_close();
}

TestSuite(ingest_attach_snapshot, .init = enter, .fini = leave);

/* A process with labels and n slots, harvested once. */
static void harvested(uint32_t n)
{
    static const char labels[] = "service=search\0version=1.2";
    live_usual(&live);
    live_labels(&live, labels, sizeof labels);
    struct attach_chunk *t = live_table(&live, ATTACH_KIND_ARCS, 2 * n + 2);
    for (uint32_t i = 0; i < n; i++) {
        live_count(t, 2 * i, 1, i, 2, i % 0x2000, 1 + (i * UINT64_C(2654435761)) % 100000);
    }
    struct attach_process *p = live_attach(&live, NULL);
    cr_assert_eq(live_harvest(p, &ledger, START + 5, ATTACH_LIVES), PROFD_OK, "%s", sentence.sentence);
    attach_close(p);
}

Test(ingest_attach_snapshot, a_thousand_slots_take_a_few_kilobytes)
{
    struct attach_snapshot s;
    harvested(1000);
    cr_assert_leq(ledger.size, 5000);
    cr_assert_eq(attach_snapshot_decode(ledger.snapshot, ledger.size, &s, &sentence), PROFD_OK, "%s",
                 sentence.sentence);
    cr_assert(s.places.count == 1000 && s.places.table_count == 1 && s.end == START + 5 && s.rate == 100 &&
              s.label_count == 2);
    cr_assert_str_eq(s.name, "/bin/program");
    cr_assert_str_eq(s.origin.host, HOST);
    for (uint32_t i = 0; i < 1000; i++) {
        cr_assert(s.places.slots[i] == 2 * i && s.places.counts[i] == 1 + (i * UINT64_C(2654435761)) % 100000);
    }
    attach_snapshot_done(&s);
}

/* A few bits of a zstd frame (its window) mean nothing. */
static void same(struct attach_snapshot *s)
{
    uint8_t *bytes;
    size_t n;
    cr_assert_eq(attach_snapshot_encode(s, &bytes, &n, &sentence), PROFD_OK);
    cr_assert(n == ledger.size && memcmp(bytes, ledger.snapshot, n) == 0);
    free(bytes);
    attach_snapshot_done(s);
}

Test(ingest_attach_snapshot, every_flipped_bit_and_every_cut_is_seen)
{
    struct attach_snapshot s;
    size_t wrong = 0;
    harvested(100);
    for (size_t i = 0; i < ledger.size; i++) {
        cr_assert_eq(attach_snapshot_decode(ledger.snapshot, i, &s, &sentence), PROFD_DAMAGED, "cut at %zu", i);
        for (unsigned bit = 0; bit < 8; bit++) {
            ledger.snapshot[i] ^= (uint8_t)(1u << bit);
            enum profd_status status = attach_snapshot_decode(ledger.snapshot, ledger.size, &s, &sentence);
            ledger.snapshot[i] ^= (uint8_t)(1u << bit);
            if (status == PROFD_OK) {
                same(&s);
            } else {
                cr_assert_eq(status, PROFD_DAMAGED, "byte %zu, bit %u", i, bit);
            }
            wrong += status != PROFD_OK;
        }
    }
    cr_assert_geq(wrong, 8 * ledger.size - 16, "%zu of %zu", wrong, 8 * ledger.size);
    struct attach_process *p = live_attach(&live, NULL);
    cr_assert_eq(attach_resume(p, 1, (const uint8_t *)"none of ours", 12, &sentence), PROFD_DAMAGED);
    attach_close(p);
}

Test(ingest_attach_snapshot, it_is_of_one_process)
{
    struct live other;
    struct attach_process *p;
    harvested(10);
    live_open(&other, 1u << 20, 2);
    live_seal(&other);
    p = live_attach(&other, NULL);
    cr_assert_eq(attach_resume(p, 1, ledger.snapshot, ledger.size, &sentence), PROFD_DAMAGED);
    cr_assert(strstr(sentence.sentence, "another process"));
    attach_close(p);
    live_close(&other);
}

static uint64_t started_99(uint32_t pid)
{
    return pid == 4711 ? 99 : 0;
}

static uint64_t started_100(uint32_t pid)
{
    return pid == 4711 ? 100 : 0; /* the number has another process now */
}

static bool still_lives(const uint8_t *snapshot, size_t size, const struct attach_origin *here,
                        uint64_t (*started_of)(uint32_t pid))
{
    struct attach_origin lived;
    return attach_get_origin(snapshot, size, &lived, NULL) == PROFD_OK && attach_still_lives(&lived, here, started_of);
}

Test(ingest_attach_snapshot, whether_the_process_still_lives)
{
    harvested(10);
    struct attach_origin here = {.boot = {1, 2, 3}, .host = HOST};
    cr_assert(still_lives(ledger.snapshot, ledger.size, &here, started_99));
    cr_assert_not(still_lives(ledger.snapshot, ledger.size, &here, started_100));
    here.boot[15] = 1; /* another boot */
    cr_assert_not(still_lives(ledger.snapshot, ledger.size, &here, started_99));
    here.boot[15] = 0;
    here.host[0] = 'f';
    cr_assert_not(still_lives(ledger.snapshot, ledger.size, &here, started_99));
    here.host[0] = '0';
    cr_assert_not(still_lives(ledger.snapshot, ledger.size - 1, &here, started_99));
}

Test(ingest_attach_snapshot, one_whose_number_cannot_be_seen_may_live_until_the_next_boot)
{
    origin.pid = 0;
    origin.started = 0;
    harvested(10);
    struct attach_origin here = {.boot = {1, 2, 3}, .host = HOST};
    cr_assert(still_lives(ledger.snapshot, ledger.size, &here, started_100));
    here.boot[0] = 9;
    cr_assert_not(still_lives(ledger.snapshot, ledger.size, &here, started_100));
}

Test(ingest_attach_snapshot, an_end_that_nobody_saw_is_told)
{
    struct attach_harvest h;
    harvested(10);
    struct store_instance i = {
        .uid = 1000, .generation = 1, .seen = START + 5, .snapshot = ledger.snapshot, .snapshot_size = ledger.size};
    memcpy(i.instance, live.h->instance, sizeof i.instance);
    cr_assert_eq(attach_close_orphan(&i, false, START + 60, &h, &sentence), PROFD_OK, "%s", sentence.sentence);
    const struct store_upload *u = &h.put;
    cr_assert(h.any && h.put.ended && h.put.base == 1 && memcmp(h.put.instance, i.instance, sizeof i.instance) == 0);
    cr_assert(u->inexact == INEXACT_END_NOT_SEEN && u->start == START + 5 && u->end == START + 60 &&
              u->processes_started == 0);
    cr_assert(u->build_count == 1 && u->label_count == 2 && u->ticks == 0 && u->calls == 0 && u->uid == 1000);
    cr_assert_str_eq(u->builds[0].name, "/bin/program");
    cr_assert_str_eq(u->labels[1].value, "1.2");
    cr_assert(ledger_put(&ledger, &h.put) && ledger.counters[COLLECTOR_END_NOT_SEEN] == 1 &&
              ledger.counters[COLLECTOR_PROCESSES] == 1);
    attach_harvest_done(&h);
    i.snapshot = ledger.snapshot;
    i.snapshot_size = ledger.size - 1;
    cr_assert_eq(attach_close_orphan(&i, false, START + 60, &h, &sentence), PROFD_DAMAGED);
}
