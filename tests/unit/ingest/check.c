/* Checking ahead of the writer: the same answers, what it remembers of executables, and the allowance of new builds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/unit/ingest/bed.h"

#define HOUR INT64_C(3600000000000)
#define MANY 1000

static struct bed b;
static struct build_cache *checker;

static void enter(void)
{
    bed_open();
    bed_init(&b);
    cr_assert_eq(build_cache_new(store, &checker, &sentence), PROFD_OK);
}

static void leave(void)
{
    build_cache_free(checker);
    bed_done(&b);
    bed_close();
}

TestSuite(ingest_check, .init = enter, .fini = leave);

/* Checks the bed's upload as received at that time; stores it if it is believed. */
static struct ingest_item send(uint64_t generation, int64_t received, bool store_it)
{
    struct ingest_item item, *one = &item;
    uint8_t *payload = bed_item(&b, &item);

    item.received = received;
    ingest_check(checker, generation, &item);
    cr_assert_eq(item.status == PROFD_OK, item.error.sentence[0] == 0);
    cr_assert_eq(item.validated != NULL, item.status == PROFD_OK || item.status == PROFD_WRONG_BUILD);
    memset(payload, 0xee, item.size); /* nothing may look at it any more */
    free(payload);
    if (store_it) {
        ingest_batch(store, generation, &one, 1);
    }
    ingest_item_done(&item);
    cr_assert_null(item.validated);
    return item;
}

Test(ingest_check, stores_what_was_checked_without_its_payload)
{
    struct ingest_item item = send(0, NOON, true);

    cr_assert_eq(item.status, PROFD_OK, "%s", item.error.sentence);
    cr_assert_eq(item.ticks, 7);
    cr_assert_eq(item.calls, 33);
    cr_assert_eq(stored_uploads(), 1);
    item = send(0, NOON, true);
    cr_assert(item.status == PROFD_OK && item.duplicate);
    cr_assert_eq(stored_uploads(), 1);
}

Test(ingest_check, an_executable_counts_from_its_generation)
{
    struct bed_object o;

    cr_assert_eq(send(3, NOON, false).status, PROFD_OK);
    bed_object(&o, PROGRAM);
    o.ranges[0] = o.ranges[2] = o.ranges[1]; /* code at 0x3000 only */
    o.o.has_etext = false;
    cr_assert_eq(bed_deliver(&o, b.uid, false, ""), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(send(3, NOON, false).status, PROFD_OK, "what is remembered holds within a generation");
    struct ingest_item item = send(4, NOON, false);
    cr_assert_eq(item.status, PROFD_WRONG_BUILD);
    cr_assert(strstr(item.error.sentence, "0x1000 lies outside the code of build " PROGRAM), "%s", item.error.sentence);
}

Test(ingest_check, a_repeat_keeps_its_answer_when_the_executable_came_later)
{
    struct bed_object o;

    cr_assert_eq(send(0, NOON, true).status, PROFD_OK);
    bed_object(&o, PROGRAM);
    o.ranges[0] = o.ranges[2] = o.ranges[1];
    o.o.has_etext = false;
    cr_assert_eq(bed_deliver(&o, b.uid, false, ""), PROFD_OK);
    struct ingest_item item = send(1, NOON, true);
    cr_assert(item.status == PROFD_OK && item.duplicate && item.error.sentence[0] == 0, "%s", item.error.sentence);
    b.m->sequence = 2;
    cr_assert_eq(send(1, NOON, true).status, PROFD_WRONG_BUILD);
    cr_assert_eq(stored_uploads(), 1);
}

/* The next upload names MANY builds, from this one. */
static void name_builds(uint32_t first)
{
    static char ids[MANY][41];

    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "%040x", first + i);
        b.builds[i] = (struct message_build){ids[i], "made-up"};
    }
    b.m->build_count = MANY;
    b.m->sequence++;
}

Test(ingest_check, builds_named_first_are_so_many_an_hour)
{
    const uint32_t rounds = LIMIT_BUILDS_PER_HOUR_PER_UID / MANY;
    struct ingest_item item;

    cr_assert_eq(rounds * MANY, LIMIT_BUILDS_PER_HOUR_PER_UID, "the test needs whole thousands");
    for (uint32_t i = 0; i < rounds; i++) {
        name_builds(1 + i * MANY);
        item = send(0, NOON, false);
        cr_assert_eq(item.status, PROFD_OK, "%s", item.error.sentence);
    }
    name_builds(1 + rounds * MANY);
    item = send(0, NOON, false);
    cr_assert_eq(item.status, PROFD_BUSY);
    cr_assert_str_eq(item.error.sentence,
                     "user 1000 names 1000 new builds, but may name only 0 more now: the limit is 10000 an hour");
    cr_assert_eq(item.retry_after_ms, HOUR / 1000000 / rounds + 1);
    /* Not one of them was charged or remembered; others, and what is known, pass. */
    name_builds(1);
    cr_assert_eq(send(0, NOON, false).status, PROFD_OK);
    b.uid = 1001;
    name_builds(1 + rounds * MANY);
    cr_assert_eq(send(0, NOON, false).status, PROFD_OK);
    b.uid = 1000;
    name_builds(1 + rounds * MANY);
    cr_assert_eq(send(0, NOON + HOUR / rounds - 1000000, false).status, PROFD_BUSY);
    cr_assert_eq(send(0, NOON + HOUR / rounds, false).status, PROFD_OK);
    name_builds(1 + 2 * rounds * MANY);
    cr_assert_eq(send(0, NOON - HOUR, false).status, PROFD_BUSY, "a clock set back gives nothing");
    cr_assert_eq(send(0, NOON + 300 * HOUR, false).status, PROFD_OK);
}

