/* Laws of segments: what is encoded decodes to the same, and any other bytes are another segment or none. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/segment.h"
#include "tests/property/proto/segment_sample.h"
#include "tests/rounds.h"

static void same_names(const struct segment *a, const struct segment *b)
{
    cr_assert(a->build_count == b->build_count && a->label_count == b->label_count && a->program == b->program);
    for (size_t i = 0; i < a->build_count; i++) {
        cr_assert_str_eq(a->builds[i].build_id, b->builds[i].build_id);
        cr_assert_str_eq(a->builds[i].name, b->builds[i].name);
    }
    for (size_t i = 0; i < a->label_count; i++) {
        cr_assert_str_eq(a->labels[i].name, b->labels[i].name);
        cr_assert_str_eq(a->labels[i].value, b->labels[i].value);
    }
    cr_assert_str_eq(a->boot, b->boot);
}

/* Counts are the same if their bytes are. */
static void same_counts(const struct segment *a, const struct segment *b)
{
    uint8_t *x, *y;
    size_t n, m;
    cr_assert_eq(counts_encode(&a->counts, &x, &n, NULL), PROFD_OK);
    cr_assert_eq(counts_encode(&b->counts, &y, &m, NULL), PROFD_OK);
    cr_assert(n == m && memcmp(x, y, n) == 0);
    cr_assert(a->shares.size == b->shares.size && memcmp(a->shares.data, b->shares.data, a->shares.size) == 0);
    free(x);
    free(y);
}

static void same(const struct segment *a, const struct segment *b)
{
    cr_assert(memcmp(a->epoch, b->epoch, sizeof a->epoch) == 0 && a->sequence == b->sequence && a->hour == b->hour &&
              a->kind == b->kind);
    cr_assert(a->uid == b->uid && a->last == b->last && a->ended == b->ended && a->uploads == b->uploads);
    cr_assert(a->first == b->first && a->inexact == b->inexact);
    cr_assert_arr_eq(a->processes, b->processes, sizeof a->processes);
    same_names(a, b);
    same_counts(a, b);
}

Test(segment, what_is_encoded_decodes_to_the_same)
{
    static struct sample x;
    struct profd_error e = {""};
    state = 0x243f6a8885a308d3;
    for (unsigned round = 0; round < rounds(1000); round++) {
        uint8_t *bytes, *again;
        size_t n, m;
        struct segment back;
        fill(&x);
        cr_assert_eq(segment_encode(&x.s, &bytes, &n, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(segment_decode(bytes, n, &back, &e), PROFD_OK, "%s", e.sentence);
        same(&x.s, &back);
        cr_assert_eq(segment_encode(&back, &again, &m, &e), PROFD_OK, "%s", e.sentence);
        cr_assert(n == m && memcmp(bytes, again, n) == 0);
        cr_assert_geq(segment_weight(bytes, n), n + x.s.counts.arc_count * sizeof(uint64_t));
        free(bytes);
        free(again);
        segment_done(&back);
    }
}

/* A changed byte is noticed. If the checksum is made anew, a rule is broken, or it is another segment, which obeys all
 * rules: it can be encoded. */
Test(segment, other_bytes_are_other_segments)
{
    static struct sample x;
    unsigned accepted = 0, refused = 0;
    state = 0x13198a2e03707344;
    for (unsigned round = 0; round < rounds(1000); round++) {
        uint8_t *bytes, *again;
        size_t n, m;
        uint8_t digest[SEGMENT_DIGEST_SIZE], changed[SEGMENT_DIGEST_SIZE];
        struct segment back;
        struct profd_error e = {""};
        fill(&x);
        cr_assert_eq(segment_encode(&x.s, &bytes, &n, NULL), PROFD_OK);
        segment_digest(bytes, n, digest);
        const size_t content = n - SEGMENT_CHECKSUM_FIELD;
        bytes[below(below(2) ? 160 : (uint32_t)n) % content] ^= (uint8_t)(1u << below(8));
        segment_digest(bytes, n, changed);
        cr_assert_neq(memcmp(digest, changed, sizeof digest), 0);
        cr_assert_neq(segment_decode(bytes, n, &back, &e), PROFD_OK, "its checksum is another's");
        segment_digest(bytes, content, changed);
        memcpy(bytes + n - SEGMENT_CHECKSUM_SIZE, changed, SEGMENT_CHECKSUM_SIZE);
        enum profd_status status = segment_decode(bytes, n, &back, &e);
        if (status == PROFD_OK) {
            accepted++;
            cr_assert_eq(segment_encode(&back, &again, &m, &e), PROFD_OK, "%s", e.sentence);
            segment_done(&back);
            free(again);
        } else {
            refused++;
            cr_assert(status == PROFD_MALFORMED || status == PROFD_TOO_LARGE || status == PROFD_UNKNOWN_VERSION,
                      "status %d: %s", (int)status, e.sentence);
            cr_assert_neq(e.sentence[0], 0);
        }
        free(bytes);
    }
    cr_assert(accepted > rounds(1000) / 10 && refused > rounds(1000) / 10, "%u accepted, %u refused", accepted,
              refused);
}

/* Cut anywhere, they are none, or, if the shares are missing, the upload of one process. */
Test(segment, cut_bytes_are_refused_or_say_less)
{
    static struct sample x;
    uint8_t *bytes;
    size_t n;
    struct segment back;
    state = 0xa4093822299f31d0;
    fill(&x);
    cr_assert_eq(segment_encode(&x.s, &bytes, &n, NULL), PROFD_OK);
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *copy = malloc(cut + 1); /* the address sanitizer looks on */
        memcpy(copy, bytes, cut);
        if (segment_decode(copy, cut, &back, NULL) == PROFD_OK) {
            cr_assert_eq(back.shares.size, 0, "%zu of %zu bytes", cut, n);
            segment_done(&back);
        }
        free(copy);
    }
    free(bytes);
}
