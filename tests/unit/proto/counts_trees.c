/* Stacks in the stored encoding: lossless; each rule is checked. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/counts_tree.h"
#include "proto/limits.h"
#include "tests/counts_sections.h"
#include "tests/rounds.h"

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
    for (uint64_t seed = 1; seed <= rounds(200); seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        struct counts c, back;
        uint8_t *bytes;
        size_t n;
        struct profd_error e = {""};
        fill_random(&c);
        cr_assert_eq(counts_encode(&c, &bytes, &n, &e), PROFD_OK, "seed %" PRIu64 ": %s", seed, e.sentence);
        cr_assert_eq(counts_decode(bytes, n, 7, &back, &e), PROFD_OK, "seed %" PRIu64 ": %s", seed, e.sentence);
        assert_same(&c, &back);
        free(bytes);
        counts_done(&c);
        counts_done(&back);
    }
}

/* These stacks, without histograms and arcs. */
static enum profd_status decode_stacks(uint64_t trees, uint64_t nodes, const uint8_t *raw, size_t n, uint32_t builds,
                                       struct counts *c, struct profd_error *e)
{
    const struct counts_section s[3] = {{(const uint8_t[]){0, 0, 0, 0}, 4}, {NULL, 0}, {raw, n}};
    const uint64_t sizes[5] = {0, 0, 0, trees, nodes};
    uint8_t *packed;
    const size_t size = sections_wrap(0, sizes, s, trees > 0 ? 3 : 2, 4 + (trees > 0 ? n : 0), &packed);
    enum profd_status status = counts_decode(packed, size, builds, c, e);
    free(packed);
    return status;
}

