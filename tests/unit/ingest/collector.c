/* Uploads with the collector's counters: believed beside the samples, and never taken for some. */
#include <string.h>

#include "proto/collector.h"
#include "tests/unit/ingest/bed.h"

static struct bed b;

static void enter(void)
{
    struct bed_object o;
    bed_open();
    bed_init(&b);
    bed_object(&o, PROGRAM);
    cr_assert_eq(bed_deliver(&o, 1000, false, PROGRAM), PROFD_OK, "%s", sentence.sentence);
}

static void leave(void)
{
    bed_done(&b);
    bed_close();
}

TestSuite(ingest_collector, .init = enter, .fini = leave);

/* The bed's counts with words of that build before its histogram. */
static void add_collector(uint32_t build, uint64_t cpu)
{
    struct counts c, *old = &b.counts;
    cr_assert_eq(counts_init(&c, 2, 3, 3, NULL), PROFD_OK);
    collector_make_histogram(&c.histograms[0], build);
    c.histograms[0].used = 1;
    c.bin_index[0] = COLLECTOR_CPU_NS;
    c.bin_ticks[0] = cpu;
    c.histograms[1] = old->histograms[0];
    c.histograms[1].first = 1;
    memcpy(c.bin_index + 1, old->bin_index, 2 * sizeof *c.bin_index);
    memcpy(c.bin_ticks + 1, old->bin_ticks, 2 * sizeof *c.bin_ticks);
    memcpy(c.from, old->from, 3 * sizeof *c.from);
    memcpy(c.to, old->to, 3 * sizeof *c.to);
    memcpy(c.calls, old->calls, 3 * sizeof *c.calls);
    memcpy(c.to_build, old->to_build, 3 * sizeof *c.to_build);
    memcpy(c.from_build, old->from_build, 3 * sizeof *c.from_build);
    counts_done(old);
    *old = c;
}

/* Address 0 is no code of the program, which is known: only samples must lie in some. */
Test(ingest_collector, they_lie_in_no_code)
{
    struct ingest_item item;
    add_collector(0, 5000000000);
    cr_assert_eq(bed_send(&b, &item), PROFD_OK, "%s", item.error.sentence);
    cr_assert(item.ticks == 7 && item.calls == 33);
    ingest_item_done(&item);
}

/* They say nothing about a known program's marks either, and an imported file may carry them. */
Test(ingest_collector, imported_files_may_have_them)
{
    b.m->inexact = INEXACT_CALLER_BUCKET;
    b.counts.histograms[0].low = 0x1000;
    add_collector(0, 1);
    cr_assert_eq(bed_status(&b), PROFD_OK, "%s", sentence.sentence);
}

Test(ingest_collector, they_are_of_the_program)
{
    b.m->program = 1;
    add_collector(0, 1);
    cr_assert_eq(bed_status(&b), PROFD_MALFORMED);
    cr_assert_str_eq(sentence.sentence,
                     "histogram 0 of dimension collector is of build number 0: it must be of the program, number 1");
    cr_assert_eq(stored_uploads(), 0);
    b.counts.histograms[0].build = 1;
    cr_assert_eq(bed_status(&b), PROFD_OK, "%s", sentence.sentence);
}

static void row_take(void *context, const struct build_row *row)
{
    *(struct build_row *)context = *row;
}

/* 292 years of CPU time are no reason to doubt ticks and calls. */
Test(ingest_collector, at_their_end_they_spoil_nothing)
{
    struct build_row row;
    add_collector(0, UINT64_MAX);
    for (b.m->sequence = 1; b.m->sequence < 4; b.m->sequence++) {
        cr_assert_eq(bed_status(&b), PROFD_OK, "%s", sentence.sentence);
    }
    cr_assert_eq(store_get_build(store, &(struct store_scope){.all = true}, PROGRAM, row_take, &row, &sentence),
                 PROFD_OK);
    cr_assert(row.inexact == 0 && row.nanoseconds == 3 * 70000000 && row.uploads == 3);
}
