/* ARRIVE and DELIVER over a real socket, with a real store: refused, accepted, repeated, in conflict. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/segment.h"
#include "proto/varint.h"
#include "tests/unit/requests/bed.h"

TestSuite(centre, .init = bed_setup, .fini = bed_teardown, .timeout = 300);

static const uint8_t host[] = "identity-of-one", other[] = "identity-of-two"; /* 16 bytes with their NUL */
static const uint8_t epoch[] = "first-epoch";                                 /* 12 bytes with its NUL */

static int join_gate(void)
{
    return bed_join_peer(&(struct peer){.uid = 990, .may_deliver = true});
}

static void put_arrive(int client, uint32_t tag, const uint8_t *identity, const char *name, uint32_t version)
{
    const struct message m = {.type = FRAME_ARRIVE,
                              .as.arrive = {.host = {identity, identity ? 16 : 0},
                                            .name = name,
                                            .clock = (uint64_t)loop_clock(),
                                            .number = 1,
                                            .segment_oldest = version,
                                            .segment_newest = version}};

    bed_put(client, &m, tag);
}

static const struct message *expect(int client, uint32_t tag, unsigned type)
{
    struct frame f;
    const struct message *m = bed_take(client, &f);

    cr_assert_eq(f.type, type, "type %u: %s", f.type, f.type == FRAME_NACK ? m->as.nack.sentence : "");
    cr_assert_eq(f.tag, tag);
    return m;
}

static void arrive(int client, const uint8_t *identity, const char *name)
{
    put_arrive(client, 1, identity, name, SEGMENT_VERSION);
    cr_assert_eq(expect(client, 1, FRAME_ADMIT)->as.admit.incarnation.size, 16);
}

/* A segment with one arc of this many calls, always of the same time; the caller frees it. */
static uint8_t *make_segment(uint64_t sequence, uint64_t calls, size_t *n)
{
    static int64_t when;
    const struct message_build build = {BED_BUILD, "/usr/bin/program"};
    struct segment s = {.kind = SEGMENT_COUNTS, .sequence = sequence, .uid = 1000, .uploads = 1, .build_count = 1};
    uint64_t row[COUNTS_GROUPS] = {calls};
    uint8_t *out = NULL, *shares;

    memcpy(s.epoch, epoch, sizeof s.epoch);
    when = when ? when : loop_clock();
    s.last = s.ended = when;
    s.first = s.last - 1000;
    s.processes[0] = 1;
    s.builds = &build;
    cr_assert_eq(counts_init_sizes(&s.counts, &(struct counts_sizes){.arcs = 1, .sorted = true}, NULL), PROFD_OK);
    *s.counts.from = 0x1100;
    *s.counts.to = 0x1200;
    *s.counts.calls = calls;
    cr_assert_eq(
        counts_encode_shares(&s.counts, &(struct counts_shares){NULL, row, NULL}, &shares, &s.shares.size, NULL),
        PROFD_OK);
    s.shares.data = shares;
    cr_assert_eq(segment_encode(&s, &out, n, NULL), PROFD_OK);
    free(shares);
    counts_done(&s.counts);
    return out;
}

static void put_bytes(int client, uint32_t tag, const uint8_t *identity, uint64_t sequence, const void *bytes, size_t n)
{
    const struct message m = {
        .type = FRAME_DELIVER,
        .as.deliver = {.host = {identity, 16}, .epoch = {epoch, 12}, .sequence = sequence, .segment = {bytes, n}}};

    bed_put(client, &m, tag);
}

static void put_segment(int client, uint32_t tag, const uint8_t *identity, uint64_t sequence, uint64_t calls)
{
    size_t n;
    uint8_t *bytes = make_segment(sequence, calls, &n);

    put_bytes(client, tag, identity, sequence, bytes, n);
    free(bytes);
}

static void expect_outcome(int client, uint32_t tag, enum store_segment_outcome outcome, uint64_t number)
{
    const struct message_acknowledge *a = &expect(client, tag, FRAME_ACKNOWLEDGE)->as.acknowledge;

    cr_assert_eq(a->outcome, (uint32_t)outcome);
    cr_assert_eq(a->number, number);
    cr_assert(a->epoch.size == 12 && !memcmp(a->epoch.data, epoch, 12) && a->incarnation.size == 16);
}

Test(centre, only_a_gate_speaks_for_hosts)
{
    const int client = bed_join(1000, false), admin = bed_join(1001, true);

    put_arrive(client, 1, host, "a.example", SEGMENT_VERSION);
    bed_expect_nack(client, 1, PROFD_FORBIDDEN);
    put_segment(client, 2, host, 1, 5);
    bed_expect_nack(client, 2, PROFD_FORBIDDEN);
    put_arrive(admin, 3, host, "a.example", SEGMENT_VERSION);
    bed_expect_nack(admin, 3, PROFD_FORBIDDEN);
    cr_assert_eq(intake_get_counts(bed.intake)->arrived, 0);
    close(client), close(admin);
}

