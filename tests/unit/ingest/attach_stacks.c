/* Stacks of a live process: what is new of its tree becomes a tree of counts
 * and sampled arcs, whatever the tree is. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/message.h"
#include "tests/unit/ingest/attach_bed.h"
#include "tests/unit/ingest/bed.h"

#define NODES 400u
#define NOT ATTACH_BEGIN_UNKNOWN

static struct live live;
static struct ledger ledger;
static struct attach_process *process;
static struct attach_chunk *ticks, *stacks;
static char tree[8192]; /* of the latest harvest: "depth kind
                           build+address=ticks" of each node */

static void enter(void)
{
    attach_bed_open();
    live_open(&live, 8u << 20, 1);
    live_seal(&live);
    live_usual(&live);
    memset(&ledger, 0, sizeof ledger);
    process = live_attach(&live, NULL);
    ticks = live_table(&live, ATTACH_KIND_SAMPLES, 8);
    stacks = live_chunk(&live, sizeof *stacks + NODES * sizeof(struct attach_node));
    stacks->kind = ATTACH_KIND_STACKS;
    stacks->primary = NODES;
    stacks->hash = 1;
    stacks->magic = ATTACH_STACKS_MAGIC;
}

static void leave(void)
{
    attach_close(process);
    ledger_done(&ledger);
    live_close(&live);
    attach_bed_close();
}

TestSuite(ingest_attach_stacks, .init = enter, .fini = leave);

static struct attach_node *node(uint32_t number)
{
    return (struct attach_node *)(void *)(stacks + 1) + number - 1;
}

static void put(uint32_t number, uint32_t parent, uint32_t module, uint32_t self, uint32_t begin)
{
    *node(number) = (struct attach_node){
        .parent = parent, .self = self, .begin = begin, .module = (uint16_t)module, .key = number, .count = 0};
}

/* A program counter with n ticks, which SAMPLES has, too. */
static void put_pc(uint32_t number, uint32_t parent, uint32_t module, uint32_t self, uint32_t begin, uint64_t n)
{
    put(number, parent, module, self, begin);
    node(number)->kind = ATTACH_NODE_PC;
    node(number)->count = n;
    live_count(ticks, 1, 0, 0, 1, 5, n);
}

static void add(uint32_t number, uint64_t n)
{
    node(number)->count += n;
    live_count(ticks, 1, 0, 0, 1, 5, n);
}

static void tree_print(const struct counts *c)
{
    size_t at = 0;
    tree[0] = 0;
    for (uint32_t i = 0; i < c->node_count; i++) {
        int n = snprintf(tree + at, sizeof tree - at, "%u%c%d+%" PRIx64 "=%" PRIu64 " ", c->node_depth[i],
                         c->node_kind[i] == COUNTS_NODE_PC ? 'P' : 'R',
                         c->node_build[i] == COUNTS_NOWHERE ? -1 : (int)c->node_build[i], c->node_address[i],
                         c->node_ticks[i]);
        at += (size_t)n < sizeof tree - at ? (size_t)n : 0;
    }
}

static void harvest(int64_t second, enum attach_end end)
{
    struct attach_harvest h;
    struct counts c;
    cr_assert_eq(attach_harvest(process, checker, 0, START + second * INT64_C(1000000000), end, &h, &sentence),
                 PROFD_OK, "%s", sentence.sentence);
    tree[0] = 0;
    if (h.any) {
        if (h.put.counts_size > 0) {
            cr_assert_eq(counts_decode(h.put.counts, h.put.counts_size, (uint32_t)h.put.build_count, &c, &sentence),
                         PROFD_OK, "%s", sentence.sentence);
            tree_print(&c);
            cr_assert(c.tree_count == 0 || (c.trees[0].rate == 100 && strcmp(c.trees[0].dimension, "seconds") == 0));
            counts_done(&c);
        }
        cr_assert(ledger_put(&ledger, &h.put));
        attach_settle(process, &h);
    }
    attach_harvest_done(&h);
}

