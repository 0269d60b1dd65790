/* What an upload of a host may not be is refused with the rule, before memory is taken. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/collector.h"
#include "proto/frame.h"
#include "proto/segment.h"

/* The fields of a sum with its counts, where they may be changed. */
struct sample {
    struct message_upload u;
    struct message_build builds[2];
    struct message_label labels[3];
    uint64_t processes[SEGMENT_GROUPS];
    struct counts counts;
    struct counts_histogram histograms[2];
    uint32_t bin_index[3], from_build[2], to_build[2], rank[2];
    uint64_t bin_ticks[3], from[2], to[2], calls[2], commit[2];
    uint64_t bins[3 * COUNTS_GROUPS], arcs[2 * COUNTS_GROUPS];
    bool plain;      /* without shares */
    uint8_t damaged; /* bits of the checksum */
};

#define HOUR ((uint64_t)SEGMENT_HOUR)

static struct sample good(void)
{
    struct sample x = {
        .u = {.sender = {(const uint8_t *)"epoch-epoch", 12},
              .sequence = 7,
              .start = 490000 * HOUR - 5,
              .end = 490000 * HOUR + 9,
              .ended = 490000 * HOUR,
              .uid = 1000,
              .uploads = 3,
              .build_count = 2,
              .label_count = 2,
              .group_count = SEGMENT_GROUPS},
        .builds = {{"aa00", "/bin/a"}, {"bb11", ""}},
        .labels = {{"a", "x"}, {"b", "y"}, {"c", ""}},
        .processes = {2},
        .counts = {.histogram_count = 2, .bin_count = 3, .arc_count = 2, .sorted = true},
        .histograms = {{.geometry = {0, 10, 0x1000, 0x2000, 100, "seconds", 's'}, .used = 2, .order = {0, 1}},
                       {.geometry = {1, 10, 0x1000, 0x2000, 100, "seconds", 's'}, .first = 2, .used = 1}},
        .bin_index = {3, 9, 0},
        .bin_ticks = {1, 2, 3},
        .from_build = {0, COUNTS_NOWHERE},
        .to_build = {1, 0},
        .rank = {0, 1},
        .from = {5, 0},
        .to = {6, 6},
        .calls = {9, 6},
    };
    x.bins[0] = 1;
    x.bins[COUNTS_GROUPS + 15] = 2;
    x.bins[2 * COUNTS_GROUPS + 1] = 3;
    x.arcs[0] = 4;
    x.arcs[15] = 5;
    x.arcs[COUNTS_GROUPS + 2] = 6;
    return x;
}

/* The bytes of the sample's upload; the caller frees *frame. */
static const uint8_t *pack(struct sample *x, uint8_t **frame, size_t *n)
{
    struct message m = {.type = FRAME_UPLOAD};
    struct counts *c = &x->counts;
    uint8_t *counts, *shares, digest[SEGMENT_DIGEST_SIZE] = {0};
    size_t counts_size, shares_size;
    c->histograms = x->histograms;
    c->bin_index = x->bin_index;
    c->bin_ticks = x->bin_ticks;
    c->from_build = x->from_build;
    c->to_build = x->to_build;
    c->from = x->from;
    c->to = x->to;
    c->calls = x->calls;
    c->commit = x->commit;
    c->rank = x->rank;
    x->u.builds = x->builds;
    x->u.labels = x->labels;
    x->u.processes = x->processes;
    cr_assert_eq(counts_encode(c, &counts, &counts_size, NULL), PROFD_OK);
    cr_assert_eq(counts_encode_shares(c, &(struct counts_shares){x->bins, x->arcs, NULL}, &shares, &shares_size, NULL),
                 PROFD_OK);
    m.as.upload = x->u;
    m.as.upload.counts = (struct message_bytes){counts, counts_size};
    m.as.upload.shares = (struct message_bytes){shares, x->plain ? 0 : shares_size};
    m.as.upload.checksum = (struct message_bytes){digest, x->plain ? 0 : SEGMENT_CHECKSUM_SIZE};
    cr_assert_eq(message_encode(&m, 0, 0, frame, n, NULL), PROFD_OK);
    free(counts);
    free(shares);
    *n -= FRAME_HEADER_SIZE;
    if (!x->plain) {
        segment_digest(*frame + FRAME_HEADER_SIZE, *n - SEGMENT_CHECKSUM_FIELD, digest);
        digest[0] ^= x->damaged;
        memcpy(*frame + FRAME_HEADER_SIZE + *n - SEGMENT_CHECKSUM_SIZE, digest, SEGMENT_CHECKSUM_SIZE);
    }
    return *frame + FRAME_HEADER_SIZE;
}