Test(centre, hosts_that_are_not_valid_are_refused)
{
    const int gate = join_gate();
    char name[LIMIT_LABEL_VALUE + 2];

    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = 0;
    put_arrive(gate, 1, NULL, "a.example", SEGMENT_VERSION);
    bed_expect_nack(gate, 1, PROFD_MALFORMED);
    put_arrive(gate, 2, host, "", SEGMENT_VERSION);
    bed_expect_nack(gate, 2, PROFD_MALFORMED);
    put_arrive(gate, 3, host, name, SEGMENT_VERSION);
    bed_expect_nack(gate, 3, PROFD_MALFORMED);
    put_arrive(gate, 4, host, "a.example", SEGMENT_VERSION + 1);
    bed_expect_nack(gate, 4, PROFD_UNKNOWN_VERSION);
    put_segment(gate, 5, host, 1, 5);
    bed_expect_nack(gate, 5, PROFD_REFUSED); /* it has not arrived */
    put_bytes(gate, 6, host, 0, "no sequence", 11);
    bed_expect_nack(gate, 6, PROFD_MALFORMED);
    cr_assert_eq(intake_get_counts(bed.intake)->segments.counted, 0);
    close(gate);
}

Test(centre, a_segment_counts_once_however_often_it_comes)
{
    const int gate = join_gate(), second = join_gate();
    const struct delivery_counts *counts = &intake_get_counts(bed.intake)->segments;

    arrive(gate, host, "a.example");
    arrive(gate, host, "a.example");
    put_segment(gate, 2, host, 1, 5);
    expect_outcome(gate, 2, STORE_SEGMENT_COUNTED, 1);
    put_segment(second, 3, host, 1, 5); /* over another connection of the gate */
    expect_outcome(second, 3, STORE_SEGMENT_COUNTED, 1);
    put_segment(gate, 4, host, 2, 5);
    put_segment(gate, 5, host, 2, 5); /* both in one transaction */
    expect_outcome(gate, 4, STORE_SEGMENT_COUNTED, 2);
    expect_outcome(gate, 5, STORE_SEGMENT_COUNTED, 2);
    cr_assert(counts->counted == 2 && counts->again == 2 && !counts->refused && !counts->conflicts);
    close(gate), close(second);
}

Test(centre, a_second_content_of_a_key_is_a_conflict_and_told)
{
    const int gate = join_gate();
    const struct message *m;

    arrive(gate, host, "a.example");
    arrive(gate, other, "b.example");
    put_segment(gate, 2, host, 1, 5);
    expect_outcome(gate, 2, STORE_SEGMENT_COUNTED, 1);
    put_arrive(gate, 3, host, "a.example", SEGMENT_VERSION);
    cr_assert_eq(expect(gate, 3, FRAME_ADMIT)->as.admit.conflict.size, 0);
    put_segment(gate, 4, host, 1, 6);
    expect_outcome(gate, 4, STORE_SEGMENT_CONFLICT, 1);
    put_arrive(gate, 5, host, "a.example", SEGMENT_VERSION);
    m = expect(gate, 5, FRAME_ADMIT);
    cr_assert(m->as.admit.conflict.size == 12 && !memcmp(m->as.admit.conflict.data, epoch, 12));
    put_arrive(gate, 6, other, "b.example", SEGMENT_VERSION);
    cr_assert_eq(expect(gate, 6, FRAME_ADMIT)->as.admit.conflict.size, 0, "not of another host");
    put_segment(gate, 7, other, 1, 5);
    expect_outcome(gate, 7, STORE_SEGMENT_COUNTED, 1); /* the epoch is the tenant's */
    put_bytes(gate, 8, host, 3, "poison", 6);
    expect_outcome(gate, 8, STORE_SEGMENT_PUT_ASIDE, 2);
    cr_assert_eq(intake_get_counts(bed.intake)->segments.conflicts, 1);
    close(gate);
}

Test(centre, nothing_is_acknowledged_that_a_failed_store_does_not_have)
{
    const int gate = join_gate();

    arrive(gate, host, "a.example");
    bed_fail_store();
    put_segment(gate, 2, host, 1, 5);
    bed_expect_nack(gate, 2, PROFD_IO);
    put_arrive(gate, 3, host, "a.example", SEGMENT_VERSION);
    bed_expect_nack(gate, 3, PROFD_IO);
    close(gate);
}

/* The counts in these few bytes say that they take 11 MB of memory. */
static const uint8_t *make_large(size_t *size)
{
    static uint8_t large[16384];
    struct counts c;
    uint8_t *bytes, *p = large;
    size_t n;

    cr_assert_eq(counts_init_sizes(&c, &(struct counts_sizes){.arcs = LIMIT_SEGMENT_ROWS, .sorted = true}, NULL),
                 PROFD_OK);
    cr_assert_eq(counts_encode(&c, &bytes, &n, NULL), PROFD_OK);
    counts_done(&c);
    *p++ = 8 << 3 | 2;
    p = varint_put(p, n);
    cr_assert_leq(n, (size_t)(large + sizeof large - p));
    memcpy(p, bytes, n);
    free(bytes);
    *size = n + (size_t)(p - large);
    return large;
}

