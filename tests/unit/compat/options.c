/* Symspecs, styles and the other choices; the expected lists follow gprof's rules, the bytes are compared in
 * tests/oracle. */
#include <criterion/criterion.h>
#include <string.h>

#include "compat/compat_run.h"
#include "tests/unit/compat/bed.h"

/* main 0x1000, f 0x1010 (a.c:5), g 0x1020 (/x/a.c:9), _h 0x1030 (/x/a.c:12), data behind .text. */
static struct bed *four_functions(void)
{
    struct bed *b = bed_new(0x1000, 0x1040);
    bed_function(b, "main", 0x1000);
    struct object_symbol *f = bed_symbol(b, "f", 0x1010, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
    f->file = bed_name(b, "/y/a.c");
    f->line = 5;
    struct object_symbol *g = bed_symbol(b, "g", 0x1020, OBJECT_BIND_LOCAL, OBJECT_TYPE_FUNCTION);
    g->file = bed_name(b, "/x/a.c");
    g->line = 9;
    struct object_symbol *h = bed_symbol(b, "_h", 0x1030, OBJECT_BIND_GLOBAL, OBJECT_TYPE_FUNCTION);
    h->file = g->file;
    h->line = 12;
    bed_symbol(b, "data_start", 0x9000, OBJECT_BIND_WEAK, OBJECT_TYPE_NONE);
    return b;
}

/* Bits of main, f, g, _h that a flat profile with these specs shows. */
static unsigned shown(struct bed *b, const struct compat_spec *specs, uint32_t n)
{
    struct compat_run r;
    struct compat_options options = {.brief = true, .specs = specs, .spec_count = n};
    cr_assert_eq(compat_run_open(&r, &options, &b->object, b->arena, &b->error), PROFD_OK, "%s", b->error.sentence);
    unsigned bits = 0;
    for (uint32_t v = 0; v < 4; v++) {
        bits |= (unsigned)compat_filter_on(&r.filter, COMPAT_FLAT, v) << v;
    }
    return bits;
}

#define INCLUDED(b, ...) shown(b, (struct compat_spec[]){{COMPAT_FLAT, false, __VA_ARGS__}}, 1)
#define EXCLUDED(b, ...) shown(b, (struct compat_spec[]){{COMPAT_FLAT, true, __VA_ARGS__}}, 1)

Test(compat_options, symspecs)
{
    struct bed *b = four_functions();
    cr_expect_eq(shown(b, NULL, 0), 15);
    cr_expect_eq(INCLUDED(b, "f"), 2);
    cr_expect_eq(EXCLUDED(b, "f"), 13);
    cr_expect_eq(INCLUDED(b, "h"), 15, "no symbol: the table stays empty");
    cr_expect_eq(INCLUDED(b, "_h"), 8);
    cr_expect_eq(INCLUDED(b, ":g"), 4);
    cr_expect_eq(INCLUDED(b, ""), 15);
    cr_expect_eq(EXCLUDED(b, ""), 0);
    cr_expect_eq(INCLUDED(b, "a.c"), 12, "of two paths that end so, the one met last");
    cr_expect_eq(INCLUDED(b, "a.c:_h"), 8);
    cr_expect_eq(INCLUDED(b, "a.c:9"), 4);
    cr_expect_eq(INCLUDED(b, "5"), 2);
    cr_expect_eq(EXCLUDED(b, "b.c"), 15);
    cr_expect_eq(EXCLUDED(b, "a:f"), 15, "a is a file that is not there");
    bed_free(b);
}

/* Two ranges that begin at one symbol: the option given last wins, however short its range is. */
Test(compat_options, ranges_at_one_symbol)
{
    struct bed *b = four_functions();
    const struct compat_spec long_last[] = {{COMPAT_FLAT, false, "g"}, {COMPAT_FLAT, false, "a.c"}};
    const struct compat_spec short_last[] = {{COMPAT_FLAT, false, "a.c"}, {COMPAT_FLAT, false, "g"}};
    cr_expect_eq(shown(b, long_last, 2), 12);
    cr_expect_eq(shown(b, short_last, 2), 4);
    bed_free(b);
}

static bool arc_passes(struct bed *b, const struct compat_spec *specs, uint32_t n, uint32_t from, uint32_t to)
{
    struct compat_run r;
    struct compat_options options = {.brief = true, .specs = specs, .spec_count = n};
    cr_assert_eq(compat_run_open(&r, &options, &b->object, b->arena, &b->error), PROFD_OK);
    return compat_filter_arc(&r.filter, &r.symbols, from, to);
}

Test(compat_options, arcs)
{
    struct bed *b = four_functions();
    const struct compat_spec no[] = {{COMPAT_ARCS, true, "main/f"}, {COMPAT_ARCS, true, "/g"}};
    cr_expect(!arc_passes(b, no, 1, 0, 1));
    cr_expect(arc_passes(b, no, 1, 0, 2));
    cr_expect(!arc_passes(b, no, 2, 0, 2));
    cr_expect(!arc_passes(b, no, 2, 3, 2));
    cr_expect(arc_passes(b, no, 2, 0, 1), "both begin at main: the one given last is kept");
    const struct compat_spec yes[] = {{COMPAT_ARCS, false, "f/"}};
    cr_expect(arc_passes(b, yes, 1, 1, 2));
    cr_expect(!arc_passes(b, yes, 1, 1, 3),
              "everything ends where .text ends, and _h, which is followed by data, does not");
    cr_expect(!arc_passes(b, yes, 1, 0, 3));
    const struct compat_spec half[] = {{COMPAT_ARCS, false, "f"}};
    cr_expect(!arc_passes(b, half, 1, 1, 3), "a rule without a right side lets nothing pass");
    bed_free(b);
}

Test(compat_options, styles)
{
    struct bed *b = four_functions();
    bed_arc(b, 0x1004, 0x1010, 3);
    cr_expect_eq(bed_status(b, &(struct compat_options){.brief = true, .styles = COMPAT_STYLE_FLAT}), PROFD_REFUSED);
    cr_expect_str_eq(b->error.sentence, "gmon.out file is missing histogram");
    cr_expect_str_eq(bed_print(b, &(struct compat_options){.brief = true, .styles = COMPAT_STYLE_OTHER}), "");
    cr_expect_str_eq(bed_print(b, &(struct compat_options){.brief = true, .styles = COMPAT_STYLE_COUNTS}),
                     "/y/a.c:5: (f:0x1010) 3 executions\n");
    cr_expect_str_eq(
        bed_print(b, &(struct compat_options){.brief = true, .styles = COMPAT_STYLE_COUNTS, .follows = true}),
        "\f\n/y/a.c:5: (f:0x1010) 3 executions\n");
    bed_free(b);

    b = four_functions();
    bed_histogram(b, 0x1000, 0x1040, 16);
    cr_expect_eq(bed_status(b, &(struct compat_options){.brief = true, .styles = COMPAT_STYLE_GRAPH}), PROFD_REFUSED);
    cr_expect_str_eq(b->error.sentence, "gmon.out file is missing call-graph data");
    bed_free(b);
}

/* Calls forwards are found in the code, calls backwards are not, and without option none. */
Test(compat_options, calls_in_the_code)
{
    static uint8_t text[0x40];
    memset(text, 0x90, sizeof text);
    memcpy(text + 0x02, "\xe8\x09\x00\x00\x00", 5); /* main: 0x1002 + 5 + 9 = f */
    memcpy(text + 0x12, "\xe8\xe9\xff\xff\xff", 5); /* f: back to main */
    memcpy(text + 0x3e, "\xe8\x00", 2);             /* cut off */
    struct bed *b = four_functions();
    b->object.machine = 62;
    b->object.text = text;
    b->object.text_address = 0x1000;
    b->object.text_size = sizeof text;
    bed_histogram(b, 0x1000, 0x1040, 16);
    bed_arc(b, 0x1004, 0x1020, 3);
    struct compat_options options = {.brief = true, .static_calls = true};
    struct compat_run r;
    cr_assert_eq(compat_run_open(&r, &options, &b->object, b->arena, &b->error), PROFD_OK);
    cr_assert_eq(compat_run_count(&r, &b->counts, b->arena, &b->error), PROFD_OK);
    cr_assert_eq(r.arcs.count, 2);
    cr_expect_eq(r.arcs.recorded[0], 1);
    cr_expect_eq(r.arcs.child_first[1], 2);
    cr_expect_eq(r.arcs.child[1], 1);
    cr_expect_eq(r.arcs.calls[1], 0);
    struct buffer sum;
    buffer_init(&sum, 1000);
    compat_sum_write(&r, 8, false, &sum);
    cr_expect_eq(sum.size, 20 + 1 + 40 + 32 + 21, "the sum holds what was counted only");
    buffer_done(&sum);
    bed_free(b);
}
