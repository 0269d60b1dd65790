/* Random segments of all kinds of counts, for laws about them. */
#ifndef PROFD_TESTS_PROTO_SEGMENT_SAMPLE_H
#define PROFD_TESTS_PROTO_SEGMENT_SAMPLE_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/segment.h"

static uint64_t state;

static inline uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static inline uint32_t below(uint32_t n)
{
    return (uint32_t)((draw() >> 20) % n);
}

static inline uint64_t draw_count(void)
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
    uint32_t bin_index[BINS], from_build[ARCS], to_build[ARCS], rank[ARCS];
    struct counts_tree trees[TREES];
    uint8_t node_depth[NODES], node_kind[NODES];
    uint32_t node_build[NODES];
    uint64_t node_address[NODES], node_ticks[NODES];
    uint64_t bin_ticks[BINS], from[ARCS], to[ARCS], calls[ARCS], commit[ARCS];
    uint64_t bins[BINS * COUNTS_GROUPS], arcs[ARCS * COUNTS_GROUPS], nodes[NODES * COUNTS_GROUPS];
    struct counts_shares shares; /* of these */
    uint8_t *encoded;            /* the shares, owned */
};

static inline void shuffle(uint32_t *ranks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = below(i + 1);
        ranks[i] = ranks[k];
        ranks[k] = i;
    }
}

static inline void fill_histograms(struct sample *x)
{
    struct counts *c = &x->s.counts;
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

static inline void fill_arcs(struct sample *x)
{
    struct counts *c = &x->s.counts;
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
static inline void fill_stacks(struct sample *x)
{
    struct counts *c = &x->s.counts;
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

static inline bool is_leaf(const struct sample *x, uint32_t node)
{
    for (uint32_t t = 0; t < x->s.counts.tree_count; t++) {
        if (node + 1 == x->trees[t].first + x->trees[t].used) {
            return true;
        }
    }
    return x->node_depth[node + 1] <= x->node_depth[node];
}

/* The shares of a row, and their sum. */
static inline uint64_t fill_row(struct sample *x, uint64_t *row, bool some)
{
    uint64_t sum = 0;
    unsigned groups = below(3) == 0 ? (unsigned)draw() & 0xffff : 1u << below(16);
    for (unsigned g = 0; g < COUNTS_GROUPS; g++) {
        row[g] = groups >> g & 1 || (some && groups == 0 && g == 0) ? draw_count() : 0;
        x->s.counts.saturated |= row[g] > SEGMENT_COUNT_MAX - sum;
        sum = row[g] > SEGMENT_COUNT_MAX - sum ? SEGMENT_COUNT_MAX : sum + row[g];
    }
    return sum;
}

/* An arc may have no calls, and a return address no ticks. */
static inline void fill_shares(struct sample *x)
{
    const struct counts *c = &x->s.counts;
    for (uint32_t i = 0; i < c->bin_count; i++) {
        x->bin_ticks[i] = fill_row(x, x->bins + i * COUNTS_GROUPS, true);
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        x->calls[i] = fill_row(x, x->arcs + i * COUNTS_GROUPS, false);
    }
    for (uint32_t i = 0; i < c->node_count; i++) {
        x->node_ticks[i] = fill_row(x, x->nodes + i * COUNTS_GROUPS, is_leaf(x, i));
    }
    x->shares = (struct counts_shares){x->bins, x->arcs, x->nodes};
}

static inline void fill_ranks(struct sample *x)
{
    uint32_t ranks[HISTOGRAMS];
    shuffle(ranks, x->s.counts.histogram_count);
    shuffle(x->rank, x->s.counts.arc_count);
    for (uint32_t i = 0; i < x->s.counts.histogram_count; i++) {
        x->histograms[i].order.rank = ranks[i];
    }
}

static inline void fill(struct sample *x)
{
    static const char *const ids[] = {"0123456789abcdef", "aa", "ff00",
                                      "sha256-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    free(x->encoded);
    *x = (struct sample){.s = {.kind = SEGMENT_COUNTS, .sequence = 1 + below(UINT32_MAX), .hour = below(600000)}};
    struct segment *s = &x->s;
    size_t n = 0;
    for (unsigned i = 0; i < SEGMENT_EPOCH_SIZE; i++) {
        s->epoch[i] = (uint8_t)draw();
    }
    s->uid = (uint32_t)draw();
    s->last = 1 + s->hour * SEGMENT_HOUR + (int64_t)(draw() % ((uint64_t)SEGMENT_HOUR - 1));
    s->ended = s->last - (int64_t)(draw() % (uint64_t)(s->last % SEGMENT_HOUR));
    s->first = 1 + (int64_t)(draw() % (uint64_t)s->last);
    s->inexact = (uint32_t)draw() & INEXACT_SENT;
    s->uploads = draw_count();
    for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
        s->processes[g] = below(3) == 0 ? draw_count() : 0;
    }
    s->boot = below(2) ? "" : "01234567-89ab-cdef-0123-456789abcdef";
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
    fill_ranks(x);
    struct counts *c = &s->counts;
    c->sorted = true;
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
    c->trees = x->trees;
    c->node_depth = x->node_depth;
    c->node_kind = x->node_kind;
    c->node_build = x->node_build;
    c->node_address = x->node_address;
    c->node_ticks = x->node_ticks;
    cr_assert_eq(counts_encode_shares(c, &x->shares, &x->encoded, &n, NULL), PROFD_OK);
    s->shares = (struct message_bytes){x->encoded, n};
}

#endif
