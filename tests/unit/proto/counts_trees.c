/* Stacks in the stored encoding: lossless; each rule is checked; counts without stacks have the bytes of format 1. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "proto/deflate.h"
#include "proto/counts_stacks.h"
#include "proto/limits.h"
#include "proto/varint.h"

static uint64_t state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* An arc and trees of up to three clocks over builds 0 to 6. */
static void fill_random(struct counts *c)
{
    static const char *const dimensions[] = {"seconds", "cycles", "seconds"};
    struct counts_stacks *s = counts_stacks_new();
    uint32_t stacks = (uint32_t)(draw() % 300), depth = 1 + (uint32_t)(draw() % 150);
    for (uint32_t i = 0; i < stacks; i++) {
        struct counts_frame f[150];
        uint32_t n = 1 + (uint32_t)(draw() % depth), clock = (uint32_t)(draw() % 3);
        for (uint32_t k = 0; k < n; k++) {
            bool outside = draw() % 10 == 0;
            f[k] = (struct counts_frame){.address = outside           ? COUNTS_FRAME_OUTSIDE
                                                    : draw() % 20 > 0 ? 0x401000 + draw() % 3
                                                                      : draw() >> draw() % 64,
                                         .build = outside ? COUNTS_NOWHERE : (uint32_t)(draw() % 7),
                                         .kind = k + 1 == n && draw() % 4 > 0};
        }
        uint64_t ticks = draw() % 20 ? 1 + draw() % 9 : 1 + (draw() >> (1 + draw() % 63));
        cr_assert_eq(counts_stacks_add(s, 99 + clock / 2, dimensions[clock], 's', f, n, ticks, NULL), PROFD_OK);
    }
    struct counts_sizes sizes = {.arcs = 1};
    cr_assert_eq(counts_stacks_finish(s, &sizes, NULL), PROFD_OK);
    cr_assert_eq(counts_init_sizes(c, &sizes, NULL), PROFD_OK);
    counts_stacks_copy(s, c);
    c->calls[0] = draw();
    counts_stacks_free(s);
}

static void assert_same(const struct counts *a, const struct counts *b)
{
    cr_assert(a->arc_count == b->arc_count && a->calls[0] == b->calls[0]);
    cr_assert(a->tree_count == b->tree_count && a->node_count == b->node_count);
    for (uint32_t i = 0; i < a->tree_count; i++) {
        const struct counts_tree *x = &a->trees[i], *y = &b->trees[i];
        cr_assert(x->rate == y->rate && strcmp(x->dimension, y->dimension) == 0 && x->first == y->first &&
                  x->abbreviation == y->abbreviation && x->used == y->used);
    }
    size_t n = a->node_count;
    cr_assert_arr_eq(a->node_depth, b->node_depth, n);
    cr_assert_arr_eq(a->node_kind, b->node_kind, n);
    cr_assert_arr_eq(a->node_build, b->node_build, 4 * n);
    cr_assert_arr_eq(a->node_address, b->node_address, 8 * n);
    cr_assert_arr_eq(a->node_ticks, b->node_ticks, 8 * n);
}

Test(counts_trees, random_stacks_come_back_as_they_were)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        struct counts c, back;
        uint8_t *bytes;
        size_t n;
        struct profd_error e = {""};
        fill_random(&c);
        cr_assert_eq(counts_encode(&c, &bytes, &n, &e), PROFD_OK, "seed %" PRIu64 ": %s", seed, e.sentence);
        cr_assert_eq(bytes[0], c.tree_count > 0 ? 2 : 1);
        cr_assert_eq(counts_decode(bytes, n, 7, &back, &e), PROFD_OK, "seed %" PRIu64 ": %s", seed, e.sentence);
        assert_same(&c, &back);
        free(bytes);
        counts_done(&c);
        counts_done(&back);
    }
}

/* Columns as a sender would wrap them. */
static enum profd_status decode_columns(uint8_t format, const uint8_t *raw, size_t n, uint32_t builds, struct counts *c,
                                        struct profd_error *e)
{
    uint8_t *packed = malloc(deflate_bound(n) + 20);
    packed[0] = format;
    uint8_t *p = varint_put(packed + 1, n);
    size_t size = 0;
    cr_assert_eq(deflate_pack(raw, n, false, p, deflate_bound(n), &size, NULL), PROFD_OK);
    p += size;
    enum profd_status status = counts_decode(packed, (size_t)(p - packed), builds, c, e);
    free(packed);
    return status;
}

