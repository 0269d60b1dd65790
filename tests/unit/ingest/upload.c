/* What an upload may say: every rule refused in words, nothing stored after a refusal. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "tests/unit/ingest/bed.h"

static struct bed b;

static void enter(void)
{
    bed_open();
    bed_init(&b);
}

static void leave(void)
{
    bed_done(&b);
    bed_close();
}

TestSuite(ingest_upload, .init = enter, .fini = leave);

/* Refused with this status, these words, and nothing stored; and the id stays free. */
static void refused(enum profd_status status, const char *words)
{
    cr_assert_eq(bed_status(&b), status, "%s", sentence.sentence);
    cr_assert(strstr(sentence.sentence, words), "\"%s\" does not say \"%s\"", sentence.sentence, words);
    cr_assert_eq(stored_uploads(), 0);
}

static struct build_row row;
static void copy_row(void *context, const struct build_row *r)
{
    (void)context;
    row = *r;
}
static struct build_row build(const char *id)
{
    struct store_scope all = {.all = true};
    cr_assert_eq(store_get_build(store, &all, id, copy_row, NULL, &sentence), PROFD_OK, "%s", sentence.sentence);
    return row;
}

Test(ingest_upload, believed_upload_is_stored_with_its_sums)
{
    struct ingest_item item;
    cr_assert_eq(bed_send(&b, &item), PROFD_OK, "%s", item.error.sentence);
    cr_assert_not(item.duplicate);
    cr_assert_eq(item.ticks, 7);
    cr_assert_eq(item.calls, 33);
    cr_assert_eq(item.missing_count, 2);
    cr_assert_str_eq(item.missing[0].id.text, PROGRAM);
    cr_assert_str_eq(item.missing[0].name, "/usr/bin/program");
    cr_assert_str_eq(item.missing[1].id.text, LIBRARY);
    ingest_item_done(&item);
    struct build_row r = build(PROGRAM);
    cr_assert(r.is_program);
    cr_assert_eq(r.nanoseconds, 70000000);
    cr_assert_eq(r.calls, 21);
    cr_assert_eq(r.first_seen, NOON - MINUTE);
    cr_assert_eq(r.last_seen, NOON);
    cr_assert_eq(r.inexact, 0);
    r = build(LIBRARY);
    cr_assert_not(r.is_program);
    cr_assert_eq(r.nanoseconds, 0);
    cr_assert_eq(r.calls, 12);
}

Test(ingest_upload, repeat_gets_the_same_answer_and_counts_once)
{
    struct ingest_item item;
    cr_assert_eq(bed_status(&b), PROFD_OK);
    cr_assert_eq(bed_send(&b, &item), PROFD_OK);
    cr_assert(item.duplicate);
    cr_assert_eq(item.ticks + item.calls, 0);
    ingest_item_done(&item);
    b.m->host = "0123456789ABCDEF0123456789ABCDEF";
    cr_assert_eq(bed_send(&b, &item), PROFD_OK, "one host, two spellings");
    cr_assert(item.duplicate);
    ingest_item_done(&item);
    cr_assert_eq(stored_uploads(), 1);
    b.uid = 1001;
    cr_assert_eq(bed_status(&b), PROFD_OK);
    cr_assert_eq(stored_uploads(), 2, "another user's upload with the same id is another upload");
}

Test(ingest_upload, ids_are_refused_in_words)
{
    b.m->sequence = 0;
    refused(PROFD_REFUSED, "sequence is 0");
    b.m->sequence = 1;
    b.m->sender.size = 11;
    refused(PROFD_REFUSED, "has 11 bytes, not 12");
    b.m->sender.size = 0;
    refused(PROFD_REFUSED, "has 0 bytes");
    b.m->sender.size = 12;
    memset(b.sender, 0, sizeof b.sender);
    refused(PROFD_REFUSED, "all zeros");
}

Test(ingest_upload, hosts_are_machine_ids_or_unknown)
{
    b.m->host = "localhost";
    refused(PROFD_REFUSED, "\"localhost\" is not a machine-id");
    b.m->host = "0123456789abcdef0123456789abcde";
    refused(PROFD_REFUSED, "32 hexadecimal digits");
    b.m->host = "0123456789abcdef0123456789abcdeg";
    refused(PROFD_REFUSED, "32 hexadecimal digits");
    b.m->host = "";
    cr_assert_eq(bed_status(&b), PROFD_OK);
}

Test(ingest_upload, builds_are_refused_in_words)
{
    static char long_name[4098];
    b.m->program = 2;
    refused(PROFD_REFUSED, "the program is build 2 of the upload; the builds are numbered from 0, and there are 2");
    b.m->program = 0;
    b.builds[1].build_id = PROGRAM;
    refused(PROFD_REFUSED, "is named twice");
    b.builds[1].build_id = "AAAA0000000000000000000000000000000000AA";
    refused(PROFD_REFUSED, "is named twice");
    b.builds[1].build_id = "not hex";
    refused(PROFD_REFUSED, "build number 1");
    b.builds[1].build_id = "";
    refused(PROFD_REFUSED, "build number 1");
    b.builds[1].build_id = LIBRARY;
    memset(long_name, 'n', sizeof long_name - 1);
    b.builds[1].name = long_name;
    refused(PROFD_TOO_LARGE, "has 4097 bytes; at most 4096");
    b.builds[1].name = "";
    b.m->build_count = 0;
    b.counts.to_build[2] = 0;
    cr_assert_neq(bed_status(&b), PROFD_OK);
    cr_assert_eq(stored_uploads(), 0);
}

