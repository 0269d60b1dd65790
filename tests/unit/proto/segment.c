/* What a segment may not be is refused with the rule, by the encoder and by the decoder, before memory is taken. */
#include <criterion/criterion.h>
#include <nettle/sha2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/segment_internal.h"

struct sample {
    struct segment s;
    struct message_build builds[2];
    struct message_label labels[2];
    struct counts_histogram histograms[2];
    uint32_t histogram_rank[2], bin_index[3], from_build[2], to_build[2], rank[2];
    uint64_t from[2], to[2], shares[6];
    uint16_t groups[5];
};

static struct sample good(void)
{
    struct sample x = {
        .s = {.kind = SEGMENT_COUNTS, .epoch = "epoch-epoch", .sequence = 7, .hour = 490000, .uid = 1000, .uploads = 3},
        .builds = {{"aa00", "/bin/a"}, {"bb11", ""}},
        .labels = {{"a", "x"}, {"b", "y"}},
        .histograms = {{.geometry = {0, 10, 0x1000, 0x2000, 100, "seconds", 's'}, .first = 0, .used = 2},
                       {.geometry = {1, 10, 0x1000, 0x2000, 100, "seconds", 's'}, .first = 2, .used = 1}},
        .histogram_rank = {1, 0},
        .bin_index = {3, 9, 0},
        .from_build = {0, COUNTS_NOWHERE},
        .to_build = {1, 0},
        .rank = {0, 1},
        .from = {5, 0},
        .to = {6, 6},
        .shares = {1, 2, 3, 4, 5, 6},
        .groups = {1, 0x8000, 2, 0x8001, 4},
    };
    x.s.first = x.s.hour * SEGMENT_HOUR - 5;
    x.s.last = x.s.ended = x.s.hour * SEGMENT_HOUR;
    x.s.build_count = x.s.label_count = 2;
    x.s.counts = (struct segment_counts){.histogram_count = 2, .bin_count = 3, .arc_count = 2, .share_count = 6};
    return x;
}

/* The sample's arrays, where it lies now. */
static struct segment *aim(struct sample *x)
{
    struct segment_counts *c = &x->s.counts;
    x->s.builds = x->builds;
    x->s.labels = x->labels;
    c->histograms = x->histograms;
    c->histogram_rank = x->histogram_rank;
    c->bin_index = x->bin_index;
    c->from_build = x->from_build;
    c->to_build = x->to_build;
    c->from = x->from;
    c->to = x->to;
    c->rank = x->rank;
    c->groups = x->groups;
    c->shares = x->shares;
    return &x->s;
}

static enum profd_status encode(struct sample *x)
{
    uint8_t *bytes = NULL;
    size_t n;
    struct profd_error e = {""};
    enum profd_status status = segment_encode(aim(x), &bytes, &n, &e);
    cr_assert((status == PROFD_OK) == (e.sentence[0] == 0), "%s", e.sentence);
    free(bytes);
    return status;
}