static enum profd_status decode(struct sample *x, struct segment *s)
{
    uint8_t *frame;
    size_t n;
    struct profd_error e = {""};
    const uint8_t *bytes = pack(x, &frame, &n);
    enum profd_status status = segment_decode(bytes, n, s, &e);
    cr_assert((status == PROFD_OK) == (e.sentence[0] == 0), "%s", e.sentence);
    free(frame);
    return status;
}

#define REFUSED_AS(status, change)                                                                                     \
    do {                                                                                                               \
        struct sample x = good();                                                                                      \
        struct segment bad;                                                                                            \
        change;                                                                                                        \
        cr_assert_eq(decode(&x, &bad), status, "%s", #change);                                                         \
        cr_assert(!bad.message.block && !bad.block && !bad.counts.block, "%s", #change);                               \
    } while (0)
#define REFUSED(change) REFUSED_AS(PROFD_MALFORMED, change)

Test(segment, every_rule_is_checked)
{
    struct sample fine = good();
    struct segment s;
    cr_assert_eq(decode(&fine, &s), PROFD_OK);
    cr_assert(s.kind == SEGMENT_COUNTS && s.sequence == 7 && s.hour == 490000 && s.uploads == 3 && s.processes[0] == 2);
    cr_assert(s.first == s.ended - 5 && s.last == s.ended + 9 && s.uid == 1000 && s.shares.size > 0);
    cr_assert(s.counts.sorted && s.counts.arc_count == 2 && s.counts.calls[0] == 9 && s.label_count == 2);
    segment_done(&s);
    REFUSED(x.u.kind = SEGMENT_KINDS);
    REFUSED(x.u.sender.size = 11);
    REFUSED(x.u.sequence = 0);
    REFUSED(x.u.end = (uint64_t)1 << 63);
    REFUSED(x.u.ended = x.u.end + 1);
    REFUSED(x.u.ended -= 1);
    REFUSED(x.u.inexact = INEXACT_NOT_READ);
    REFUSED(x.u.uploads = UINT64_MAX);
    REFUSED(x.processes[15] = UINT64_MAX);
    REFUSED(x.u.group_count = 15);
    REFUSED(x.u.build_count = 0);
    REFUSED(x.u.program = 2);
    REFUSED(x.builds[0].build_id = "AA00");
    REFUSED(x.builds[0].build_id = "bb11");
    REFUSED(x.labels[0].name = "b");
    REFUSED(x.labels[0].name = "1");
    REFUSED(x.histograms[1].build = 2);
    REFUSED(x.histograms[0].build = 1; x.histograms[1].build = 0);
    REFUSED(collector_make_histogram(&x.histograms[1], 1); x.histograms[1].first = 2; x.histograms[1].used = 1);
    REFUSED(x.histograms[0].order.commit = 1);
    REFUSED(x.histograms[0].order.rank = LIMIT_SEGMENT_ROWS);
    REFUSED(x.from_build[0] = 2);
    REFUSED(x.commit[1] = 1);
    REFUSED(x.rank[1] = LIMIT_SEGMENT_ROWS);
    REFUSED(x.bins[0] = 0);
    REFUSED(x.arcs[0] = 9);
    REFUSED(x.arcs[0] = 10);
    REFUSED(x.counts.sorted = false);
    REFUSED(x.damaged = 1);
    REFUSED_AS(PROFD_TOO_LARGE, x.u.boot = "0123456789012345678901234567890123456");
}

Test(segment, a_refused_one_has_its_key)
{
    struct sample x = good();
    struct segment s;
    x.u.build_count = 0;
    cr_assert_eq(decode(&x, &s), PROFD_MALFORMED);
    cr_assert(s.sequence == 7 && memcmp(s.epoch, "epoch-epoch", 12) == 0);
    cr_assert_neq(segment_decode((const uint8_t *)"\x0a\xff", 2, &s, NULL), PROFD_OK);
    cr_assert_eq(s.sequence, 0);
    cr_assert_eq(segment_decode(NULL, 0, &s, NULL), PROFD_MALFORMED);
}

/* An upload of one process, as clients send it to a daemon. */
Test(segment, an_upload_is_one_group)
{
    struct sample x = good();
    struct segment s;
    x.plain = true;
    x.counts.sorted = false;
    x.u.group_count = 0;
    x.u.uploads = 99;
    x.u.processes_started = 1;
    x.u.host = "0123456789abcdef0123456789abcdef";
    x.u.process = (struct message_bytes){(const uint8_t *)"process", 7};
    x.u.label_count = 3;
    x.labels[0] = (struct message_label){"d", "z"};
    x.from[1] = x.from[0];
    x.from_build[1] = x.from_build[0];
    x.to_build[1] = x.to_build[0];
    x.to[1] = x.to[0];
    cr_assert_eq(decode(&x, &s), PROFD_OK);
    cr_assert_eq(s.group, process_group_find(x.u.host, 1000, "process", 7));
    cr_assert(s.uploads == 1 && s.processes[s.group] == 1 && s.shares.size == 0);
    cr_assert(s.label_count == 2 && strcmp(s.labels[0].name, "b") == 0 && strcmp(s.labels[1].name, "d") == 0);
    cr_assert(!s.counts.sorted && s.counts.arc_count == 2 && s.first == (int64_t)x.u.start && s.inexact == 0);
    segment_done(&s);
    x.u.ended = 0;
    x.u.start = x.u.end + 1;
    x.u.process.size = 0;
    cr_assert_eq(decode(&x, &s), PROFD_OK);
    cr_assert(s.first == s.last && s.ended == s.last && s.inexact == INEXACT_CLOCK);
    cr_assert_eq(s.group, process_group_find(x.u.host, 1000, "epoch-epoch\0\7\0\0", 16));
    segment_done(&s);
    x.u.process.size = LIMIT_PROCESS + 1;
    x.u.process.data = (const uint8_t *)"01234567890123456";
    cr_assert_eq(decode(&x, &s), PROFD_TOO_LARGE);
}

/* Of a withdrawn or dropped segment only the key and the hour are encoded. */
Test(segment, a_key_alone)
{
    for (unsigned kind = SEGMENT_WITHDRAWN; kind < SEGMENT_KINDS; kind++) {
        struct segment s = {
            .kind = (enum segment_kind)kind, .epoch = "0123456789a", .sequence = 300, .last = 5 * SEGMENT_HOUR};
        struct segment back;
        uint8_t *bytes;
        size_t n;
        cr_assert_eq(segment_encode(&s, &bytes, &n, NULL), PROFD_OK);
        cr_assert_lt(n, 48);
        cr_assert_eq(segment_decode(bytes, n, &back, NULL), PROFD_OK);
        cr_assert(back.kind == s.kind && back.sequence == 300 && back.hour == 5 && back.build_count == 0);
        cr_assert_arr_eq(back.epoch, s.epoch, SEGMENT_EPOCH_SIZE);
        segment_done(&back);
        free(bytes);
        s.sequence = (uint64_t)UINT32_MAX + 1;
        cr_assert_eq(segment_encode(&s, &bytes, &n, NULL), PROFD_MALFORMED);
    }
}

/* An upload with these counts. */
static enum profd_status decode_counts(const uint8_t *counts, size_t n, size_t *weight)
{
    const struct message_build build = {"aa00", ""};
    struct message m = {.type = FRAME_UPLOAD};
    struct segment s;
    uint8_t *frame;
    size_t size;
    m.as.upload = (struct message_upload){.sender = {(const uint8_t *)"epoch-epoch", 12},
                                          .sequence = 1,
                                          .build_count = 1,
                                          .builds = &build,
                                          .counts = {counts, n}};
    cr_assert_eq(message_encode(&m, 0, 0, &frame, &size, NULL), PROFD_OK);
    enum profd_status status = segment_decode(frame + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE, &s, NULL);
    *weight = segment_weight(frame + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE);
    free(frame);
    if (status == PROFD_OK) {
        segment_done(&s);
    }
    return status;
}

Test(segment, sizes_are_checked_before_memory_is_taken)
{
    struct counts c;
    uint8_t *bytes;
    size_t n, weight;
    cr_assert_eq(decode_counts((const uint8_t *)"\2", 1, &weight), PROFD_UNKNOWN_VERSION);
    cr_assert_eq(decode_counts((const uint8_t *)"", 0, &weight), PROFD_MALFORMED);
    for (unsigned more = 0; more < 2; more++) {
        cr_assert_eq(counts_init(&c, 0, 0, LIMIT_SEGMENT_ROWS + more, NULL), PROFD_OK);
        cr_assert_eq(counts_encode(&c, &bytes, &n, NULL), PROFD_OK);
        cr_assert_lt(n, 8192);
        cr_assert_eq(decode_counts(bytes, n, &weight), more ? PROFD_TOO_LARGE : PROFD_OK);
        cr_assert(more ? weight == 0 : weight > LIMIT_SEGMENT_ROWS * 32, "%zu", weight);
        free(bytes);
        counts_done(&c);
    }
}
