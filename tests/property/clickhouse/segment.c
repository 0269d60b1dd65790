/* Laws of segments as rows: the sum of the rows of a segment, in any order, is the sum that the segment is, down to the
 * bytes, spread included; one row has what is not of a group; rows that are cut off or break a rule are refused. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/segment.h"
#include "core/rollup_segment.h"
#include "store/incoming.h"
#include "tests/property/proto/segment_sample.h"

#define HOUR_COUNTED 480000u

struct encoded {
    uint8_t *counts, *spread;
    size_t size, spread_size;
};

static struct profd_error e;
#define OK(call) cr_assert_eq((call), PROFD_OK, "%s: %s", #call, e.sentence)

static struct encoded finish(struct rollup_sum *sum)
{
    struct rollup r;
    struct rollup_spread spread;
    struct encoded out;
    OK(rollup_sum_finish(sum, &r, &spread, &e));
    OK(rollup_encode(&r, &out.counts, &out.size, &e));
    OK(rollup_encode_spread(&r, &spread, &out.spread, &out.spread_size, &e));
    return out;
}

static struct encoded as_segment(const struct segment *s)
{
    struct arena *a = arena_new(0);
    struct rollup_sum *sum = rollup_sum_new(a);
    struct rollup r;
    struct rollup_spread spread;
    const struct profile_order at = incoming_order(HOUR_COUNTED, s->epoch, s->sequence);
    OK(rollup_from_segment(s, &at, a, &r, &spread, &e));
    OK(rollup_sum_add(sum, &r, &spread, &e));
    const struct encoded out = finish(sum);
    arena_free(a);
    return out;
}

static struct segment_row make_head(const struct segment *s)
{
    static const uint64_t numbers[BUILDS] = {1, 2, 3, UINT64_MAX};
    struct segment_row head = {.program = "0123456789abcdef",
                               .sent = segment_row_sent(s),
                               .sequence = s->sequence,
                               .number = 77,
                               .hour = HOUR_COUNTED,
                               .uid = 7,
                               .generation = 3,
                               .host = 9,
                               .first = s->first,
                               .last = s->last,
                               .ended = s->ended,
                               .inexact = s->saturated ? INEXACT_SATURATED : 0,
                               .uploads = s->uploads,
                               .ticks = 5,
                               .calls = 6,
                               .stack_ticks = 8,
                               .build_count = s->build_count,
                               .nanoseconds = numbers,
                               .into = numbers,
                               .touching = numbers};
    memcpy(head.epoch, s->epoch, sizeof head.epoch);
    memset(head.digest, 5, sizeof head.digest);
    memset(head.series, 6, sizeof head.series);
    memcpy(head.processes, s->processes, sizeof head.processes);
    return head;
}

static void cr_same_row(const struct segment_row *x, const struct segment_row *head)
{
    cr_assert_str_eq(x->program, head->program);
    cr_assert(x->sent == head->sent && x->sequence == head->sequence && x->number == 77 && x->hour == head->hour);
    cr_assert(x->uid == 7 && x->generation == 3 && x->host == 9);
    cr_assert(memcmp(x->epoch, head->epoch, sizeof x->epoch) == 0 &&
              memcmp(x->digest, head->digest, sizeof x->digest) == 0 &&
              memcmp(x->series, head->series, sizeof x->series) == 0);
    cr_assert_eq(x->uploads, x->head ? head->uploads : 0);
    cr_assert_eq(x->build_count, x->head ? head->build_count : 0);
    if (x->head) {
        cr_assert(x->first == head->first && x->last == head->last && x->ended == head->ended);
        cr_assert(x->inexact == head->inexact && x->ticks == 5 && x->calls == 6 && x->stack_ticks == 8);
        cr_assert_eq(memcmp(x->processes, head->processes, sizeof x->processes), 0);
        cr_assert(memcmp(x->into, head->into, x->build_count * 8) == 0 &&
                  memcmp(x->touching, head->touching, x->build_count * 8) == 0 &&
                  memcmp(x->nanoseconds, head->nanoseconds, x->build_count * 8) == 0);
    }
}

static struct row_reader open_rows(const char *bytes, size_t n)
{
    struct row_reader r;
    uint8_t *copy = malloc(n + 1);
    memcpy(copy, bytes, n);
    rows_open(&r, copy, n);
    return r;
}

/* Rows of a segment, read; at most 16. */
struct read {
    struct segment_row rows[SEGMENT_GROUPS];
    struct rollup sums[SEGMENT_GROUPS];
    uint32_t n;
};

static void read_all(struct row_reader *r, struct arena *a, const struct segment *s, struct read *out)
{
    for (out->n = 0; rows_more(r); out->n++) {
        struct segment_row *x = &out->rows[out->n];
        cr_assert_lt(out->n, SEGMENT_GROUPS);
        cr_assert(segment_row_read_key(r, a, x) && segment_row_read_sums(r, a, x));
        OK(segment_row_read_counts(r, a, x, (uint32_t)s->build_count, &out->sums[out->n], &e));
    }
    cr_assert(!r->cut);
}