/* Whatever changed columns decode to is valid: it encodes, and that decodes to the same. */
static void assert_valid(const uint8_t *raw, size_t n)
{
    struct counts c, again;
    struct profd_error e = {""};
    uint8_t *bytes;
    size_t size;
    if (decode_columns(2, raw, n, 7, &c, NULL) != PROFD_OK) {
        return;
    }
    cr_assert_eq(counts_encode(&c, &bytes, &size, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(counts_decode(bytes, size, 7, &again, &e), PROFD_OK, "%s", e.sentence);
    assert_same(&c, &again);
    free(bytes);
    counts_done(&c);
    counts_done(&again);
}

Test(counts_trees, changed_columns_are_refused_or_valid_and_cut_ones_refused)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        struct counts c;
        uint8_t *bytes;
        size_t n;
        fill_random(&c);
        cr_assert_eq(counts_encode(&c, &bytes, &n, NULL), PROFD_OK);
        const uint8_t *at = bytes + 1;
        uint64_t size = 0;
        cr_assert(varint_get(&at, bytes + n, &size));
        uint8_t *raw = malloc((size_t)size);
        cr_assert_eq(ZSTD_decompress(raw, (size_t)size, at, n - (size_t)(at - bytes)), size);
        for (uint32_t i = 0; i < 300 && c.tree_count > 0; i++) {
            uint8_t *change = &raw[draw() % size], old = *change;
            *change = (uint8_t)(draw() % 2 ? old + 1u : draw());
            assert_valid(raw, (size_t)size);
            *change = old;
            struct counts back;
            size_t cut = draw() % size;
            cr_assert_eq(decode_columns(2, raw, cut, 7, &back, NULL), PROFD_MALFORMED, "cut at %zu", cut);
        }
        free(raw);
        free(bytes);
        counts_done(&c);
    }
}

#define RAW(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
/* No histograms, bins and arcs; trees and nodes; one clock of 9 ticks a second. */
#define HEAD(nodes) 0, 0, 0, 1, nodes, 9, 0, 's', nodes

static void refuse(const uint8_t *raw, size_t n, enum profd_status status, const char *word)
{
    struct profd_error e = {""};
    struct counts c;
    cr_assert_eq(decode_columns(2, raw, n, 2, &c, &e), status, "%s (wanted %s)", e.sentence, word);
    cr_assert(strstr(e.sentence, word) != NULL, "'%s' lacks '%s'", e.sentence, word);
}

