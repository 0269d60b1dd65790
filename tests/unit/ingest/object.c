/* Executables: whose, which, and what uploads must agree with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/bounds.h"
#include "tests/unit/ingest/bed.h"

static struct bed b;
static struct bed_object o;

static void enter(void)
{
    bed_open();
    bed_init(&b);
    bed_object(&o, PROGRAM);
    b.counts.to_build[2] = 0;
    for (uint32_t i = 0; i < 3; i++) {
        b.counts.from_build[i] = 0;
    }
}

static void leave(void)
{
    bed_done(&b);
    bed_close();
}

TestSuite(ingest_object, .init = enter, .fini = leave);

static void wrong(const char *words)
{
    uint64_t before = stored_uploads();
    cr_assert_eq(bed_status(&b), PROFD_WRONG_BUILD, "%s", sentence.sentence);
    cr_assert(strstr(sentence.sentence, words), "\"%s\" does not say \"%s\"", sentence.sentence, words);
    cr_assert(strstr(sentence.sentence, PROGRAM));
    cr_assert_eq(stored_uploads(), before);
}

static void right(void)
{
    cr_assert_eq(bed_status(&b), PROFD_OK, "%s", sentence.sentence);
    b.m->sequence++;
}

Test(ingest_object, known_executable_is_not_wanted)
{
    struct ingest_item item;
    cr_assert_eq(bed_deliver(&o, 1000, false, PROGRAM), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(bed_send(&b, &item), PROFD_OK, "%s", item.error.sentence);
    cr_assert_eq(item.missing_count, 1);
    cr_assert_str_eq(item.missing[0].id.text, LIBRARY);
    ingest_item_done(&item);
    b.uid = 1001;
    cr_assert_eq(bed_send(&b, &item), PROFD_OK, "%s", item.error.sentence);
    cr_assert_eq(item.missing_count, 2, "another user's word is not enough");
    ingest_item_done(&item);
}

Test(ingest_object, answer_must_be_the_build_that_was_asked_for)
{
    cr_assert_eq(bed_deliver(&o, 1000, false, LIBRARY), PROFD_WRONG_BUILD);
    cr_assert(strstr(sentence.sentence, PROGRAM) && strstr(sentence.sentence, LIBRARY), "%s", sentence.sentence);
    bool known;
    cr_assert_eq(store_has_object(store, 1000, LIBRARY, &known, &sentence), PROFD_OK);
    cr_assert_not(known);
    cr_assert_eq(bed_deliver(&o, 1000, false, "AAAA0000000000000000000000000000000000AA"), PROFD_OK, "case is folded");
    cr_assert_eq(bed_deliver(&o, 1000, false, ""), PROFD_OK, "nobody asked: profctl symbols");
}

Test(ingest_object, worker_is_believed_like_a_stranger)
{
    uint8_t *bytes;
    size_t n;
    bool known;
    cr_assert_eq(object_encode(&o.o, &bytes, &n, &sentence), PROFD_OK);
    for (size_t cut = 0; cut < n; cut++) {
        struct ingest_object object = {
            .uid = 1000, .build_id = PROGRAM, .name = "x", .answer = bytes, .answer_size = cut};
        cr_assert_neq(ingest_object_store(store, &object, &sentence), PROFD_OK);
        cr_assert(strstr(sentence.sentence, "what the worker said about x"), "%s", sentence.sentence);
    }
    cr_assert_eq(store_has_object(store, 1000, PROGRAM, &known, &sentence), PROFD_OK);
    cr_assert_not(known);
    free(bytes);
}

static void copy_note(void *context, const struct build_row *r)
{
    snprintf(context, 100, "%s", r->note);
}

Test(ingest_object, failure_is_noted_and_not_asked_for_again)
{
    char note[100];
    bool known;
    struct store_scope all = {.all = true};
    right();
    struct ingest_object object = {.uid = 1000, .build_id = PROGRAM, .name = "x", .failure = "killed after 5 s"};
    cr_assert_eq(ingest_object_store(store, &object, &sentence), PROFD_OK);
    cr_assert_eq(store_has_object(store, 1000, PROGRAM, &known, &sentence), PROFD_OK);
    cr_assert(known);
    cr_assert_eq(store_get_build(store, &all, PROGRAM, copy_note, note, &sentence), PROFD_OK);
    cr_assert_str_eq(note, "killed after 5 s");
    right();
    object.build_id = "";
    cr_assert_eq(ingest_object_store(store, &object, &sentence), PROFD_MALFORMED);
    cr_assert_str_eq(sentence.sentence, "killed after 5 s");
    object.build_id = "no id";
    cr_assert_eq(ingest_object_store(store, &object, &sentence), PROFD_REFUSED);
    static char name[5000];
    memset(name, 'n', sizeof name - 1);
    object.name = name;
    cr_assert_eq(ingest_object_store(store, &object, &sentence), PROFD_TOO_LARGE);
}

Test(ingest_object, imported_histogram_must_span_what_the_symbols_say)
{
    cr_assert_eq(bed_deliver(&o, 1000, false, PROGRAM), PROFD_OK);
    b.m->inexact = INEXACT_CALLER_BUCKET;
    right(); /* 0x1001 & ~3 … 0x1fff rounded up to 4 */
    b.counts.histograms[0].low = 0x1004;
    wrong("spans 0x1004-0x2000");
    cr_assert(strstr(sentence.sentence, "0x1000-0x2000"), "%s", sentence.sentence);
    b.counts.histograms[0].low = 0x1000;
    b.counts.histograms[0].high = 0x1ffc;
    wrong("spans 0x1000-0x1ffc");
    b.m->inexact = 0;
    right(); /* the collector's histograms have their own geometry */
}

