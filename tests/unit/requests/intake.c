/* What hosts send, with a real store: counted, repeated, in conflict, refused. */
#include <stdlib.h>
#include <string.h>

#include "proto/segment.h"
#include "proto/varint.h"
#include "tests/unit/requests/bed.h"

TestSuite(intake, .init = bed_setup, .fini = bed_teardown, .timeout = 300);

static const uint8_t host[] = "identity-of-one", other[] = "identity-of-two"; /* 16 bytes with their NUL */
static const uint8_t epoch[] = "first-epoch";                                 /* 12 bytes with its NUL */

/* One upload in a request of its own. */
struct sent {
    struct intake_parcel parcel; /* first */
    struct intake_item item;
    uint8_t *bytes; /* owned; NULL: not */
    bool done;
};

/* Only the writer's thread may use the store. */
struct arrival {
    struct writer_job job;
    struct store_arrival as;
    bool done;
};

static enum profd_status arrival_run(struct writer_job *job, struct store *store, struct profd_error *e)
{
    struct store_admission out;

    return store_admit_hosts(store, &((struct arrival *)job)->as, 1, &out, e);
}

static void arrival_done(struct writer_job *job)
{
    ((struct arrival *)job)->done = true;
    loop_stop(bed.loop);
}

static void arrive(const uint8_t *identity, const char *name)
{
    static const struct writer_job_type type = {.run = arrival_run, .done = arrival_done};
    struct arrival a = {.as = {.name = name, .number = 1, .now = loop_clock(), .tenant = STORE_TENANT}};

    memcpy(a.as.host, identity, sizeof a.as.host);
    cr_assert_eq(writer_submit(bed.writer, &a.job, &type, NULL), PROFD_OK);
    while (!a.done) {
        bed_run(100);
    }
    cr_assert_eq(a.job.status, PROFD_OK, "%s", a.job.error.sentence);
}

/* A sum with one arc of this many calls, always of the same time; the caller frees it. */
static uint8_t *make_upload(uint64_t sequence, uint64_t calls, size_t *n)
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

static void sent_done(struct intake_parcel *p)
{
    ((struct sent *)p)->done = true;
    loop_stop(bed.loop);
}

static void fill(struct sent *s, const uint8_t *identity, uint32_t tenant, const uint8_t *bytes, size_t n)
{
    *s = (struct sent){.parcel = {.tenant = tenant, .name = "a.example", .count = 1, .done = sent_done}};
    s->parcel.items = &s->item;
    memcpy(s->parcel.host, identity, sizeof s->parcel.host);
    memcpy(s->item.delivery.host, identity, sizeof s->item.delivery.host);
    s->item.delivery.bytes = bytes;
    s->item.delivery.size = n;
    s->item.delivery.received = loop_clock();
}

static void put_bytes(struct sent *s, const uint8_t *identity, uint8_t *bytes, size_t n)
{
    struct profd_error e;

    fill(s, identity, STORE_TENANT, bytes, n);
    s->bytes = bytes;
    cr_assert_eq(intake_reserve(bed.intake, &s->parcel, &e), PROFD_OK, "%s", e.sentence);
    intake_put(bed.intake, &s->parcel);
}

static void put(struct sent *s, const uint8_t *identity, uint64_t sequence, uint64_t calls)
{
    size_t n;
    uint8_t *bytes = make_upload(sequence, calls, &n);

    put_bytes(s, identity, bytes, n);
}

static void wait_for(struct sent *s)
{
    while (!s->done) {
        bed_run(100);
    }
    free(s->bytes);
    s->bytes = NULL;
}

static void expect_outcome(struct sent *s, enum store_segment_outcome outcome, uint64_t number)
{
    wait_for(s);
    cr_assert_eq(s->parcel.status, PROFD_OK, "%s", s->parcel.error.sentence);
    cr_assert_eq(s->item.status, PROFD_OK, "%s", s->item.error.sentence);
    cr_assert_eq(s->item.receipt.outcome, outcome);
    cr_assert_eq(s->item.receipt.number, number);
    cr_assert_eq(s->item.delivery.sequence ? memcmp(s->item.delivery.epoch, epoch, sizeof epoch) : 0, 0);
}