Test(counts_trees, each_rule_has_its_sentence)
{
    struct profd_error e = {""};
    struct counts c;
    cr_assert_eq(decode_columns(2, RAW(HEAD(2), 0, 1, 2, 1, 8, 2, 0, 3), 2, &c, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(c.node_depth[1] == 1 && c.node_kind[1] == COUNTS_NODE_PC && c.node_address[1] == 5);
    cr_assert(c.node_address[0] == 4 && c.node_ticks[0] == 0 && c.node_ticks[1] == 3 && c.trees[0].rate == 9);
    counts_done(&c);
    refuse(RAW(0, 0, 0, 0, 0), PROFD_MALFORMED, "no stacks");
    refuse(RAW(0, 0, 0, 65, 0), PROFD_TOO_LARGE, "65 clocks");
    refuse(RAW(0, 0, 0, 1, 0x81, 0x80, 0x04), PROFD_TOO_LARGE, "65537 nodes");
    refuse(RAW(0, 0, 0, 1, 9, 9, 0, 's', 9), PROFD_MALFORMED, "9 nodes of stacks stated in 4 bytes");
    refuse(RAW(HEAD(1), 2, 1, 1, 2, 3), PROFD_MALFORMED, "1 levels above depth 0");
    refuse(RAW(HEAD(2), 1, 0, 2, 1, 2, 2, 1, 1), PROFD_MALFORMED, "node 1 of stacks is below a program counter");
    refuse(RAW(HEAD(2), 0, 2, 2, 1, 2, 1, 1, 1), PROFD_MALFORMED, "node 1 of stacks is not after its sibling 0");
    refuse(RAW(HEAD(2), 0, 2, 2, 1, 2, 0, 1, 1), PROFD_MALFORMED, "node 1 of stacks is not after its sibling 0");
    refuse(RAW(HEAD(1), 0, 1, 1, 2, 0), PROFD_MALFORMED, "a leaf with 0 ticks");
    refuse(RAW(HEAD(1), 0, 1, 3, 2, 1), PROFD_MALFORMED, "an arc of build 2: the upload has 2");
    refuse(RAW(HEAD(1), 0, 1, 0, 4, 1), PROFD_MALFORMED, "address 0x2 of no build");
    refuse(RAW(HEAD(1), 1, 1, 0, 2, 1), PROFD_MALFORMED, "address 0x1 of no build");
    refuse(RAW(HEAD(2), 0, 0, 2, 0, 0, 2, 1, 1), PROFD_MALFORMED, "address 0x1 of no build at depth 1");
    refuse(RAW(0, 0, 0, 1, 1, 0, 0, 's', 1, 0, 1, 1, 2, 3), PROFD_MALFORMED, "rate of 0");
    refuse(RAW(0, 0, 0, 1, 1, 9, 1, 10, 's', 1, 0, 1, 1, 2, 3), PROFD_MALFORMED, "printable");
    refuse(RAW(0, 0, 0, 1, 1, 9, 0, 's', 0, 0, 1, 1, 2, 3), PROFD_MALFORMED, "0 nodes from 0 on");
    refuse(RAW(0, 0, 0, 2, 2, 9, 0, 's', 1, 9, 0, 's', 1, 0, 0, 2, 1, 2, 0, 1, 1), PROFD_MALFORMED, "not after those");
    refuse(RAW(HEAD(1), 0, 1, 1, 2, 3, 4), PROFD_MALFORMED, "1 bytes follow");
    refuse(RAW(HEAD(1), 0, 1, 1, 2, 0x80), PROFD_MALFORMED, "ticks of stacks");
}

Test(counts_trees, depth_128_is_too_deep)
{
    uint8_t raw[600] = {0, 0, 0, 1, 0x81, 1, 9, 0, 's', 0x81, 1};
    struct profd_error e = {""};
    struct counts c;
    size_t n = 11 + 129; /* depths and kinds are 0: each node one deeper */
    memcpy(raw + n, (const uint8_t[]){0x81, 1, 1}, 3);
    memset(raw + n + 3, 2, 258);
    cr_assert_eq(decode_columns(2, raw, n + 3 + 258, 2, &c, &e), PROFD_MALFORMED);
    cr_assert(strstr(e.sentence, "at most 127") != NULL, "%s", e.sentence);
    raw[4] = raw[9] = raw[n - 1] = 0x80;
    raw[n] = 1;
    raw[n + 1] = 1;
    memset(raw + n + 2, 2, 256);
    cr_assert_eq(decode_columns(2, raw, n + 2 + 256, 2, &c, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(c.node_depth[127], 127);
    counts_done(&c);
}

/* Bytes that were written before there were stacks. */
Test(counts_trees, counts_without_stacks_keep_their_bytes)
{
    static const uint8_t old[] = {0x01, 0x33, 0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00, 0x99, 0x01, 0x00, 0x01, 0x03, 0x03,
                                  0x01, 0xac, 0x02, 0x80, 0x40, 0xb0, 0x09, 0x64, 0x07, 0x73, 0x65, 0x63, 0x6f, 0x6e,
                                  0x64, 0x73, 0x73, 0x03, 0x02, 0x00, 0xa7, 0x02, 0x01, 0xc8, 0x01, 0x07, 0x02, 0x01,
                                  0x01, 0x00, 0x03, 0x02, 0x80, 0x80, 0x01, 0x01, 0x01, 0x00, 0x00, 0x01, 0x80, 0x40,
                                  0x02, 0x00, 0xe8, 0x07, 0xd0, 0x0f, 0xe2, 0x31, 0x2a, 0x72};
    struct counts c;
    uint8_t *bytes;
    size_t n;
    cr_assert_eq(counts_decode(old, sizeof old, 2, &c, NULL), PROFD_OK);
    cr_assert(c.tree_count == 0 && c.arc_count == 3 && c.calls[2] == 2000 && c.bin_ticks[1] == 200);
    cr_assert_eq(counts_encode(&c, &bytes, &n, NULL), PROFD_OK);
    cr_assert_eq(n, sizeof old);
    cr_assert_arr_eq(bytes, old, n);
    free(bytes);
    counts_done(&c);
}