Test(ingest_object, without_marks_addresses_must_be_in_the_code)
{
    o.o.has_etext = false;
    cr_assert_eq(bed_deliver(&o, 1000, false, PROGRAM), PROFD_OK);
    b.m->inexact = INEXACT_CALLER_BUCKET;
    b.counts.histograms[0].low = 0x800;
    b.counts.histograms[0].high = 0x1800; /* bins of 0x400: index 1 at 0xc00, before the code */
    wrong("a bin with ticks at 0xc00");
    b.counts.bin_index[0] = 2;
    right();
    b.counts.histograms[0].low = 0x5000;
    b.counts.histograms[0].high = 0x6000;
    wrong("a histogram that begins at 0x5000");
    b.counts.histograms[0].low = 0x1000;
    b.counts.histograms[0].high = 0x2000;
    b.counts.to[1] = 0x2000;
    wrong("the callee of an arc at 0x2000");
    b.counts.to[1] = 0x3000;
    right();
}

Test(ingest_object, arcs_must_be_in_the_code)
{
    cr_assert_eq(bed_deliver(&o, 0, true, PROGRAM), PROFD_OK);
    b.counts.from[0] = 0xfff;
    wrong("the caller of an arc at 0xfff");
    b.counts.from[0] = 0x30ff;
    right();
    b.counts.from[0] = 0x3100; /* the last call never returns */
    right();
    b.counts.from[0] = 0x3101;
    wrong("the caller of an arc at 0x3101");
    b.counts.from_build[0] = COUNTS_NOWHERE;
    right();
    b.counts.to[0] = UINT64_MAX;
    wrong("the callee of an arc at 0xffffffffffffffff");
    b.counts.to_build[0] = 1; /* the library is unknown: nothing to hold against it */
    right();
}

Test(ingest_object, imported_arcs_are_rounded_and_may_lead_into_libraries)
{
    cr_assert_eq(bed_deliver(&o, 1000, false, PROGRAM), PROFD_OK);
    b.m->inexact = INEXACT_CALLER_BUCKET;
    b.counts.from[0] = 0xff1; /* the bucket that holds 0x1000 */
    right();
    b.counts.from[0] = 0xff0;
    wrong("the caller of an arc at 0xff0");
    b.counts.from[0] = 0x1000;
    b.counts.to[0] = 0x7f0000001234; /* a -pg library, seen from a proven executable */
    right();
    b.counts.from[0] = UINT64_MAX - 3;
    wrong("the caller of an arc");
}

Test(ingest_object, executable_of_another_user_judges_nobody)
{
    b.counts.to[0] = 0x999999;
    cr_assert_eq(bed_deliver(&o, 1001, false, PROGRAM), PROFD_OK);
    right();
    cr_assert_eq(bed_deliver(&o, 0, true, PROGRAM), PROFD_OK);
    wrong("0x999999");
}

/* The executable comes after the upload: the repeat of what was accepted still gets its ACK. */
Test(ingest_object, late_executable_does_not_turn_an_answer_around)
{
    struct ingest_item item;
    b.counts.to[0] = 0x999999;
    cr_assert_eq(bed_status(&b), PROFD_OK);
    cr_assert_eq(bed_deliver(&o, 1000, false, PROGRAM), PROFD_OK);
    cr_assert_eq(bed_send(&b, &item), PROFD_OK, "%s", item.error.sentence);
    cr_assert(item.duplicate);
    cr_assert_eq(item.error.sentence[0], 0);
    ingest_item_done(&item);
    b.m->sequence = 2;
    wrong("0x999999");
}

Test(ingest_object, bounds_agree_with_the_object)
{
    struct arena *a = arena_new(0);
    srand(5);
    for (int round = 0; round < 2000; round++) {
        struct object_range ranges[6];
        struct object object = {.range_count = (uint32_t)rand() % 7, .ranges = ranges};
        struct bounds bounds;
        const uint8_t *bytes;
        size_t n;
        for (uint32_t i = 0; i < object.range_count; i++) {
            ranges[i].low = (uint64_t)rand() % 60;
            ranges[i].high = ranges[i].low + (uint64_t)rand() % 12;
        }
        cr_assert_eq(bounds_encode(&object, a, &bytes, &n, &sentence), PROFD_OK);
        cr_assert(bounds_open(bytes, n, &bounds));
        struct bounds_hint hint = {0};
        for (uint64_t low = 0; low < 75; low++) {
            bool inside = false;
            uint64_t high = low + 1 + (uint64_t)rand() % 4;
            for (uint32_t i = 0; i < object.range_count; i++) {
                inside |= ranges[i].low < ranges[i].high && ranges[i].low < high && low < ranges[i].high;
            }
            cr_assert_eq(bounds_touch(&bounds, low, high), inside, "round %d, [%llu, %llu)", round,
                         (unsigned long long)low, (unsigned long long)high);
            cr_assert_eq(bounds_touch_near(&bounds, low, high, &hint), inside);
        }
        for (int i = 0; i < 200; i++) { /* in any order */
            uint64_t low = (uint64_t)rand() % 75, high = low + 1 + (uint64_t)rand() % 9;
            cr_assert_eq(bounds_touch_near(&bounds, low, high, &hint), bounds_touch(&bounds, low, high));
        }
        arena_reset(a);
    }
    struct bounds bounds;
    cr_assert_not(bounds_open((const uint8_t *)"short", 5, &bounds));
    arena_free(a);
}