/* Whatever changed columns decode to is valid: it encodes, and that decodes to the same. */
static void assert_valid(const uint64_t sizes[5], const struct counts_section s[3])
{
    struct counts c, again;
    struct profd_error e = {""};
    uint8_t *bytes;
    size_t size = sections_wrap(0, sizes, s, 3, sections_total(s, 3), &bytes);
    enum profd_status status = counts_decode(bytes, size, 7, &c, NULL);
    free(bytes);
    if (status != PROFD_OK) {
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
    for (uint64_t seed = 1; seed <= rounds(8); seed++) {
        state = seed * 0x9e3779b97f4a7c15u;
        struct counts c, back;
        struct counts_section s[3];
        uint64_t sizes[5];
        uint8_t *bytes;
        size_t n;
        fill_random(&c);
        cr_assert_eq(counts_encode(&c, &bytes, &n, NULL), PROFD_OK);
        const unsigned count = sections_split(bytes, n, sizes, s);
        for (uint32_t i = 0; i < 300 && count == 3; i++) {
            uint8_t *raw = malloc(s[2].n);
            memcpy(raw, s[2].raw, s[2].n);
            raw[draw() % s[2].n] = (uint8_t)draw();
            assert_valid(sizes, (const struct counts_section[]){s[0], s[1], {raw, s[2].n}});
            cr_assert_eq(decode_stacks(sizes[3], sizes[4], s[2].raw, draw() % s[2].n, 7, &back, NULL), PROFD_MALFORMED);
            free(raw);
        }
        for (unsigned i = 0; i < count; i++) {
            free((void *)(uintptr_t)s[i].raw);
        }
        free(bytes);
        counts_done(&c);
    }
}

#define RAW(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
#define CLOCK(nodes) 9, 0, 's', nodes
/* Places of build 0: those at address and one above it; the one at address. */
#define TWO(address) 2, 1, 2, 1, address, 1, 0, 1
#define ONE(build, address) 1, 1, 1, build, address, 0

static void refuse(uint64_t trees, uint64_t nodes, const uint8_t *raw, size_t n, enum profd_status status,
                   const char *word)
{
    struct profd_error e = {""};
    struct counts c;
    cr_assert_eq(decode_stacks(trees, nodes, raw, n, 2, &c, &e), status, "%s (wanted %s)", e.sentence, word);
    cr_assert(strstr(e.sentence, word) != NULL, "'%s' lacks '%s'", e.sentence, word);
}

/* Columns: how many levels a node is above the deepest possible, ticks, places, 2 · place + kind. */
Test(counts_trees, each_rule_has_its_sentence)
{
    struct profd_error e = {""};
    struct counts c;
    cr_assert_eq(decode_stacks(1, 2, RAW(CLOCK(2), 0, 1, 0, 3, TWO(4), 1, 0, 3), 2, &c, &e), PROFD_OK, "%s",
                 e.sentence);
    cr_assert(c.node_depth[1] == 1 && c.node_kind[1] == COUNTS_NODE_PC && c.node_address[1] == 5);
    cr_assert(c.node_address[0] == 4 && c.node_ticks[0] == 0 && c.node_ticks[1] == 3 && c.trees[0].rate == 9);
    counts_done(&c);
    refuse(0, 5, RAW(0), PROFD_MALFORMED, "0 trees with 5 nodes");
    refuse(65, 65, RAW(0), PROFD_TOO_LARGE, "65 clocks");
    refuse(1, 65537, RAW(0), PROFD_TOO_LARGE, "65537 nodes");
    refuse(1, 9, RAW(CLOCK(9)), PROFD_MALFORMED, "1 trees with 9 nodes");
    refuse(1, 1, RAW(CLOCK(1), 1, 1, 1, 3, ONE(1, 2), 1, 1), PROFD_MALFORMED, "1 levels above depth 0");
    refuse(1, 2, RAW(CLOCK(2), 0, 1, 1, 1, TWO(1), 1, 1, 3), PROFD_MALFORMED,
           "node 1 of stacks is below a program counter");
    refuse(1, 2, RAW(CLOCK(2), 1, 0, 1, 1, 1, 1, TWO(1), 1, 3, 1), PROFD_MALFORMED,
           "node 1 of stacks is not after its sibling 0");
    refuse(1, 2, RAW(CLOCK(2), 1, 0, 1, 1, 1, 1, ONE(1, 1), 1, 1, 1), PROFD_MALFORMED,
           "node 1 of stacks is not after its sibling 0");
    refuse(1, 1, RAW(CLOCK(1), 0, 1, 0, ONE(1, 2), 1, 1), PROFD_MALFORMED, "a leaf with 0 ticks");
    refuse(1, 1, RAW(CLOCK(1), 0, 1, 1, ONE(3, 2), 1, 1), PROFD_MALFORMED, "a frame of build 2: the upload has 2");
    refuse(1, 1, RAW(CLOCK(1), 0, 1, 1, ONE(0, 2), 1, 1), PROFD_MALFORMED, "address 0x2 of no build");
    refuse(1, 1, RAW(CLOCK(1), 0, 1, 1, ONE(0, 1), 1, 1), PROFD_MALFORMED, "address 0x1 of no build");
    refuse(1, 2, RAW(CLOCK(2), 0, 1, 0, 1, 2, 2, 1, 1, 4, 1, 0, 1, 0, 1, 0, 2), PROFD_MALFORMED,
           "address 0x1 of no build at depth 1");
    refuse(1, 1, RAW(CLOCK(1), 0, 1, 1, ONE(1, 2), 1, 3), PROFD_MALFORMED, "the frame of a node is none of 1 places");
    refuse(1, 1, RAW(0, 0, 's', 1, 0, 1, 1, ONE(1, 2), 1, 1), PROFD_MALFORMED, "rate of 0");
    refuse(1, 1, RAW(9, 1, 10, 's', 1, 0, 1, 1, ONE(1, 2), 1, 1), PROFD_MALFORMED, "printable");
    refuse(1, 1, RAW(9, 0, 's', 0, 0, 1, 1, ONE(1, 2), 1, 1), PROFD_MALFORMED, "0 nodes from 0 on");
    refuse(2, 2, RAW(CLOCK(1), CLOCK(1), 0, 1, 1, 1, TWO(1), 1, 1, 3), PROFD_MALFORMED, "not after those");
    refuse(1, 1, RAW(CLOCK(1), 0, 1, 1, ONE(1, 2), 1, 1, 4), PROFD_MALFORMED, "1 bytes follow the stacks");
    refuse(1, 1, RAW(CLOCK(1), 0, 9, 1, 1, 1), PROFD_MALFORMED, "ticks of stacks");
    refuse(1, 1, RAW(CLOCK(1), 9, 1, 1, 1, 1), PROFD_MALFORMED, "depths of stacks");
}

Test(counts_trees, depth_128_is_too_deep)
{
    for (uint8_t n = 128; n <= 129; n++) {                        /* depths and kinds are 0: each node one deeper */
        uint8_t raw[200] = {9, 0, 's', n, 1, 0, 1}, *p = raw + 7; /* n as a varint: n, 1 */
        struct profd_error e = {""};
        struct counts c;
        memset(p, 0, n - 1u);
        p += n - 1;
        *p++ = 1; /* tick of the leaf */
        memcpy(p, (const uint8_t[]){ONE(1, 2), 0}, 7);
        p += 7;
        enum profd_status status = decode_stacks(1, n, raw, (size_t)(p - raw), 2, &c, &e);
        if (n == 128) {
            cr_assert_eq(status, PROFD_OK, "%s", e.sentence);
            cr_assert_eq(c.node_depth[127], 127);
            counts_done(&c);
        } else {
            cr_assert_eq(status, PROFD_MALFORMED);
            cr_assert(strstr(e.sentence, "at most 127") != NULL, "%s", e.sentence);
        }
    }
}