Test(ingest_attach_stacks, what_is_new_of_the_tree_is_a_tree_in_order)
{
    put_pc(1, 7, 2, 0x44, 0x40, 3); /* the parent has a higher number */
    put(7, 5, 1, 0x20, 0x18);
    put(5, 0, 1, 0x10, 0x8);
    put_pc(2, 7, 1, 0x30, 0x28, 2);
    put(9, 0, ATTACH_MODULE_NONE, ATTACH_INCOMPLETE, NOT);
    put_pc(10, 9, 1, 0x30, 0x28, 1);
    put(11, 5, 1, 0x20, 0x18); /* the same frame again */
    put_pc(12, 11, 1, 0x30, 0x28, 4);
    harvest(1, ATTACH_LIVES);
    cr_assert_str_eq(tree, "0R0+400010=0 1R0+400020=0 2P0+400030=6 2P1+44=3 0R-1+1=0 1P0+400030=1 ");
    add(12, 2);
    add(10, 1);
    harvest(2, ATTACH_LIVES);
    cr_assert_str_eq(tree, "0R0+400010=0 1R0+400020=0 2P0+400030=2 0R-1+1=0 1P0+400030=1 ");
    live_count(ticks, 1, 0, 0, 1, 5, 1);
    harvest(3, ATTACH_ENDED);
    cr_assert_str_eq(tree, "");
    cr_assert_eq(ledger_ticks(&ledger, "aa", 0x400005), 14);
    cr_assert_eq(ledger.inexact, INEXACT_SAMPLED);
}

Test(ingest_attach_stacks, pairs_of_callers_are_arcs_to_where_a_function_begins)
{
    put(1, 0, 1, 0x10, 0x8);
    put(2, 1, 1, 0x20, 0x18);
    put(3, 2, 1, 0x20, 0x18); /* recursion: 0x20 calls itself */
    put(4, 3, 1, 0x20, 0x18);
    put_pc(5, 4, 2, 0x44, 0x40, 5);
    put_pc(6, 4, 2, 0x48, 0x40, 2);
    put_pc(7, 4, 2, 0x88, NOT, 9); /* by its frame pointer: who called it directly is not certain */
    harvest(1, ATTACH_LIVES);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400010, "aa", 0x400018), 16);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400020, "aa", 0x400018), 16);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400020, "bb", 0x40), 7);
    cr_assert_eq(ledger.calls, 39);
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    live_count(arcs, 1, 1, 0x10, 2, 0x40, 1); /* calls into the library are counted */
    add(5, 1);
    harvest(2, ATTACH_LIVES);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400020, "bb", 0x40), 7);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400020, "aa", 0x400018), 17);
}

Test(ingest_attach_stacks, what_was_cut_is_counted_at_its_parent)
{
    put(1, 0, 1, 0x10, 0x8);
    put(2, 1, 1, 0x20, 0x18);
    add(2, 4);
    harvest(1, ATTACH_LIVES);
    cr_assert_str_eq(tree, "0R0+400010=0 1R0+400020=4 ");
}

Test(ingest_attach_stacks, what_is_not_yet_there_comes_with_the_next_harvest)
{
    put(1, 0, 1, 0x10, 0x8);
    put(2, 1, 1, 0x20, 0x18);
    node(2)->module = 0; /* being written */
    put_pc(3, 2, 1, 0x30, 0x28, 3);
    put_pc(4, 1, 3, 0x30, 0x28, 2); /* its module is not there */
    put_pc(5, 1, 1, 0x40, 0x38, 1);
    harvest(1, ATTACH_LIVES);
    cr_assert_str_eq(tree, "0R0+400010=0 1P0+400040=1 ");
    cr_assert_eq(ledger.inexact, INEXACT_SAMPLED);
    node(2)->module = 1;
    live_module(&live, 0xcc, 20, 0, 0x1000, "late");
    live_count(ticks, 1, 0, 0, 1, 5, 5);
    harvest(2, ATTACH_LIVES);
    cr_assert_str_eq(tree, "0R0+400010=0 1R0+400020=0 2P0+400030=3 1P2+30=2 ");
}

Test(ingest_attach_stacks, there_are_never_more_stacks_than_ticks)
{
    put(1, 0, 1, 0x10, 0x8);
    put_pc(2, 1, 1, 0x20, 0x18, 3);
    put_pc(3, 1, ATTACH_MODULE_NONE, 0, NOT, 0);
    node(2)->count = UINT64_C(1) << 62;
    node(3)->count = 7; /* outside every build: in no histogram */
    harvest(1, ATTACH_LIVES);
    cr_assert_str_eq(tree, "0R0+400010=0 1P0+400020=3 ");
    node(2)->count = 1; /* it shrinks */
    node(1)->count = 5;
    harvest(2, ATTACH_LIVES);
    cr_assert_str_eq(tree, "");
}