static struct encoded sum_up(const struct read *x)
{
    struct arena *a = arena_new(0);
    struct rollup_sum *sum = rollup_sum_new(a);
    uint32_t order[SEGMENT_GROUPS];
    for (uint32_t i = 0; i < x->n; i++) {
        order[i] = i;
    }
    shuffle(order, x->n);
    for (uint32_t i = 0; i < x->n; i++) {
        struct rollup_spread spread;
        OK(segment_row_spread(&x->sums[order[i]], x->rows[order[i]].group, a, &spread, &e));
        OK(rollup_sum_add(sum, &x->sums[order[i]], &spread, &e));
    }
    const struct encoded out = finish(sum);
    arena_free(a);
    return out;
}

static void done(struct encoded *x)
{
    free(x->counts);
    free(x->spread);
}

Test(segment_row, the_sum_of_the_rows_is_the_segment)
{
    static struct sample x;
    static struct read got;
    state = 0x452821e638d01377;
    for (unsigned round = 0; round < 3000; round++) {
        struct arena *a = arena_new(0);
        struct buffer b;
        uint32_t count;
        buffer_init(&b, 64 << 20);
        fill(&x);
        const struct segment_row head = make_head(&x.s);
        OK(segment_row_put(&head, &x.s, a, &b, &count, &e));
        cr_assert(!b.failed);
        struct row_reader r = open_rows(b.data, b.size);
        read_all(&r, a, &x.s, &got);
        cr_assert_eq(got.n, count);
        for (uint32_t i = 0; i < got.n; i++) {
            cr_same_row(&got.rows[i], &head);
            cr_assert(got.rows[i].group_rows == count && got.rows[i].head == (i == 0));
            cr_assert(i == 0 || got.rows[i].group > got.rows[i - 1].group);
        }
        struct encoded want = as_segment(&x.s), have = sum_up(&got);
        cr_assert(want.size == have.size && memcmp(want.counts, have.counts, have.size) == 0, "round %u", round);
        cr_assert(want.spread_size == have.spread_size && memcmp(want.spread, have.spread, have.spread_size) == 0);
        done(&want);
        done(&have);
        rows_close(&r);
        buffer_done(&b);
        arena_free(a);
    }
}

/* Skipping ends where reading does. */
Test(segment_row, counts_can_be_skipped)
{
    static struct sample x;
    state = 0xbe5466cf34e90c6c;
    for (unsigned round = 0; round < 300; round++) {
        struct arena *a = arena_new(0);
        struct buffer b;
        uint32_t count, n = 0;
        buffer_init(&b, 64 << 20);
        fill(&x);
        const struct segment_row head = make_head(&x.s);
        OK(segment_row_put(&head, &x.s, a, &b, &count, &e));
        struct row_reader r = open_rows(b.data, b.size);
        for (struct segment_row row; rows_more(&r); n++) {
            cr_assert(segment_row_read_key(&r, a, &row) && segment_row_read_sums(&r, a, &row));
            segment_row_skip_counts(&r);
        }
        cr_assert(!r.cut && n == count);
        rows_close(&r);
        buffer_done(&b);
        arena_free(a);
    }
}

/* Whatever a byte becomes, reading ends in bounds, and what it gives can be added. */
Test(segment_row, what_is_cut_off_or_damaged_is_refused)
{
    static struct sample x;
    unsigned refused = 0, accepted = 0;
    state = 0xc0ac29b7c97c50dd;
    for (unsigned round = 0; round < 3000; round++) {
        struct arena *a = arena_new(64 << 20);
        struct buffer b;
        uint32_t count;
        buffer_init(&b, 64 << 20);
        fill(&x);
        const struct segment_row head = make_head(&x.s);
        OK(segment_row_put(&head, &x.s, a, &b, &count, &e));
        const bool cut = round % 2 == 0;
        if (!cut) {
            b.data[below((uint32_t)b.size)] ^= (char)(1 + below(255));
        }
        struct row_reader r = open_rows(b.data, cut ? below((uint32_t)b.size) : b.size);
        struct rollup_sum *sum = rollup_sum_new(a);
        enum profd_status status = PROFD_OK;
        while (status == PROFD_OK && rows_more(&r)) {
            struct segment_row row;
            struct rollup counts;
            struct rollup_spread spread;
            status = segment_row_read_key(&r, a, &row) && segment_row_read_sums(&r, a, &row) ? PROFD_OK : PROFD_BUSY;
            if (status == PROFD_OK) {
                status = segment_row_read_counts(&r, a, &row, (uint32_t)x.s.build_count, &counts, &e);
            }
            if (status == PROFD_OK) {
                OK(segment_row_spread(&counts, row.group, a, &spread, &e));
                OK(rollup_sum_add(sum, &counts, &spread, &e));
            }
        }
        accepted += status == PROFD_OK;
        refused += status != PROFD_OK;
        rows_close(&r);
        buffer_done(&b);
        arena_free(a);
    }
    cr_assert(refused > 1000 && accepted > 200, "%u refused, %u accepted", refused, accepted);
}