Test(intake, only_hosts_that_have_arrived_and_uploads_with_ids_are_stored)
{
    struct sent early, nameless;

    put(&early, host, 1, 5);
    wait_for(&early);
    cr_assert(!early.parcel.status && early.item.status == PROFD_REFUSED);
    arrive(host, "a.example");
    put_bytes(&nameless, host, (uint8_t *)strdup("no sequence"), 11);
    wait_for(&nameless);
    cr_assert(!nameless.parcel.status && nameless.item.status == PROFD_MALFORMED);
    cr_assert_eq(intake_get_counts(bed.intake)->segments.counted, 0);
    cr_assert_eq(intake_get_counts(bed.intake)->segments.refused, 2);
}

Test(intake, an_upload_counts_once_however_often_it_comes)
{
    const struct delivery_counts *counts = &intake_get_counts(bed.intake)->segments;
    struct sent s[4];

    arrive(host, "a.example");
    arrive(host, "a.example");
    put(&s[0], host, 1, 5);
    expect_outcome(&s[0], STORE_SEGMENT_COUNTED, 1);
    put(&s[1], host, 1, 5);
    expect_outcome(&s[1], STORE_SEGMENT_COUNTED, 1);
    put(&s[2], host, 2, 5);
    put(&s[3], host, 2, 5); /* both in one transaction */
    expect_outcome(&s[2], STORE_SEGMENT_COUNTED, 2);
    expect_outcome(&s[3], STORE_SEGMENT_COUNTED, 2);
    cr_assert(counts->counted == 2 && counts->again == 2 && !counts->refused && !counts->conflicts);
}

Test(intake, a_second_content_of_an_id_is_a_conflict)
{
    struct sent s;
    uint8_t *bytes;
    size_t n;

    arrive(host, "a.example");
    arrive(other, "b.example");
    put(&s, host, 1, 5);
    expect_outcome(&s, STORE_SEGMENT_COUNTED, 1);
    put(&s, host, 1, 6);
    expect_outcome(&s, STORE_SEGMENT_CONFLICT, 1);
    put(&s, other, 1, 5);
    expect_outcome(&s, STORE_SEGMENT_COUNTED, 1); /* the epoch is the tenant's */
    bytes = make_upload(3, 5, &n);
    bytes[n - 1] ^= 1; /* of its checksum */
    put_bytes(&s, host, bytes, n);
    expect_outcome(&s, STORE_SEGMENT_PUT_ASIDE, 2);
    cr_assert_eq(intake_get_counts(bed.intake)->segments.conflicts, 1);
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

static enum profd_status reserve(struct sent *s, const uint8_t *identity, uint32_t tenant)
{
    size_t size;
    const uint8_t *large = make_large(&size);

    fill(s, identity, tenant, large, size);
    return intake_reserve(bed.intake, &s->parcel, NULL);
}

/* Large uploads of a host wait to be stored: it is told to wait, others are not. */
Test(intake, a_host_does_not_take_the_memory_of_all)
{
    struct sent s[3];

    cr_assert_eq(reserve(&s[0], host, STORE_TENANT), PROFD_OK);
    cr_assert_eq(reserve(&s[1], host, STORE_TENANT), PROFD_BUSY);
    cr_assert_eq(reserve(&s[2], other, STORE_TENANT), PROFD_OK);
    intake_leave(bed.intake, &s[0].parcel);
    cr_assert_eq(reserve(&s[0], host, STORE_TENANT), PROFD_OK);
    intake_leave(bed.intake, &s[0].parcel);
    intake_leave(bed.intake, &s[2].parcel);
}

/* The same for the hosts of a tenant together: those of another are not told to wait. */
Test(intake, a_tenant_does_not_take_the_memory_of_all)
{
    static const uint8_t of_bank[] = "identity-of-bank";
    struct sent s[5], bank;
    uint8_t identities[5][16] = {{0}};

    for (uint8_t i = 0; i < 5; i++) {
        identities[i][0] = (uint8_t)(1 + i);
    }
    for (uint8_t i = 0; i < 3; i++) {
        cr_assert_eq(reserve(&s[i], identities[i], STORE_TENANT), PROFD_OK);
    }
    cr_assert_eq(reserve(&s[3], identities[3], STORE_TENANT), PROFD_BUSY);
    cr_assert_eq(reserve(&bank, of_bank, STORE_TENANT - 1), PROFD_OK);
    for (uint8_t i = 0; i < 3; i++) {
        intake_leave(bed.intake, &s[i].parcel);
    }
    intake_leave(bed.intake, &bank.parcel);
}