/* Large segments of a host wait to be stored: it is told to wait, others are not. */
Test(centre, a_host_does_not_take_the_memory_of_all)
{
    const int gate = join_gate();
    size_t size;
    const uint8_t *large = make_large(&size);

    arrive(gate, host, "a.example");
    arrive(gate, other, "b.example");
    put_bytes(gate, 2, host, 1, large, size);
    put_bytes(gate, 3, host, 2, large, size);
    put_bytes(gate, 4, other, 1, large, size);
    bed_expect_nack(gate, 3, PROFD_BUSY);
    expect_outcome(gate, 2, STORE_SEGMENT_PUT_ASIDE, 1);
    expect_outcome(gate, 4, STORE_SEGMENT_PUT_ASIDE, 1); /* it waited */
    put_bytes(gate, 5, host, 2, large, size);
    expect_outcome(gate, 5, STORE_SEGMENT_PUT_ASIDE, 2);
    close(gate);
}

/* An enrolment with a new token of the tenant bank. Only the writer's thread may use the store. */
struct enrolment {
    struct writer_job job;
    const uint8_t *identity, *key;
    enum profd_status status;
    enum store_enrol_verdict verdict;
    struct profd_error error;
    bool done;
};

static void run_enrolment(struct store *store, const struct profd_error *full, struct writer_job *const *jobs, size_t n)
{
    struct enrolment *a = (struct enrolment *)jobs[0];
    const int64_t now = loop_clock();
    struct store_enrol_token t = {
        .tenant = "bank", .name = "", .uses = 1, .expires = now + 1000000000000, .created = now};
    struct store_enrolling x = {.name = "z", .machine = "m", .version = "1", .now = now, .not_after = t.expires};
    struct store_enrolment out;
    bool spent;

    (void)full;
    (void)n;
    memcpy(x.host, a->identity, sizeof x.host);
    memcpy(x.key, a->key, sizeof x.key);
    a->status = store_put_enrol_token(store, &t, &a->error);
    if (a->status == PROFD_OK) {
        a->status = store_enrol(store, &x, &out, &a->verdict, &spent, &a->error);
    }
}

static void end_enrolment(struct writer_job *job)
{
    ((struct enrolment *)job)->done = true;
    loop_stop(bed.loop);
}

static void enrol_at_bank(const uint8_t *identity, const uint8_t *key)
{
    static const struct writer_job_type type = {.run = run_enrolment, .done = end_enrolment, .drop = end_enrolment};
    struct enrolment a = {.identity = identity, .key = key, .status = PROFD_INTERNAL};

    cr_assert_eq(writer_submit(bed.writer, &a.job, &type, &a.error), PROFD_OK, "%s", a.error.sentence);
    while (!a.done) {
        bed_run(100);
    }
    cr_assert_eq(a.status, PROFD_OK, "%s", a.error.sentence);
    cr_assert_eq(a.verdict, STORE_ENROLLED);
}

/* The same for the hosts of a tenant together: those of another are not told to wait. */
Test(centre, a_tenant_does_not_take_the_memory_of_all)
{
    static const uint8_t of_bank[] = "identity-of-bank", key[32] = "key";
    const int gate = join_gate();
    size_t size;
    const uint8_t *large = make_large(&size);
    uint8_t identities[5][16] = {{0}};

    enrol_at_bank(of_bank, key);
    for (uint8_t i = 0; i < 5; i++) {
        identities[i][0] = (uint8_t)(1 + i);
        arrive(gate, identities[i], "a.example");
    }
    bed_put(gate,
            &(struct message){.type = FRAME_ARRIVE,
                              .as.arrive = {.host = {of_bank, 16},
                                            .name = "z",
                                            .clock = (uint64_t)loop_clock(),
                                            .segment_oldest = SEGMENT_VERSION,
                                            .segment_newest = SEGMENT_VERSION,
                                            .key = {key, sizeof key},
                                            .tenant = "bank"}},
            1);
    expect(gate, 1, FRAME_ADMIT);
    for (uint8_t i = 0; i < 4; i++) {
        put_bytes(gate, 2u + i, identities[i], 1, large, size);
    }
    put_bytes(gate, 6, of_bank, 1, large, size);
    bed_expect_nack(gate, 5, PROFD_BUSY);
    expect_outcome(gate, 2, STORE_SEGMENT_PUT_ASIDE, 1);
    expect_outcome(gate, 3, STORE_SEGMENT_PUT_ASIDE, 1); /* these waited */
    expect_outcome(gate, 4, STORE_SEGMENT_PUT_ASIDE, 1);
    expect_outcome(gate, 6, STORE_SEGMENT_PUT_ASIDE, 2); /* of another tenant */
    close(gate);
}
