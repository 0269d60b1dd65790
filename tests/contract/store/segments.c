/* What a host forwards: everything that is accepted is in exactly one segment, and stays there until the centre has it
 * for good. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/rollup.h"
#include "core/shares.h"
#include "proto/sum.h"
#include "tests/contract/store/harvest_fixture.h"

static const uint8_t first_centre[STORE_INCARNATION_SIZE] = "first centre...";
static const uint8_t second_centre[STORE_INCARNATION_SIZE] = "second centre..";

static void begin(struct fixture *f, unsigned epoch)
{
    uint8_t bytes[SEGMENT_EPOCH_SIZE] = {(uint8_t)epoch, 7};
    OK(f, store_relay_begin(f->w, bytes, 0, &f->e));
}

static uint64_t meet(struct fixture *f, const uint8_t *incarnation, uint64_t backup)
{
    uint64_t again = 99;
    OK(f, store_relay_meet(f->w, NULL, incarnation, backup, &again, &f->e));
    return again;
}

static uint64_t seal(struct fixture *f, uint64_t through)
{
    uint64_t sealed = 99;
    OK(f, store_seal_segments(f->w, through, NOON, &sealed, &f->e));
    return sealed;
}

/* Sealed segments, decoded by another hand than the one that wrote them. */
struct sent {
    struct segment s[64];
    uint64_t id[64], uploads, ticks, calls, processes;
    uint8_t digest[64][SEGMENT_DIGEST_SIZE];
    size_t n;
};