Test(ingest_attach_stacks, impossible_nodes_are_left_out_and_said)
{
    static const struct {
        struct attach_node node;
    } cases[] = {{{.parent = 2, .self = 1, .begin = 1, .module = 1}},                     /* its own parent */
                 {{.parent = 3, .self = 1, .begin = 1, .module = 1}},                     /* in a cycle */
                 {{.parent = NODES + 1, .self = 1, .begin = 1, .module = 1}},             /* no such number */
                 {{.parent = UINT32_MAX, .self = 1, .begin = 1, .module = 1}},            /* nor this */
                 {{.parent = 4, .self = 1, .begin = 1, .module = 1}},                     /* below a program counter */
                 {{.parent = 0, .self = 0x2000, .begin = NOT, .module = 2}},              /* outside its module */
                 {{.parent = 0, .self = 1, .begin = 2, .module = 1}},                     /* before its function */
                 {{.parent = 0, .self = 1, .begin = 1, .kind = 2, .module = 1}},          /* no such
                                                                                             kind */
                 {{.parent = 1, .self = 1, .begin = NOT, .module = ATTACH_MODULE_NONE}}}; /* incomplete inside */
    put(1, 0, 1, 0x10, 0x8);
    put_pc(4, 1, 1, 0x20, 0x18, 0);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        *node(2) = cases[i].node;
        node(2)->count = node(3)->count = 1 + i;
        put_pc(3, 2, 1, 0x99, 0x98, 1 + i);
        add(4, 1);
        ledger.inexact = 0;
        harvest(1 + i, ATTACH_LIVES);
        cr_assert_str_eq(tree, "0R0+400010=0 1P0+400020=1 ", "case %u: %s", i, tree);
        cr_assert_eq(ledger.inexact, INEXACT_SAMPLED | INEXACT_CALLS_LOST | INEXACT_TICKS_LOST, "case %u", i);
    }
}

Test(ingest_attach_stacks, a_chain_that_is_too_deep_is_left_out)
{
    for (uint32_t depth = LIMIT_STACK_DEPTH - 1; depth <= LIMIT_STACK_DEPTH + 200; depth++) {
        for (uint32_t i = 1; i <= depth; i++) {
            put(i, i - 1, 1, 0x10 * i, 0x10 * i - 4);
        }
        put_pc(depth + 1, depth, 1, 0x5, 0x5, 0);
        add(depth + 1, 1);
        ledger.inexact = 0;
        harvest(1 + depth, ATTACH_LIVES);
        bool fits = depth + 1 <= LIMIT_STACK_DEPTH;
        cr_assert_eq(ledger.inexact, fits ? INEXACT_SAMPLED : (INEXACT_CALLS_LOST | INEXACT_TICKS_LOST), "depth %u",
                     depth);
        cr_assert_eq(tree[0] != 0, fits, "depth %u: %s", depth, tree);
        node(depth + 1)->count = 0;
    }
}

Test(ingest_attach_stacks, pairs_are_arcs_where_calls_are_not_counted)
{
    uint32_t counted = live_module(&live, 0xcc, 20, 0, 0x1000, "/lib/counted.so");
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 8);
    put(1, 0, 1, 0x10, 0x8);
    put_pc(2, 1, 2, 0x20, 0x18, 3);
    put_pc(3, 1, counted, 0x20, 0x18, 5);
    live_count(arcs, 1, 1, 0x10, counted, 0x20, 70);
    harvest(1, ATTACH_LIVES);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400010, "bb", 0x18), 3);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400010, "cc", 0x20), 70);
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400010, "cc", 0x18), 0);
    cr_assert_eq(ledger.inexact, INEXACT_SAMPLED);
    ledger.inexact = 0;
    live_count(arcs, 2, 2, 0x10, 1, 0x20, 1); /* now the program's own are counted */
    add(2, 3);
    harvest(2, ATTACH_LIVES);
    cr_assert(ledger_arc(&ledger, "aa", 0x400010, "bb", 0x18) == 3 && ledger.inexact == 0);
}

Test(ingest_attach_stacks, a_large_memory_is_read_alike)
{
    struct attach_chunk *arcs = live_table(&live, ATTACH_KIND_ARCS, 200000); /* then it is not read at once */
    live_count(arcs, 199999, 1, 0x10, 2, 0x20, 1);
    put(1, 0, 1, 0x10, 0x8);
    put_pc(NODES, 1, 1, 0x20, 0x18, 3);
    cr_assert_gt(live.h->used, LIMIT_ATTACH_WHOLE);
    harvest(1, ATTACH_LIVES);
    cr_assert_str_eq(tree, "0R0+400010=0 1P0+400020=3 ");
    cr_assert_eq(ledger_arc(&ledger, "aa", 0x400010, "bb", 0x20), 1);
}