Test(ingest_upload, many_builds_are_fine_and_64_are_wanted)
{
    static char ids[1024][17];
    struct ingest_item item;
    for (unsigned i = 0; i < 1024; i++) {
        snprintf(ids[i], sizeof ids[i], "%016x", 0xabc000 + i * 7);
        b.builds[i] = (struct message_build){ids[i], ids[i]};
    }
    b.m->build_count = 1024;
    cr_assert_eq(bed_send(&b, &item), PROFD_OK, "%s", item.error.sentence);
    cr_assert_eq(item.missing_count, 64);
    ingest_item_done(&item);
}

Test(ingest_upload, wanted_name_is_cut_between_characters)
{
    struct ingest_item item;
    char name[300];
    memset(name, 'x', sizeof name);
    memcpy(name + 254, "\xe2\x82\xac", 4); /* would end at 257 */
    b.builds[0].name = name;
    cr_assert_eq(bed_send(&b, &item), PROFD_OK, "%s", item.error.sentence);
    cr_assert_eq(strlen(item.missing[0].name), 254);
    ingest_item_done(&item);
}

static void label(size_t i, const char *name, const char *value)
{
    b.labels[i] = (struct message_label){name, value};
    if (b.m->label_count <= i) {
        b.m->label_count = i + 1;
    }
}

Test(ingest_upload, labels_are_refused_in_words)
{
    static const char *const bad[] = {"", "1st", "a-b", "__name", "a b", "ä", "a.b", "__"};
    static char name[130], value[1026];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        label(0, bad[i], "v");
        refused(PROFD_REFUSED, "is not a label name");
    }
    label(0, "host", "a");
    label(1, "host", "b");
    refused(PROFD_REFUSED, "label \"host\" is given twice");
    memset(name, 'n', sizeof name - 1);
    label(1, name, "v");
    refused(PROFD_TOO_LARGE, "has 129 bytes; at most 128");
    memset(value, 'v', sizeof value - 1);
    label(1, "x", value);
    refused(PROFD_TOO_LARGE, "has 1025 bytes; at most 1024");
    value[1000] = 0;
    static char names[20][8];
    for (size_t i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "l%zu", i);
        label(i, names[i], value);
    }
    refused(PROFD_TOO_LARGE, "at most 16384");
}

static bool append_label(void *context, const struct label_row *r)
{
    snprintf((char *)context + strlen(context), 200 - strlen(context), "%s=%s ", r->name, r->value);
    return true;
}