#define REFUSED(change)                                                                                                \
    do {                                                                                                               \
        struct sample x = good();                                                                                      \
        change;                                                                                                        \
        cr_assert_eq(encode(&x), PROFD_MALFORMED, "%s", #change);                                                      \
    } while (0)

Test(segment, every_rule_is_checked)
{
    struct sample fine = good();
    cr_assert_eq(encode(&fine), PROFD_OK);
    REFUSED(x.s.kind = SEGMENT_KINDS);
    REFUSED(x.s.sequence = 0);
    REFUSED(x.s.sequence = (uint64_t)1 << 63);
    REFUSED(x.s.hour = -1);
    REFUSED(x.s.hour++);
    REFUSED(x.s.first = x.s.last + 1);
    REFUSED(x.s.first = -1);
    REFUSED(x.s.ended = x.s.last + 1);
    REFUSED(x.s.ended = x.s.last - 1);
    REFUSED(x.s.first = x.s.last; x.s.last += 2; x.s.ended--);
    REFUSED(x.s.inexact = INEXACT_NOT_READ);
    REFUSED(x.s.uploads = UINT64_MAX);
    REFUSED(x.s.processes[15] = UINT64_MAX);
    REFUSED(x.s.build_count = 0);
    REFUSED(x.s.program = 2);
    REFUSED(x.builds[0].build_id = "AA00");
    REFUSED(x.builds[0].build_id = "bb11");
    REFUSED(x.builds[0].name = "\xff");
    REFUSED(x.labels[0].name = "b");
    REFUSED(x.labels[0].name = "1");
    REFUSED(x.labels[0].value = "");
    REFUSED(x.histograms[0].build = 1; x.histograms[1].build = 0);
    REFUSED(x.histograms[1].build = 2);
    REFUSED(x.histograms[1].build = 0);
    REFUSED(x.histograms[0].high = x.histograms[0].low);
    REFUSED(x.histograms[0].rate = 0);
    REFUSED(memcpy(x.histograms[1].dimension, "collector", 10));
    REFUSED(x.histograms[1].first = 1);
    REFUSED(x.histograms[1].used = 2);
    REFUSED(x.histograms[1].used = 0);
    REFUSED(x.histogram_rank[0] = 0);
    REFUSED(x.histogram_rank[0] = 2);
    REFUSED(x.bin_index[1] = 3);
    REFUSED(x.bin_index[1] = 10);
    REFUSED(x.from_build[0] = COUNTS_NOWHERE);
    REFUSED(x.from_build[0] = 2);
    REFUSED(x.to_build[0] = 2);
    REFUSED(x.rank[1] = 0);
    REFUSED(x.groups[0] = 0);
    REFUSED(x.groups[3] = 1);
    REFUSED(x.shares[0] = 0);
    REFUSED(x.shares[0] = (uint64_t)1 << 63);
    REFUSED(x.shares[3] = x.shares[4] = SEGMENT_COUNT_MAX);
}

Test(segment, a_sum_that_stopped_says_so_and_an_arc_may_have_no_calls)
{
    struct sample x = good();
    x.shares[3] = x.shares[4] = SEGMENT_COUNT_MAX;
    x.s.saturated = true;
    cr_assert_eq(encode(&x), PROFD_OK);
    x = good();
    x.groups[4] = 0;
    x.s.counts.share_count = 5;
    cr_assert_eq(encode(&x), PROFD_OK);
}

Test(segment, rows_are_limited)
{
    struct sample x = good();
    x.s.counts.arc_count = LIMIT_SEGMENT_ROWS - 2 * LIMIT_SEGMENT_HISTOGRAM - 2;
    cr_assert_eq(encode(&x), PROFD_TOO_LARGE);
}

/* Of a withdrawn or dropped segment only the key is encoded. */
Test(segment, a_key_alone)
{
    for (unsigned kind = SEGMENT_WITHDRAWN; kind < SEGMENT_KINDS; kind++) {
        struct segment s = {.kind = (enum segment_kind)kind, .epoch = "0123456789a", .sequence = 300, .hour = 5}, back;
        uint8_t *bytes, *content;
        size_t n, size;
        cr_assert_eq(segment_encode(&s, &bytes, &n, NULL), PROFD_OK);
        cr_assert_eq(segment_unpack(bytes, n, &content, &size, NULL), PROFD_OK);
        cr_assert_eq(size, 16);
        cr_assert_eq(segment_decode(bytes, n, &back, NULL), PROFD_OK);
        cr_assert(back.kind == s.kind && back.sequence == 300 && back.hour == 5 && back.build_count == 0);
        cr_assert_arr_eq(back.epoch, s.epoch, SEGMENT_EPOCH_SIZE);
        segment_done(&back);
        free(bytes);
        free(content);
    }
}

static enum profd_status decode_content(const void *content, size_t n)
{
    uint8_t *bytes;
    size_t size;
    struct segment s;
    cr_assert_eq(segment_pack(content, n, &bytes, &size, NULL), PROFD_OK);
    enum profd_status status = segment_decode(bytes, size, &s, NULL);
    free(bytes);
    if (status == PROFD_OK) {
        segment_done(&s);
    }
    return status;
}

Test(segment, a_number_has_one_encoding)
{
    cr_assert_eq(decode_content("\1epoch-epoch!\1\5", 15), PROFD_OK);
    cr_assert_eq(decode_content("\1epoch-epoch!\1\5", 14), PROFD_MALFORMED);
    cr_assert_eq(decode_content("\1epoch-epoch!\1\5\0", 16), PROFD_MALFORMED);
    cr_assert_eq(decode_content("\1epoch-epoch!\x81\0\5", 16), PROFD_MALFORMED);
    cr_assert_eq(decode_content("\3epoch-epoch!\1\5", 15), PROFD_MALFORMED);
}

static enum profd_status decode_head(uint8_t version, uint64_t size)
{
    struct segment s;
    uint8_t *bytes;
    size_t n;
    cr_assert_eq(segment_pack((const uint8_t *)"x", 1, &bytes, &n, NULL), PROFD_OK);
    uint8_t longer[64] = {version};
    uint8_t *p = varint_put(longer + 1 + SEGMENT_DIGEST_SIZE, size);
    memcpy(p, bytes + 34, n - 34);
    enum profd_status status = segment_decode(longer, (size_t)(p - longer) + n - 34, &s, NULL);
    free(bytes);
    return status;
}

Test(segment, sizes_are_checked_before_memory_is_taken)
{
    cr_assert_eq(decode_head(SEGMENT_VERSION + 1, 1), PROFD_UNKNOWN_VERSION);
    cr_assert_eq(decode_head(0, 1), PROFD_UNKNOWN_VERSION);
    cr_assert_eq(decode_head(1, 2), PROFD_MALFORMED);
    cr_assert_eq(decode_head(1, 40 << 20), PROFD_MALFORMED, "more than its bytes can hold");
    cr_assert_eq(decode_head(1, (uint64_t)LIMIT_SEGMENT_CONTENT + 1), PROFD_TOO_LARGE);
    cr_assert_eq(decode_head(1, UINT64_MAX), PROFD_TOO_LARGE);
}
