/* Laws of segments: what is encoded decodes to the same, equal segments have equal bytes, and no other bytes say the
 * same. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/segment_internal.h"
#include "tests/property/proto/segment_sample.h"

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
}

static void same_counts(const struct segment_counts *a, const struct segment_counts *b)
{
    cr_assert(a->histogram_count == b->histogram_count && a->bin_count == b->bin_count);
    cr_assert(a->arc_count == b->arc_count && a->share_count == b->share_count);
    cr_assert(a->tree_count == b->tree_count && a->node_count == b->node_count);
#define SAME(field, n) cr_assert(memcmp(a->field, b->field, (n) * sizeof a->field[0]) == 0, #field)
    SAME(histogram_rank, a->histogram_count);
    SAME(bin_index, a->bin_count);
    SAME(from_build, a->arc_count);
    SAME(to_build, a->arc_count);
    SAME(from, a->arc_count);
    SAME(to, a->arc_count);
    SAME(rank, a->arc_count);
    SAME(trees, a->tree_count);
    SAME(node_depth, a->node_count);
    SAME(node_kind, a->node_count);
    SAME(node_build, a->node_count);
    SAME(node_address, a->node_count);
    SAME(groups, (size_t)a->bin_count + a->arc_count + a->node_count);
    SAME(shares, a->share_count);
#undef SAME
    for (uint32_t i = 0; i < a->histogram_count; i++) {
        const struct counts_histogram *h = &a->histograms[i], *k = &b->histograms[i];
        cr_assert(h->build == k->build && h->bins == k->bins && h->low == k->low && h->high == k->high &&
                  h->rate == k->rate && h->first == k->first && h->used == k->used);
        cr_assert_str_eq(h->dimension, k->dimension);
    }
}

static void same(const struct segment *a, const struct segment *b)
{
    cr_assert(memcmp(a->epoch, b->epoch, sizeof a->epoch) == 0 && a->sequence == b->sequence && a->hour == b->hour &&
              a->kind == b->kind);
    cr_assert(a->uid == b->uid && a->first == b->first && a->last == b->last && a->ended == b->ended &&
              a->inexact == b->inexact && a->saturated == b->saturated && a->uploads == b->uploads);
    cr_assert_arr_eq(a->processes, b->processes, sizeof a->processes);
    same_names(a, b);
    same_counts(&a->counts, &b->counts);
}

Test(segment, what_is_encoded_decodes_to_the_same_and_has_one_encoding)
{
    static struct sample x;
    struct profd_error e = {""};
    state = 0x243f6a8885a308d3;
    for (unsigned round = 0; round < 3000; round++) {
        uint8_t *bytes, *again;
        size_t n, m;
        struct segment back;
        fill(&x);
        cr_assert_eq(segment_encode(&x.s, &bytes, &n, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(bytes[0], SEGMENT_VERSION);
        cr_assert_eq(segment_decode(bytes, n, &back, &e), PROFD_OK, "%s", e.sentence);
        same(&x.s, &back);
        cr_assert_eq(segment_encode(&back, &again, &m, &e), PROFD_OK, "%s", e.sentence);
        cr_assert(n == m && memcmp(bytes, again, n) == 0);
        free(bytes);
        free(again);
        segment_done(&back);
    }
}

/* A changed byte of the content gives another segment or none; the digest notices it when it is not made anew. */
Test(segment, other_contents_are_other_segments)
{
    static struct sample x;
    unsigned accepted = 0, refused = 0;
    state = 0x13198a2e03707344;
    for (unsigned round = 0; round < 3000; round++) {
        uint8_t *bytes, *content, *changed, *again, *content_again;
        size_t n, size, m, size_again;
        struct segment back;
        fill(&x);
        cr_assert_eq(segment_encode(&x.s, &bytes, &n, NULL), PROFD_OK);
        cr_assert_eq(segment_unpack(bytes, n, &content, &size, NULL), PROFD_OK);
        content[below((uint32_t)size)] ^= (uint8_t)(1u << below(8));
        size -= below(6) == 0 ? 1 : 0;
        cr_assert_eq(segment_pack(content, size, &changed, &m, NULL), PROFD_OK);
        struct profd_error e = {""};
        enum profd_status status = segment_decode(changed, m, &back, &e);
        if (status == PROFD_OK) {
            accepted++;
            cr_assert_eq(segment_encode(&back, &again, &n, NULL), PROFD_OK);
            cr_assert_eq(segment_unpack(again, n, &content_again, &size_again, NULL), PROFD_OK);
            cr_assert(size == size_again && memcmp(content, content_again, size) == 0, "two encodings of one segment");
            segment_done(&back);
            free(again);
            free(content_again);
        } else {
            refused++;
            cr_assert(status == PROFD_MALFORMED || status == PROFD_TOO_LARGE, "status %d: %s", (int)status, e.sentence);
            cr_assert(e.sentence[0] != 0);
        }
        memcpy(changed + SEGMENT_DIGEST_AT, bytes + SEGMENT_DIGEST_AT, SEGMENT_DIGEST_SIZE);
        cr_assert_neq(segment_decode(changed, m, &back, NULL), PROFD_OK);
        free(bytes);
        free(content);
        free(changed);
    }
    cr_assert(accepted > 100 && refused > 100, "%u accepted, %u refused", accepted, refused);
}

Test(segment, cut_or_changed_bytes_are_refused)
{
    static struct sample x;
    uint8_t *bytes;
    size_t n;
    struct segment back;
    state = 0xa4093822299f31d0;
    fill(&x);
    cr_assert_eq(segment_encode(&x.s, &bytes, &n, NULL), PROFD_OK);
    for (size_t cut = 0; cut < n; cut++) {
        cr_assert_neq(segment_decode(bytes, cut, &back, NULL), PROFD_OK);
    }
    for (size_t at = 0; at < n; at++) {
        bytes[at] ^= 0x10;
        enum profd_status status = segment_decode(bytes, n, &back, NULL);
        cr_assert(status != PROFD_OK || at > 33, "byte %zu", at);
        if (status == PROFD_OK) { /* a bit of zstd's header that says nothing about the content */
            same(&x.s, &back);
            segment_done(&back);
        }
        bytes[at] ^= 0x10;
    }
    free(bytes);
}
