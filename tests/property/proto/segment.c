/* Laws of segments: what is encoded decodes to the same, equal segments have equal bytes, and no other bytes say the
 * same. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/segment_internal.h"

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)((draw() >> 20) % n);
}

static uint64_t draw_count(void)
{
    return below(9) == 0   ? SEGMENT_COUNT_MAX - below(3)
           : below(4) == 0 ? 1 + (draw() >> (2 + below(60)))
                           : 1 + below(9);
}

#define BUILDS 4
#define HISTOGRAMS 6
#define BINS 60
#define ARCS 80
#define TREES 2
#define NODES 40
#define ROWS (BINS + ARCS + NODES)

/* A segment with space for its arrays. */
struct sample {
    struct segment s;
    struct message_build builds[BUILDS];
    struct message_label labels[2];
    struct counts_histogram histograms[HISTOGRAMS];
    uint32_t histogram_rank[HISTOGRAMS], bin_index[BINS], from_build[ARCS], to_build[ARCS], rank[ARCS];
    struct counts_tree trees[TREES];
    uint8_t node_depth[NODES], node_kind[NODES];
    uint32_t node_build[NODES];
    uint64_t node_address[NODES];
    uint64_t from[ARCS], to[ARCS], shares[ROWS * SEGMENT_GROUPS];
    uint16_t groups[ROWS];
};

static void shuffle(uint32_t *ranks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = below(i + 1);
        ranks[i] = ranks[k];
        ranks[k] = i;
    }
}

static void fill_histograms(struct sample *x)
{
    struct segment_counts *c = &x->s.counts;
    c->histogram_count = below(HISTOGRAMS + 1);
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        struct counts_histogram *h = &x->histograms[i];
        *h = (struct counts_histogram){.build = i * (uint32_t)x->s.build_count / HISTOGRAMS,
                                       .low = 0x1000 * (uint64_t)i,
                                       .high = 0x1000 * (uint64_t)i + 4000,
                                       .bins = 1000,
                                       .rate = 1 + below(1000),
                                       .dimension = "seconds",
                                       .abbreviation = 's',
                                       .first = c->bin_count};
        for (uint32_t bin = below(300); bin < h->bins && h->used < BINS / HISTOGRAMS; bin += 1 + below(300)) {
            x->bin_index[h->first + h->used++] = bin;
        }
        c->bin_count += h->used;
    }
}

static void fill_arcs(struct sample *x)
{
    struct segment_counts *c = &x->s.counts;
    const uint32_t most = below(ARCS + 1);
    uint32_t build = 0;
    uint64_t from = draw() >> 30, to = draw() >> 10;
    while (c->arc_count < most && build <= x->s.build_count) {
        x->from_build[c->arc_count] = build == x->s.build_count ? COUNTS_NOWHERE : build;
        x->to_build[c->arc_count] = below(9) == 0 ? COUNTS_NOWHERE : below((uint32_t)x->s.build_count);
        x->from[c->arc_count] = from;
        x->to[c->arc_count++] = to;
        from += 1 + (below(5) == 0 ? draw() >> 20 : below(40));
        to = below(3) == 0 ? draw() : to + 1;
        build += below(20) == 0;
    }
}

/* Addresses ascend over all nodes, and so among siblings. */
static void fill_stacks(struct sample *x)
{
    struct segment_counts *c = &x->s.counts;
    c->tree_count = below(2) * (1 + below(TREES));
    for (uint32_t t = 0; t < c->tree_count; t++) {
        uint32_t most = 0;
        x->trees[t] = (struct counts_tree){.rate = 19 + 80 * t,
                                           .dimension = "seconds",
                                           .abbreviation = 's',
                                           .first = c->node_count,
                                           .used = 1 + below(NODES / TREES - 1)};
        for (uint32_t end = c->node_count + x->trees[t].used; c->node_count < end; c->node_count++) {
            const uint32_t i = c->node_count;
            const uint8_t depth = (uint8_t)below(most + 1);
            x->node_depth[i] = depth;
            x->node_kind[i] = below(3) == 0 ? COUNTS_NODE_PC : COUNTS_NODE_RETURN;
            x->node_build[i] = 0;
            x->node_address[i] = 0x1000 * (uint64_t)(i + 1) + below(0x1000);
            most = depth + (x->node_kind[i] == COUNTS_NODE_RETURN);
        }
        if (below(2) == 0) { /* one more, which comes last */
            x->node_depth[c->node_count] = 0;
            x->node_kind[c->node_count] = COUNTS_NODE_RETURN;
            x->node_build[c->node_count] = COUNTS_NOWHERE;
            x->node_address[c->node_count++] = COUNTS_FRAME_INCOMPLETE;
            x->trees[t].used++;
        }
    }
}