static bool add_sent(void *context, const struct store_segment *x)
{
    struct sent *sent = context;
    struct profd_error e;
    struct segment *s = &sent->s[sent->n];
    cr_assert_eq(segment_decode(x->bytes, x->size, s, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(s->sequence == x->sequence && memcmp(s->epoch, x->epoch, sizeof s->epoch) == 0);
    cr_assert(sent->n == 0 || sent->id[sent->n - 1] < x->id);
    segment_digest(x->bytes, x->size, sent->digest[sent->n]);
    sent->id[sent->n++] = x->id;
    sent->uploads += s->uploads;
    for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
        sent->processes += s->processes[g];
    }
    sent->ticks += sum_all(s->counts.bin_ticks, s->counts.bin_count);
    sent->calls += sum_all(s->counts.calls, s->counts.arc_count);
    return true;
}

static void free_sent(struct sent *sent)
{
    for (size_t i = 0; i < sent->n; i++) {
        segment_done(&sent->s[i]);
    }
    free(sent);
}

static struct sent *list_sent(struct fixture *f, uint64_t after)
{
    struct sent *sent = calloc(1, sizeof *sent);
    OK(f, store_each_segment(f->w, after, add_sent, sent, &f->e));
    return sent;
}

static size_t count_sent(struct fixture *f)
{
    struct sent *sent = list_sent(f, 0);
    size_t n = sent->n;
    free_sent(sent);
    return n;
}

static void acknowledge(struct fixture *f, const struct segment *s, const uint8_t *incarnation, uint64_t number,
                        enum store_segment_outcome outcome)
{
    struct store_acknowledgement a = {.sequence = s->sequence, .number = number, .outcome = outcome};
    memcpy(a.epoch, s->epoch, sizeof a.epoch);
    memcpy(a.incarnation, incarnation, sizeof a.incarnation);
    OK(f, store_acknowledge_segments(f->w, &a, 1, NOON + (int64_t)number, &f->e));
}

/* The law of the ledger. */
static struct store_relay ledger(struct fixture *f)
{
    struct store_relay r;
    OK(f, store_get_relay(f->r, &r, &f->e));
    cr_assert_eq(r.accepted.uploads, r.acknowledged.uploads + r.withdrawn.uploads + r.sealed.uploads + r.open.uploads);
    cr_assert_eq(r.accepted.ticks, r.acknowledged.ticks + r.withdrawn.ticks + r.sealed.ticks + r.open.ticks);
    cr_assert_eq(r.accepted.calls, r.acknowledged.calls + r.withdrawn.calls + r.sealed.calls + r.open.calls);
    expect_clean(f);
    return r;
}

static void put_at(struct fixture *f, uint32_t uid, unsigned sender, uint32_t sequence, int64_t end, uint64_t n)
{
    struct made m;
    make_counted(&m, uid, sender, sequence, end, n);
    cr_assert_eq(put_counted(f, &m), STORE_STORED);
}

/* Seals, sends and acknowledges everything; *numbers goes on. */
static void deliver(struct fixture *f, const uint8_t *incarnation, uint64_t *number, struct sent *total)
{
    meet(f, incarnation, 0);
    for (;;) {
        seal(f, UINT64_MAX);
        struct sent *sent = list_sent(f, 0);
        size_t n = sent->n;
        for (size_t i = 0; i < n; i++) {
            acknowledge(f, &sent->s[i], incarnation, ++*number, STORE_SEGMENT_COUNTED);
        }
        total->uploads += sent->uploads;
        total->ticks += sent->ticks;
        total->calls += sent->calls;
        total->processes += sent->processes;
        total->n += n;
        free_sent(sent);
        if (n == 0) {
            return;
        }
    }
}

STORE_TEST(segment_without_a_centre_there_are_none)
{
    put_at(f, 1, 1, 1, NOON, 5);
    struct store_relay r = ledger(f);
    cr_assert(!r.active && r.accepted.uploads == 0 && r.open_segments == 0 && r.newest == 0);
    cr_assert_eq(seal(f, UINT64_MAX), 0);
}

STORE_TEST(segment_holds_what_was_accepted_of_a_series_and_hour)
{
    struct made m;
    begin(f, 1);
    put_at(f, 1, 1, 1, NOON, 5);
    put_at(f, 1, 2, 1, NOON - 5, 6);
    put_at(f, 1, 2, 2, NOON + 5, 12);
    put_at(f, 1, 1, 2, NOON - HOUR, 7);
    put_at(f, 2, 3, 1, NOON, 8);
    make_counted(&m, 1, 1, 1, NOON, 5);
    cr_assert_eq(put_counted(f, &m), STORE_DUPLICATE);
    struct store_relay r = ledger(f);
    cr_assert(r.accepted.uploads == 5 && r.open.uploads == 5 && r.open_segments == 3 && r.newest > 0);
    cr_assert_eq(r.oldest, NOON - HOUR);
    cr_assert_eq(seal(f, UINT64_MAX), 3);
    struct sent *sent = list_sent(f, 0);
    cr_assert(sent->n == 3 && sent->uploads == 5 && sent->processes == 3);
    cr_assert(sent->ticks == 5 + 5 + 6 + 12 + 7 + 8 && r.accepted.ticks == sent->ticks);
    cr_assert_eq(r.accepted.calls, sent->calls);
    const struct segment *s = &sent->s[0];
    cr_assert(s->uid == 1 && s->sequence == 1 && s->uploads == 3 && s->processes[1] == 1 && s->processes[2] == 1);
    cr_assert(s->first == NOON - 1005 && s->last == NOON + 5 && s->hour == NOON / HOUR);
    cr_assert(s->build_count == 2 && s->program == 0);
    cr_assert_str_eq(s->builds[0].build_id, full_id("aa01"));
    cr_assert_str_eq(s->builds[0].name, "/usr/bin/program");
    cr_assert(s->counts.histogram_count == 1 && s->counts.bin_count == 4 && s->counts.bin_index[0] == 3);
    struct arena *a = arena_new(0);
    struct counts_shares spread;
    OK(f, rollup_decode_spread(a, &s->counts, s->shares.data, s->shares.size, &spread, &f->e));
    cr_assert(s->counts.bin_ticks[0] == 3 && spread.bins[1] == 1 && spread.bins[2] == 2);
    arena_free(a);
    cr_assert(sent->s[1].sequence == 2 && sent->s[1].hour == NOON / HOUR - 1 && sent->s[2].uid == 2);
    /* What comes after the sealing is in another one. */
    put_at(f, 1, 1, 3, NOON, 9);
    r = ledger(f);
    cr_assert(r.open.uploads == 1 && r.sealed.uploads == 5 && r.sealed_segments == 3 && r.open_segments == 1);
    cr_assert_eq(count_sent(f), 3);
    free_sent(sent);
    sent = list_sent(f, 2);
    cr_assert(sent->n == 1 && sent->s[0].uid == 2);
    free_sent(sent);
}

/* Arcs keep their order of first arrival, whatever was folded when. */
STORE_TEST(segment_order_of_arrival)
{
    struct store_progress p;
    const struct store_policy keep = {.relay_bytes = UINT64_MAX};
    begin(f, 1);
    for (uint32_t i = 0; i < 7; i++) {
        put_at(f, 1, 1, i + 1, NOON, 20 - i);
    }
    for (unsigned i = 0; i < 400; i++) {
        put_at(f, 1, 1, 8 + i, NOON, 14);
    }
    do {
        OK(f, store_keep_segments(f->w, &keep, NOON, &p, &f->e));
    } while (p.more);
    put_at(f, 1, 1, 408, NOON, 14);
    ledger(f);
    cr_assert_eq(seal(f, UINT64_MAX), 1);
    struct sent *sent = list_sent(f, 0);
    const struct counts *c = &sent->s[0].counts;
    cr_assert(sent->s[0].uploads == 408 && c->arc_count == 8);
    uint64_t arrived[8] = {0};
    for (uint32_t i = 0; i < 8; i++) {
        arrived[c->rank[i]] = c->to[i];
    }
    cr_assert_eq(arrived[0], 0x9000 + 20 % 7);
    for (uint32_t i = 2; i < 8; i++) {
        cr_assert_eq(arrived[i], 0x9000 + (21 - i) % 7, "arc %u", i);
    }
    free_sent(sent);
}

STORE_TEST(segment_eight_are_sealed_at_once)
{
    uint64_t number = 0;
    struct sent total = {.n = 0};
    begin(f, 1);
    for (unsigned i = 0; i < 20; i++) {
        put_at(f, 1, 1, i + 1, NOON + i * HOUR, i + 1);
    }
    cr_assert_eq(seal(f, 5), 5);
    cr_assert_eq(seal(f, UINT64_MAX), LIMIT_SEGMENTS_AT_ONCE);
    struct store_relay r = ledger(f);
    cr_assert(r.sealed_segments == 13 && r.open_segments == 7);
    cr_assert_eq(seal(f, UINT64_MAX), 7);
    cr_assert_eq(seal(f, UINT64_MAX), 0);
    deliver(f, first_centre, &number, &total);
    r = ledger(f);
    cr_assert(total.n == 20 && total.uploads == 20 && total.ticks == r.accepted.ticks &&
              total.calls == r.accepted.calls);
    cr_assert(r.acknowledged.uploads == 20 && r.oldest == 0 && r.kept_segments == 20 && r.kept_bytes > 0);
}

/* A number is given when a segment is opened; after a start no number comes again, and what was open stays what it is.
 */
STORE_TEST(segment_every_start_has_its_epoch)
{
    begin(f, 1);
    put_at(f, 1, 1, 1, NOON, 5);
    begin(f, 2);
    put_at(f, 1, 1, 2, NOON, 6);
    cr_assert_eq(ledger(f).open_segments, 2);
    cr_assert_eq(seal(f, UINT64_MAX), 2);
    struct sent *sent = list_sent(f, 0);
    cr_assert(sent->s[0].epoch[0] == 1 && sent->s[0].sequence == 1 && sent->s[0].uploads == 1);
    cr_assert(sent->s[1].epoch[0] == 2 && sent->s[1].sequence == 1 && sent->s[1].uploads == 1);
    free_sent(sent);
}

STORE_TEST(segment_acknowledgements)
{
    uint64_t number = 0;
    begin(f, 1);
    put_at(f, 1, 1, 1, NOON, 5);
    put_at(f, 2, 2, 1, NOON, 6);
    put_at(f, 3, 3, 1, NOON, 7);
    put_at(f, 4, 4, 1, NOON, 8);
    meet(f, first_centre, 0);
    cr_assert_eq(seal(f, 3), 3);
    struct sent *sent = list_sent(f, 0);
    struct segment other = {.sequence = 4, .epoch = {1, 7}};
    acknowledge(f, &other, first_centre, 1, STORE_SEGMENT_COUNTED); /* it is open */
    acknowledge(f, &sent->s[0], second_centre, 1, STORE_SEGMENT_COUNTED);
    cr_assert_eq(ledger(f).acknowledged.uploads, 0);
    for (unsigned twice = 0; twice < 2; twice++) {
        acknowledge(f, &sent->s[0], first_centre, ++number, STORE_SEGMENT_COUNTED);
        acknowledge(f, &sent->s[1], first_centre, ++number, STORE_SEGMENT_CONFLICT);
        acknowledge(f, &sent->s[2], first_centre, ++number, STORE_SEGMENT_PUT_ASIDE);
    }
    struct store_relay r = ledger(f);
    cr_assert(r.acknowledged.uploads == 3 && r.rejected.uploads == 2 && r.open.uploads == 1 && r.sealed.uploads == 0);
    cr_assert_eq(r.rejected.ticks, 1 + 6 + 1 + 7);
    free_sent(sent);
}

STORE_TEST(segment_kept_for_a_restored_centre)
{
    uint64_t number = 0;
    struct sent total = {.n = 0};
    struct store_progress p;
    begin(f, 1);
    for (unsigned i = 0; i < 6; i++) {
        put_at(f, 1, 1, i + 1, NOON + i * HOUR, i + 1);
    }
    deliver(f, first_centre, &number, &total);
    /* In the backup: 1 to 3; old enough: 1 and 2. */
    cr_assert_eq(meet(f, first_centre, 3), 0);
    struct store_policy keep = {.relay_bytes = UINT64_MAX, .relay_age = HOUR};
    OK(f, store_keep_segments(f->w, &keep, NOON + HOUR + 3, &p, &f->e));
    cr_assert_eq(ledger(f).kept_segments, 4);
    /* There is no space for more than one. */
    keep = (struct store_policy){.relay_bytes = ledger(f).kept_bytes / 3, .relay_age = HOUR};
    OK(f, store_keep_segments(f->w, &keep, NOON, &p, &f->e));
    cr_assert_eq(ledger(f).kept_segments, 1);
    cr_assert_eq(count_sent(f), 0);
    /* Number 3 went too early, but the backup has it. */
    OK(f, store_keep_segments(f->w, &keep, NOON, &p, &f->e));
    cr_assert_eq(meet(f, first_centre, 3), 0);
    cr_assert_eq(meet(f, second_centre, 3), 3);
    struct sent *sent = list_sent(f, 0);
    cr_assert_eq(sent->n, 3);
    cr_assert(sent->s[0].kind == SEGMENT_DROPPED && sent->s[0].hour == NOON / HOUR + 3 && sent->s[0].sequence == 4);
    cr_assert(sent->s[1].kind == SEGMENT_DROPPED && sent->s[2].kind == SEGMENT_COUNTS && sent->s[2].uploads == 1);
    struct store_relay r = ledger(f);
    cr_assert(r.acknowledged.uploads == 5 && r.sealed.uploads == 1 && r.sealed_segments == 3);
    cr_assert(r.met && memcmp(r.incarnation, second_centre, sizeof r.incarnation) == 0 && r.backup == 3);
    for (size_t i = 0; i < 3; i++) {
        acknowledge(f, &sent->s[i], second_centre, i + 10, STORE_SEGMENT_COUNTED);
    }
    r = ledger(f);
    cr_assert(r.acknowledged.uploads == 6 && r.sealed_segments == 0);
    free_sent(sent);
}

/* What is not sealed is withdrawn; what is may have arrived already. */
STORE_TEST(segment_of_a_deleted_program)
{
    uint64_t uploads;
    begin(f, 1);
    put_at(f, 1, 1, 1, NOON, 5);
    cr_assert_eq(seal(f, UINT64_MAX), 1);
    put_at(f, 1, 1, 2, NOON, 6);
    put_at(f, 1, 1, 3, NOON + HOUR, 7);
    OK(f, store_delete_build(f->w, &everybody, full_id("aa01"), &uploads, &f->e));
    struct store_relay r = ledger(f);
    cr_assert(r.withdrawn.uploads == 2 && r.sealed.uploads == 1 && r.open.uploads == 0 && r.open_segments == 2);
    put_at(f, 1, 1, 4, NOON, 8);
    cr_assert_eq(seal(f, UINT64_MAX), 3);
    struct sent *sent = list_sent(f, 0);
    cr_assert(sent->n == 4 && sent->s[1].kind == SEGMENT_WITHDRAWN && sent->s[2].kind == SEGMENT_WITHDRAWN);
    cr_assert(sent->s[1].sequence == 2 && sent->s[3].kind == SEGMENT_COUNTS && sent->s[3].uploads == 1);
    ledger(f);
    free_sent(sent);
}

/* What a daemon without a centre accepts is not forwarded later. */
Test(store_sqlite, segment_nothing_is_forwarded_meanwhile)
{
    struct fixture f;
    fixture_open(&f);
    put_at(&f, 1, 1, 1, NOON, 1);
    begin(&f, 1);
    put_at(&f, 1, 1, 2, NOON, 2);
    fixture_reopen(&f);
    put_at(&f, 1, 1, 3, NOON, 3);
    struct store_relay r = ledger(&f);
    cr_assert(!r.active && r.accepted.uploads == 1 && r.open.uploads == 1);
    fixture_reopen(&f);
    put_at(&f, 1, 1, 4, NOON, 4);
    begin(&f, 2);
    put_at(&f, 1, 1, 5, NOON, 5);
    r = ledger(&f);
    cr_assert(r.active && r.accepted.uploads == 2 && r.accepted.ticks == 2 + 2 + 5 && r.open.uploads == 2);
    fixture_close(&f);
}

/* A batch that fails has changed nothing, the epoch's numbers included. */
Test(store_sqlite, segment_of_a_batch_that_fails)
{
    struct fixture f;
    struct made m;
    enum store_outcome outcome;
    fixture_open(&f);
    begin(&f, 1);
    put_at(&f, 1, 1, 1, NOON, 1);
    make_upload(&m, 1, 1, 2); /* its counts are none */
    cr_assert_eq(store_put_uploads(f.w, &m.u, 1, &outcome, &f.e), PROFD_INTERNAL);
    put_at(&f, 2, 2, 1, NOON, 3);
    struct store_relay r = ledger(&f);
    cr_assert(r.accepted.uploads == 2 && r.open_segments == 2);
    cr_assert_eq(seal(&f, UINT64_MAX), 2);
    struct sent *sent = list_sent(&f, 0);
    cr_assert(sent->s[0].sequence == 1 && sent->s[1].sequence == 2);
    free_sent(sent);
    fixture_close(&f);
}

/* Of a live process, every harvest's difference. */
STORE_TEST(segment_harvests)
{
    begin(f, 1);
    harvest_one(f, 1, 1, 0, START, 3);
    harvest_one(f, 1, 1, 1, START + 1, 4);
    cr_assert_eq(seal(f, UINT64_MAX), 1);
    harvest_one(f, 1, 1, 2, START + 2, 5);
    struct store_relay r = ledger(f);
    cr_assert(r.accepted.uploads == 1 && r.sealed.uploads == 1 && r.open.uploads == 0 && r.open_segments == 1);
    cr_assert_eq(r.open.ticks, 1 + 5);
    cr_assert_eq(seal(f, UINT64_MAX), 1);
    struct sent *sent = list_sent(f, 0);
    cr_assert(sent->n == 2 && sent->s[1].uploads == 0 && sent->ticks == r.accepted.ticks);
    cr_assert_eq(sent->calls, r.accepted.calls);
    free_sent(sent);
}

/* An upload that is too large for one segment goes into several; none is too large to be sent. */
STORE_TEST(segment_of_a_large_upload)
{
    struct made m;
    struct counts c;
    uint8_t *bytes;
    struct share shares[2] = {{0}};
    const uint32_t bins = 2 * LIMIT_SEGMENT_ROWS + 5, arcs = LIMIT_SEGMENT_ROWS + 7;
    begin(f, 1);
    put_at(f, 1, 1, 1, NOON, 5);
    make_counted(&m, 1, 1, 2, NOON, 5);
    free((void *)(uintptr_t)m.u.counts);
    OK(f, counts_init(&c, 3, bins, arcs, &f->e));
    for (uint32_t i = 0; i < 3; i++) {
        c.histograms[i] = (struct counts_histogram){.build = i % 2,
                                                    .bins = 4 * LIMIT_SEGMENT_ROWS,
                                                    .low = 0x1000 * i,
                                                    .high = 0x1000 * i + 4 * LIMIT_SEGMENT_ROWS,
                                                    .rate = 100,
                                                    .dimension = "seconds",
                                                    .abbreviation = 's',
                                                    .first = i == 2 ? bins : 0,
                                                    .used = i == 1 ? bins : 0};
    }
    for (uint32_t i = 0; i < bins; i++) {
        c.bin_index[i] = i;
        c.bin_ticks[i] = 1 + i % 3;
    }
    for (uint32_t i = 0; i < arcs; i++) {
        c.from[i] = i / 2;
        c.to[i] = 5 * i;
        c.calls[i] = i % 5;
    }
    OK(f, counts_encode(&c, &bytes, &m.u.counts_size, &f->e));
    counts_totals(&c, &m.u.ticks, &m.u.calls);
    m.u.stack_ticks = sum_all(c.node_ticks, c.node_count);
    cr_assert_not(share_add_counts(shares, &c));
    for (size_t i = 0; i < m.u.build_count; i++) {
        m.builds[i].nanoseconds = shares[i].nanoseconds;
        m.builds[i].calls = shares[i].calls;
    }
    counts_done(&c);
    m.u.counts = bytes;
    cr_assert_eq(put_counted(f, &m), STORE_STORED);
    struct store_relay r = ledger(f);
    cr_assert_eq(r.open_segments, 6);
    cr_assert_eq(seal(f, UINT64_MAX), 6);
    struct sent *sent = list_sent(f, 0);
    cr_assert(sent->uploads == 2 && sent->ticks == r.accepted.ticks && sent->calls == r.accepted.calls);
    for (size_t i = 0; i < sent->n; i++) {
        cr_assert(sent->s[i].uploads <= 1 && sent->s[i].counts.bin_count + sent->s[i].counts.arc_count > 0);
    }
    ledger(f);
    free_sent(sent);
}

/* What cannot be read is never sent, and is told; the others are. */
Test(store_sqlite, segment_that_is_damaged)
{
    struct fixture f;
    sqlite3 *db;
    fixture_open(&f);
    begin(&f, 1);
    put_at(&f, 1, 1, 1, NOON, 5);
    put_at(&f, 2, 2, 1, NOON, 6);
    store_close(f.r);
    store_close(f.w);
    cr_assert_eq(sqlite3_open(f.path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, "UPDATE segment_part SET counts=x'0100' WHERE id>>24=1", NULL, NULL, NULL),
                 SQLITE_OK);
    sqlite3_close(db);
    OK(&f, store_sqlite_open_writer(f.path, &f.w, &f.e));
    OK(&f, store_sqlite_open_reader(f.path, &f.r, &f.e));
    cr_assert_eq(seal(&f, UINT64_MAX), 1);
    cr_assert_eq(seal(&f, UINT64_MAX), 0);
    struct store_relay r;
    OK(&f, store_get_relay(f.r, &r, &f.e));
    cr_assert(r.unreadable_segments == 1 && r.open.uploads == 1 && r.sealed.uploads == 1 && r.accepted.uploads == 2);
    cr_assert(strstr(verify_all(&f), "outgoing upload 1 cannot be read"));
    cr_assert_not(store_get_health(f.w)->failed);
    fixture_close(&f);
}

STORE_TEST(segment_at_most_a_batch_waits)
{
    begin(f, 1);
    for (unsigned i = 0; i < LIMIT_SEGMENTS_SEALED + 3; i++) {
        put_at(f, 1, 1, i + 1, NOON + i * HOUR, 1);
    }
    while (seal(f, UINT64_MAX)) {
    }
    const struct store_relay r = ledger(f);
    cr_assert(r.sealed_segments == LIMIT_SEGMENTS_SEALED && r.open_segments == 3);
}

static uint64_t move(struct fixture *f)
{
    uint64_t withdrawn = 99;
    OK(f, store_relay_move(f->w, &withdrawn, &f->e));
    return withdrawn;
}

/* What was sealed, and may have arrived at the first centre, is not sent to the second one; nor is what is kept. */
STORE_TEST(segment_of_a_host_that_moves_to_another_centre)
{
    static const uint8_t name[STORE_CENTRE_SIZE] = "a centre's name", other[STORE_CENTRE_SIZE] = "other's name...";
    uint64_t again, withdrawn;
    cr_assert_eq(store_relay_move(f->w, &withdrawn, &f->e), PROFD_NOT_FOUND);
    begin(f, 1);
    for (uint32_t i = 1; i <= 4; i++) {
        put_at(f, 1, 1, i, NOON + i * HOUR, i);
    }
    OK(f, store_relay_meet(f->w, name, first_centre, 7, &again, &f->e));
    OK(f, store_relay_meet(f->w, name, first_centre, 7, &again, &f->e));
    struct store_relay r = ledger(f);
    cr_assert(r.has_centre && r.met && memcmp(r.centre, name, sizeof name) == 0 && r.backup == 7);
    cr_assert_eq(seal(f, 3), 3);
    struct sent *sent = list_sent(f, 0);
    acknowledge(f, &sent->s[0], first_centre, 8, STORE_SEGMENT_COUNTED);
    cr_assert_eq(store_relay_meet(f->w, other, second_centre, 0, &again, &f->e), PROFD_REFUSED);
    cr_assert_eq(ledger(f).sealed_segments, 2);

    cr_assert_eq(move(f), 2);
    begin(f, 2);
    r = ledger(f);
    cr_assert(!r.has_centre && !r.met && r.backup == 0 && r.kept_segments == 0 && r.kept_bytes == 0);
    cr_assert(r.acknowledged.uploads == 1 && r.withdrawn.uploads == 2 && r.sealed.uploads == 0 && r.open.uploads == 1);
    acknowledge(f, &sent->s[1], first_centre, 9, STORE_SEGMENT_COUNTED); /* it was on its way: too late */
    cr_assert_eq(ledger(f).acknowledged.uploads, 1);
    free_sent(sent);

    put_at(f, 1, 1, 5, NOON + 5 * HOUR, 5);
    OK(f, store_relay_meet(f->w, other, second_centre, 0, &again, &f->e));
    cr_assert_eq(again, 0);
    cr_assert_eq(seal(f, UINT64_MAX), 4);
    sent = list_sent(f, 0);
    cr_assert(sent->n == 4 && sent->uploads == 2 && sent->ticks == 4 + 1 + 5 + 1);
    cr_assert(sent->s[0].kind == SEGMENT_WITHDRAWN && sent->s[0].hour == NOON / HOUR + 2 && sent->s[0].sequence == 2);
    cr_assert(sent->s[1].kind == SEGMENT_WITHDRAWN && sent->s[2].kind == SEGMENT_COUNTS);
    cr_assert(sent->s[3].kind == SEGMENT_COUNTS && sent->s[3].sequence == 1 && sent->s[3].epoch[0] == 2);
    free_sent(sent);
    OK(f, store_relay_meet(f->w, other, first_centre, 0, &again, &f->e));
    cr_assert(again == 0 && ledger(f).acknowledged.uploads == 1, "a restored centre gets nothing of the one before");
}

static bool resolve(struct fixture *f, bool went_back, uint64_t number)
{
    bool apart = !went_back;
    OK(f, store_relay_resolve(f->w, &(struct store_verdict){went_back, number}, &apart, &f->e));
    return apart;
}

static void harvest_since(struct fixture *f, unsigned process, uint64_t base, int64_t end, uint64_t n, int64_t since)
{
    struct made_harvest x;
    make_harvest(&x, 1, process, base, end, n);
    x.h.since = since;
    cr_assert_eq(harvest(f, &x), STORE_STORED);
}

/* Starts at START, after something was accepted; what the processes 1 and 2 counted before that is then read. */
static void begin_with_old_counts(struct fixture *f)
{
    const uint32_t seconds = START / 1000000000;
    const uint8_t epoch[SEGMENT_EPOCH_SIZE] = {(uint8_t)(seconds >> 24), (uint8_t)(seconds >> 16),
                                               (uint8_t)(seconds >> 8), (uint8_t)seconds};
    put_at(f, 1, 9, 1, NOON, 1);
    OK(f, store_relay_begin(f->w, epoch, START, &f->e));
    harvest_since(f, 1, 0, START + MINUTE, 3, START - HOUR);
    harvest_since(f, 2, 0, START + 2 * HOUR, 4, START - 1);
    harvest_since(f, 1, 1, START + MINUTE, 5, START + MINUTE);
    put_at(f, 1, 9, 2, START + MINUTE, 6);
    cr_assert(ledger(f).held > 1 && ledger(f).held <= ledger(f).number);
}

/* Before the centre has answered, what processes counted before the start is not sealed; then it is. */
STORE_TEST(segment_is_held_until_the_centre_has_answered)
{
    begin_with_old_counts(f);
    cr_assert_eq(ledger(f).open.uploads, 3, "5 grew the upload of 3");
    cr_assert_eq(seal(f, UINT64_MAX), 1);
    cr_assert_eq(ledger(f).sealed.ticks, 1 + 5 + 1 + 6);
    const uint8_t other[SEGMENT_EPOCH_SIZE] = {255, 1};
    OK(f, store_relay_begin(f->w, other, START + HOUR, &f->e)); /* another machine has the epoch: that is no start */
    cr_assert(!resolve(f, false, 1000) && ledger(f).held == 0);
    cr_assert_eq(seal(f, UINT64_MAX), 2);
    const struct store_relay r = ledger(f);
    cr_assert(r.open_segments == 0 && r.withdrawn.uploads == 0 && r.number < 1000);
    harvest_since(f, 2, 1, START + 2 * HOUR, 4, START - 1);
    cr_assert_eq(seal(f, UINT64_MAX), 1, "it was answered");
}

/* The centre has a later state: what was held counts here only, and what is read later of the time before the start. */
STORE_TEST(segment_of_a_database_that_went_back)
{
    begin_with_old_counts(f);
    cr_assert(resolve(f, true, 1000) && !resolve(f, true, 2000));
    struct store_relay r = ledger(f);
    cr_assert(r.held == 0 && r.number >= 1000 && r.number < 2000);
    cr_assert(r.withdrawn.uploads == 2 && r.withdrawn.ticks == 1 + 3 + 1 + 4 && r.open.ticks == 1 + 5 + 1 + 6);
    harvest_since(f, 3, 0, START + 3 * HOUR, 7, START - 1);
    harvest_since(f, 3, 1, START + 3 * HOUR, 8, START + 3 * HOUR);
    r = ledger(f);
    cr_assert(r.withdrawn.uploads == 3 && r.withdrawn.ticks == 2 + 7 + 1 + 7);
    uint64_t number = 0, dropped = 0, ticks = 0;
    meet(f, first_centre, 0);
    while (seal(f, UINT64_MAX)) {
        struct sent *sent = list_sent(f, 0);
        for (size_t i = 0; i < sent->n; i++) {
            const int64_t hour = sent->s[i].hour - START / HOUR;
            dropped |= sent->s[i].kind == SEGMENT_DROPPED && hour >= 0 && hour < 8 ? 1u << hour : 0;
            acknowledge(f, &sent->s[i], first_centre, ++number, STORE_SEGMENT_COUNTED);
        }
        ticks += sent->ticks;
        free_sent(sent);
    }
    cr_assert_eq(dropped & 5, 5, "the hours of what was held are marked");
    cr_assert_eq(ticks, 1 + 5 + 1 + 6 + 1 + 8);
}

/* What begins in the second of the start, after it, is not held, and goes to the centre. */
STORE_TEST(segment_of_a_process_that_begins_after_the_start)
{
    begin_with_old_counts(f);
    const uint64_t open = ledger(f).open.ticks;
    harvest_since(f, 4, 0, START + 9, 7, START);
    harvest_since(f, 5, 0, START + MINUTE, 8, START + 1);
    cr_assert(resolve(f, true, 1000));
    const struct store_relay r = ledger(f);
    cr_assert_eq(r.withdrawn.ticks, 1 + 3 + 1 + 4);
    cr_assert_eq(r.open.ticks, open - (1 + 3 + 1 + 4) + 1 + 7 + 1 + 8);
}

/* The same of a process that begins in the second of a restore, after the start that follows. */
Test(store_sqlite, segment_of_a_process_that_begins_after_a_restore)
{
    struct fixture f;
    struct timespec before, now;
    fixture_open(&f);
    begin(&f, 1);
    put_at(&f, 1, 9, 1, NOON, 1);
    do { /* in one second */
        cr_assert_eq(clock_gettime(CLOCK_REALTIME, &before), 0);
        OK(&f, store_sqlite_renew(f.w, &f.e));
        cr_assert_eq(clock_gettime(CLOCK_REALTIME, &now), 0);
    } while (now.tv_sec != before.tv_sec);
    fixture_reopen(&f);
    const int64_t start = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    OK(&f, store_relay_begin(f.w, (const uint8_t *)"epoch epoch!", start, &f.e));
    harvest_since(&f, 1, 0, start + 9, 3, start - INT64_C(1000000000));
    harvest_since(&f, 2, 0, start + 9, 4, start + 1);
    const struct store_relay r = ledger(&f);
    cr_assert(r.withdrawn.ticks == 1 + 3 && r.open.ticks == 1 + 1 + 1 + 4);
    fixture_close(&f);
}