Test(ingest_check, a_refused_upload_names_nothing)
{
    for (uint32_t i = 0; i < 3 * LIMIT_BUILDS_PER_HOUR_PER_UID / MANY; i++) {
        name_builds(1 + i * MANY);
        b.m->inexact = 1u << 31;
        cr_assert_eq(send(0, NOON, false).status, PROFD_REFUSED);
    }
    b.m->inexact = 0;
    cr_assert_eq(send(0, NOON, false).status, PROFD_OK);
}

Test(ingest_check, what_the_store_knows_costs_nothing)
{
    const uint32_t rounds = LIMIT_BUILDS_PER_HOUR_PER_UID / MANY;

    name_builds(1);
    cr_assert_eq(send(0, NOON, true).status, PROFD_OK);
    /* A new process of the daemon asks the store. */
    build_cache_free(checker);
    cr_assert_eq(build_cache_new(store, &checker, &sentence), PROFD_OK);
    for (uint32_t i = 0; i <= rounds; i++) {
        name_builds(1 + i * MANY);
        cr_assert_eq(send(0, NOON, false).status, PROFD_OK, "round %u", i);
    }
    name_builds(1 + (rounds + 1) * MANY);
    cr_assert_eq(send(0, NOON, false).status, PROFD_BUSY);
}

static enum profd_status take_stacks(void *context, const struct store_row *row, struct profd_error *e)
{
    return counts_decode(row->counts, row->counts_size, (uint32_t)row->build_count, context, e);
}

/* A return address outside the code: it and what is further out are not known. */
Test(ingest_check, stacks_lose_return_addresses_that_cannot_be)
{
    struct counts_tree tree = {.rate = 100, .dimension = "seconds", .abbreviation = 's', .used = 5};
    uint8_t depth[] = {0, 1, 1, 2, 3}, kind[] = {0, 1, 0, 0, 1};
    uint32_t build[] = {0, 0, 0, 0, 0};
    uint64_t address[] = {0x1101, 0x1800, 0x9000, 0x2000, 0x1200}, ticks[] = {0, 1, 1, 2, 3};
    struct bed_object o;
    struct counts *c = &b.counts, back = {0};
    bed_object(&o, PROGRAM);
    o.o.has_etext = false;
    cr_assert_eq(bed_deliver(&o, b.uid, false, ""), PROFD_OK, "%s", sentence.sentence);
    c->tree_count = 1;
    c->node_count = 5;
    c->trees = &tree;
    c->node_depth = depth;
    c->node_kind = kind;
    c->node_build = build;
    c->node_address = address;
    c->node_ticks = ticks;
    struct ingest_item item = send(1, NOON, true);
    cr_assert_eq(item.status, PROFD_OK, "%s", item.error.sentence);
    cr_assert_eq(store_each_upload(store, &(struct store_scope){.all = true},
                                   &(struct store_filter){.build_id = PROGRAM}, take_stacks, &back, &sentence),
                 PROFD_OK, "%s", sentence.sentence);
    cr_assert(back.arc_count == 3 && back.tree_count == 1 && back.node_count == 5);
    cr_assert_arr_eq(back.node_depth, ((const uint8_t[]){0, 1, 0, 1, 2}), 5);
    cr_assert_arr_eq(back.node_kind, ((const uint8_t[]){0, 1, 0, 0, 1}), 5);
    cr_assert_arr_eq(back.node_address, ((const uint64_t[]){0x1101, 0x1800, COUNTS_FRAME_INCOMPLETE, 0x2000, 0x1200}),
                     sizeof address);
    cr_assert_arr_eq(back.node_ticks, ((const uint64_t[]){0, 1, 1, 2, 3}), sizeof ticks);
    cr_assert(back.node_build[1] == 0 && back.node_build[2] == COUNTS_NOWHERE);
    counts_done(&back);
    address[1] = 0x2800;
    b.m->sequence = 2;
    item = send(2, NOON, false);
    cr_assert_eq(item.status, PROFD_WRONG_BUILD);
    cr_assert(strstr(item.error.sentence, "the program counter of a stack at 0x2800") != NULL, "%s",
              item.error.sentence);
}