static bool is_leaf(const struct sample *x, uint32_t node)
{
    for (uint32_t t = 0; t < x->s.counts.tree_count; t++) {
        if (node + 1 == x->trees[t].first + x->trees[t].used) {
            return true;
        }
    }
    return x->node_depth[node + 1] <= x->node_depth[node];
}

static void fill_shares(struct sample *x)
{
    struct segment_counts *c = &x->s.counts;
    const uint32_t nodes = c->bin_count + c->arc_count;
    for (uint32_t i = 0; i < nodes + c->node_count; i++) {
        uint64_t sum = 0;
        x->groups[i] = (uint16_t)(below(3) == 0 ? draw() : 1u << below(16));
        /* An arc may have no calls, and a return address no ticks. */
        x->groups[i] = (uint16_t)(x->groups[i] | (i < c->bin_count || (i >= nodes && is_leaf(x, i - nodes))));
        for (int n = __builtin_popcount(x->groups[i]); n > 0; n--) {
            uint64_t share = draw_count();
            x->shares[c->share_count++] = share;
            x->s.saturated |= share > SEGMENT_COUNT_MAX - sum;
            sum = share > SEGMENT_COUNT_MAX - sum ? SEGMENT_COUNT_MAX : sum + share;
        }
    }
}

static void fill(struct sample *x)
{
    static const char *const ids[] = {"0123456789abcdef", "aa", "ff00",
                                      "sha256-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    *x = (struct sample){.s = {.kind = SEGMENT_COUNTS, .sequence = draw_count(), .hour = below(600000)}};
    struct segment *s = &x->s;
    for (unsigned i = 0; i < SEGMENT_EPOCH_SIZE; i++) {
        s->epoch[i] = (uint8_t)draw();
    }
    s->uid = (uint32_t)draw();
    s->last = s->hour * SEGMENT_HOUR + (int64_t)(draw() % (uint64_t)SEGMENT_HOUR);
    s->ended = s->last - (int64_t)(draw() % (uint64_t)(s->last % SEGMENT_HOUR + 1));
    s->first = (int64_t)(draw() % ((uint64_t)s->ended + 1));
    s->inexact = (uint32_t)draw() & INEXACT_SENT;
    s->uploads = draw_count();
    for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
        s->processes[g] = below(3) == 0 ? draw_count() : 0;
    }
    s->build_count = 1 + below(BUILDS);
    s->program = below((uint32_t)s->build_count);
    for (unsigned i = 0; i < BUILDS; i++) {
        x->builds[i] = (struct message_build){ids[i], i == 2 ? "" : "/usr/lib/\xc3\xa4.so"};
    }
    x->labels[0] = (struct message_label){"host", "a b"};
    x->labels[1] = (struct message_label){"version", "1.2"};
    s->label_count = below(3);
    s->builds = x->builds;
    s->labels = x->labels;
    fill_histograms(x);
    fill_arcs(x);
    fill_stacks(x);
    fill_shares(x);
    shuffle(x->histogram_rank, s->counts.histogram_count);
    shuffle(x->rank, s->counts.arc_count);
    struct segment_counts *c = &s->counts;
    c->histograms = x->histograms;
    c->histogram_rank = x->histogram_rank;
    c->bin_index = x->bin_index;
    c->from_build = x->from_build;
    c->to_build = x->to_build;
    c->from = x->from;
    c->to = x->to;
    c->rank = x->rank;
    c->trees = x->trees;
    c->node_depth = x->node_depth;
    c->node_kind = x->node_kind;
    c->node_build = x->node_build;
    c->node_address = x->node_address;
    c->groups = x->groups;
    c->shares = x->shares;
}

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
        cr_assert_eq(bytes[0], x.s.counts.tree_count > 0 ? SEGMENT_VERSION : SEGMENT_VERSION_NO_STACKS);
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
        cr_assert_eq(segment_pack(bytes[0], content, size, &changed, &m, NULL), PROFD_OK);
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