Test(ingest_upload, labels_are_one_set_whatever_their_order)
{
    char text[200] = "";
    struct store_scope all = {.all = true};
    label(0, "version", "2");
    label(1, "_host9", "ünï");
    label(2, "empty", "");
    cr_assert_eq(bed_status(&b), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(store_each_label(store, &all, NULL, append_label, text, &sentence), PROFD_OK);
    cr_assert_str_eq(text, "_host9=ünï version=2 ", "an empty value is no label");
}

Test(ingest_upload, unknown_bits_are_refused)
{
    b.m->inexact = 1024;
    refused(PROFD_REFUSED, "0x400 hold unknown bits");
}

/* LIMIT_CLOCK_PAST_DAYS and LIMIT_CLOCK_FUTURE_MINUTES. */
static void window(uint64_t start, uint64_t end, int64_t want_start, int64_t want_end, uint32_t inexact)
{
    static uint32_t sequence;
    static char id[17];
    snprintf(id, sizeof id, "%016x", 0x10000u + ++sequence);
    b.builds[0].build_id = id;
    b.m->sequence = sequence;
    b.m->start = start;
    b.m->end = end;
    cr_assert_eq(bed_status(&b), PROFD_OK, "%s", sentence.sentence);
    struct build_row r = build(id);
    cr_assert_eq(r.first_seen, want_start, "window %u", sequence);
    cr_assert_eq(r.last_seen, want_end, "window %u", sequence);
    cr_assert_eq(r.inexact, inexact, "window %u", sequence);
}

Test(ingest_upload, clocks_are_believed_near_the_receipt)
{
    const uint64_t noon = (uint64_t)NOON, week = 7 * 24 * 60 * (uint64_t)MINUTE;
    window(noon - 5, noon - 3, NOON - 5, NOON - 3, 0);
    window(0, noon, NOON, NOON, 0);
    window(5, noon, 5, NOON, 0);
    window(noon - week, noon - week, NOON - (int64_t)week, NOON - (int64_t)week, 0);
    window(noon - week - 1, noon - week - 1, NOON, NOON, INEXACT_CLOCK);
    window(noon, noon + 5 * (uint64_t)MINUTE, NOON, NOON + 5 * MINUTE, 0);
    window(noon, noon + 5 * (uint64_t)MINUTE + 1, NOON, NOON, INEXACT_CLOCK);
    window(0, 0, NOON, NOON, INEXACT_CLOCK);
    window(noon, noon - 1, NOON - 1, NOON - 1, INEXACT_CLOCK);
    window(0, UINT64_MAX, NOON, NOON, INEXACT_CLOCK);
    window(UINT64_MAX, noon, NOON, NOON, INEXACT_CLOCK);
}

Test(ingest_upload, counts_must_decode_and_name_known_builds)
{
    b.m->counts = (struct message_bytes){(const uint8_t *)"rubbish", 7};
    cr_assert_neq(bed_status(&b), PROFD_OK);
    cr_assert_neq(sentence.sentence[0], 0);
    b.m->counts.data = NULL;
    b.counts.to_build[2] = 2;
    cr_assert_neq(bed_status(&b), PROFD_OK);
    cr_assert_neq(sentence.sentence[0], 0);
    cr_assert_eq(stored_uploads(), 0);
}

Test(ingest_upload, every_truncation_is_refused)
{
    struct ingest_item item;
    uint8_t *payload = bed_item(&b, &item);
    size_t whole = item.size;
    int refusals = 0;
    /* A payload cut between two fields may still be a message, but never the same upload: the counts stand in it. */
    for (size_t n = 0; n < whole; n++) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, payload, n);
        struct ingest_item one = {.uid = 1, .received = NOON, .payload = cut, .size = n};
        bed_put(&(struct ingest_item *){&one}, 1);
        refusals += one.status != PROFD_OK;
        cr_assert(one.status == PROFD_OK || one.error.sentence[0] != 0);
        ingest_item_done(&one);
        free(cut);
    }
    cr_assert_geq(refusals, (int)whole - 3, "only the fields behind the counts may be missing");
    free(payload);
}

Test(ingest_upload, sums_that_reach_their_end_say_so)
{
    b.counts.bin_ticks[0] = (uint64_t)INT64_MAX;
    b.counts.histograms[0].rate = 1;
    cr_assert_eq(bed_status(&b), PROFD_OK, "%s", sentence.sentence);
    struct build_row r = build(PROGRAM);
    cr_assert_eq(r.nanoseconds, (uint64_t)INT64_MAX);
    cr_assert_eq(r.inexact, INEXACT_SATURATED);
}

Test(ingest_upload, ticks_that_are_not_time_are_no_seconds)
{
    strcpy(b.counts.histograms[0].dimension, "misses");
    cr_assert_eq(bed_status(&b), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(build(PROGRAM).nanoseconds, 0);
    strcpy(b.counts.histograms[0].dimension, "seconds");
    b.counts.histograms[0].rate = 1000000000;
    b.m->sequence = 2;
    cr_assert_eq(bed_status(&b), PROFD_OK);
    cr_assert_eq(build(PROGRAM).nanoseconds, 7);
}

Test(ingest_upload, batch_judges_each_by_itself)
{
    enum { N = 9 };
    struct ingest_item items[N], *each[N];
    uint8_t *payloads[N];
    for (uint32_t i = 0; i < N; i++) {
        b.m->sequence = i == 4 ? 1 : i + 1; /* 4 repeats 0 */
        b.m->inexact = i % 3 == 2 ? 1024 : 0;
        payloads[i] = bed_item(&b, &items[i]);
        each[i] = &items[i];
    }
    items[7].size = 3; /* not even a message */
    bed_put(each, N);
    for (uint32_t i = 0; i < N; i++) {
        enum profd_status want = i % 3 == 2 ? PROFD_REFUSED : i == 7 ? items[7].status : PROFD_OK;
        cr_assert_eq(items[i].status, want, "item %u: %s", i, items[i].error.sentence);
        cr_assert_eq(items[i].status == PROFD_OK, items[i].error.sentence[0] == 0);
        cr_assert_eq(items[i].duplicate, i == 4);
        free(payloads[i]);
        ingest_item_done(&items[i]);
    }
    cr_assert_neq(items[7].status, PROFD_OK);
    cr_assert_eq(stored_uploads(), 4);
}

Test(ingest_upload, too_many_gaps_are_busy_not_lost)
{
    for (uint32_t i = 0; i < STORE_ID_RANGES; i++) {
        b.m->sequence = 3 + 2 * i;
        cr_assert_eq(bed_status(&b), PROFD_OK);
    }
    b.m->sequence = 3 + 2 * STORE_ID_RANGES;
    cr_assert_eq(bed_status(&b), PROFD_BUSY);
    cr_assert(strstr(sentence.sentence, "1024 gaps"), "%s", sentence.sentence);
    cr_assert(profd_status_retry(PROFD_BUSY));
    cr_assert_eq(stored_uploads(), STORE_ID_RANGES);
}
