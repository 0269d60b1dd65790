/* What compat_print chooses to print, and what it refuses. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/compat/bed.h"

static const struct compat_options brief = {.brief = true};

static struct bed *two_functions(void)
{
    struct bed *b = bed_new(0x1000, 0x1040);
    bed_function(b, "first", 0x1000);
    bed_function(b, "second", 0x1020);
    return b;
}

static void expect_conflict(struct bed *b, const char *words)
{
    cr_expect_eq(bed_status(b, &brief), PROFD_CONFLICT);
    cr_expect_eq(strncmp(b->error.sentence, words, strlen(words)), 0, "%s", b->error.sentence);
    bed_free(b);
}

Test(compat_print, nothing_counted)
{
    struct bed *b = two_functions();
    cr_expect_str_eq(bed_print(b, &brief), "");
    bed_free(b);
}

Test(compat_print, styles)
{
    struct bed *b = two_functions();
    bed_histogram(b, 0x1000, 0x1040, 16);
    bed_bin(b, 1, 5);
    const char *flat = bed_print(b, &brief);
    cr_expect_eq(strncmp(flat, "Flat profile:\n", 14), 0);
    cr_expect_null(strchr(flat, '\f'));
    bed_arc(b, 0x5000, 0x6000, 1); /* owned by nobody, but there are arcs, so there is a graph */
    const char *both = bed_print(b, &brief);
    cr_expect_eq(strncmp(both, flat, strlen(flat)), 0);
    cr_expect_eq(strncmp(both + strlen(flat), "\f\n\t\t\tCall graph\n", 15), 0);
    cr_expect_str_eq(bed_print(b, &(struct compat_options){.brief = true, .no_graph = true}), flat);
    cr_expect_str_eq(bed_print(b, &(struct compat_options){.brief = true, .no_flat = true}), both + strlen(flat) + 2);
    cr_expect_str_eq(bed_print(b, &(struct compat_options){.brief = true, .no_flat = true, .no_graph = true}), "");
    bed_free(b);
}

Test(compat_print, all_symbols_and_width)
{
    struct bed *b = two_functions();
    bed_histogram(b, 0x1000, 0x1040, 16);
    bed_bin(b, 1, 5);
    bed_arc(b, 0x1004, 0x1000, 3);
    cr_expect_null(strstr(bed_print(b, &brief), " second\n"));
    const char *all = bed_print(b, &(struct compat_options){.brief = true, .all_symbols = true, .width = 1});
    cr_expect_not_null(strstr(all, "\n  0.00      0.05     0.00                             second\n"), "%s", all);
    cr_expect_not_null(strstr(all, "   [1] first [2] second\n"), "%s", all);
    bed_free(b);
}

/* Without brief only the title and the lines of explanation are other ones. */
Test(compat_print, explanations)
{
    struct bed *b = two_functions();
    bed_arc(b, 0x1004, 0x1020, 1);
    const char *brief_text = bed_print(b, &brief), *text = bed_print(b, &(struct compat_options){0});
    const char *table = strstr(brief_text, "\ngranularity"), *index = strstr(brief_text, "\f\nIndex by");
    cr_assert_not_null(table);
    cr_assert_not_null(index);
    const char *same = strstr(text, "\ngranularity"), *prose = strstr(text, "\nHow to read the call graph.");
    cr_expect_eq(strncmp(text, "\t\t     Call graph (explanation follows)\n\n", 41), 0);
    cr_assert_not_null(same);
    cr_assert_not_null(prose);
    cr_expect_eq(prose - same, index - table);
    cr_expect_eq(strncmp(table, same, (size_t)(index - table)), 0);
    cr_expect_str_eq(strstr(text, "\f\nIndex by"), index);
    bed_free(b);
}

Test(compat_print, conflicts)
{
    struct bed *b = two_functions();
    bed_histogram(b, 0x1000, 0x1040, 16);
    strcpy(bed_histogram(b, 0x1000, 0x1040, 16)->dimension, "misses");
    expect_conflict(b, "dimension unit changed between histogram records: seconds, then misses");

    b = two_functions();
    bed_histogram(b, 0x1000, 0x1040, 16);
    bed_histogram(b, 0x1000, 0x1040, 16)->abbreviation = 'm';
    expect_conflict(b, "dimension abbreviation changed between histogram records: s, then m");

    b = two_functions();
    bed_histogram(b, 0x1000, 0x1040, 16);
    bed_histogram(b, 0x1000, 0x1040, 8);
    expect_conflict(b, "different scales in histogram records: 4, then 8 bytes a bin");

    b = two_functions();
    bed_histogram(b, 0x1000, 0x1020, 8);
    bed_histogram(b, 0x101f, 0x103f, 8);
    expect_conflict(b, "overlapping histogram records: 0x1000 to 0x1020, then 0x101f to 0x103f");

    b = two_functions();
    bed_histogram(b, 0x1000, 0x1010, 4);
    bed_histogram(b, 0x1010, 0x1020, 4);
    bed_histogram(b, 0x1008, 0x1018, 4);
    expect_conflict(b, "overlapping histogram records: 0x1000 to 0x1010, then 0x1008 to 0x1018");
}

/* Ranges that touch do not overlap; a rate that differs is not looked at, the first one holds. */
Test(compat_print, neighbours)
{
    struct bed *b = two_functions();
    bed_symbol(b, "data_start", 0x3000, OBJECT_BIND_WEAK, OBJECT_TYPE_NONE)->flags = 0;
    bed_histogram(b, 0x1020, 0x1040, 8);
    bed_bin(b, 3, 100);
    bed_histogram(b, 0x1000, 0x1020, 8)->rate = 1000;
    bed_bin(b, 7, 100);
    const char *text = bed_print(b, &brief);
    cr_expect_not_null(strstr(text, " 50.00      1.00     1.00                             first\n"), "%s", text);
    cr_expect_not_null(strstr(text, " 50.00      2.00     1.00                             second\n"), "%s", text);
    bed_free(b);
}

/* Sums beyond what gprof's 32 bits hold. */
Test(compat_print, large_sums)
{
    struct bed *b = two_functions();
    bed_histogram(b, 0x1000, 0x1040, 16);
    bed_bin(b, 0, UINT64_C(1) << 40);
    bed_histogram(b, 0x1000, 0x1040, 16);
    bed_bin(b, 0, UINT64_C(1) << 40);
    bed_arc(b, 0x1024, 0x1000, UINT64_C(1) << 63);
    bed_arc(b, 0x1024, 0x1000, 5);
    const char *text = bed_print(b, &brief);
    cr_expect_not_null(strstr(text, "100.00 21990232555.52 21990232555.52 9223372036854775813 "), "%s", text);
    bed_free(b);
}

Test(compat_print, limits)
{
    struct bed *b = two_functions();
    bed_arc(b, 0x1004, 0x1020, 1);
    struct buffer out;
    buffer_init(&out, 100);
    cr_expect_eq(compat_print(&brief, &b->object, &b->counts, b->arena, &out, &b->error), PROFD_TOO_LARGE);
    cr_expect_eq(out.size, 0);
    buffer_done(&out);
    struct arena *small = arena_new(256);
    buffer_init(&out, 1u << 20);
    cr_expect_eq(compat_print(&brief, &b->object, &b->counts, small, &out, &b->error), PROFD_NO_MEMORY);
    cr_expect_eq(out.size, 0);
    buffer_done(&out);
    arena_free(small);
    bed_free(b);
}

/* Ends outside every known build take part in nothing. */
Test(compat_print, nowhere)
{
    struct bed *b = two_functions();
    bed_arc(b, 0x1004, 0x1020, 1);
    bed_arc(b, 0x1004, 0x1020, 6);
    b->from_build[1] = COUNTS_NOWHERE;
    bed_arc(b, 0x1004, 0x1020, 8);
    b->to_build[2] = COUNTS_NOWHERE;
    const char *text = bed_print(b, &brief);
    cr_expect_not_null(strstr(text, "       1/1           first [2]\n"), "%s", text);
    bed_free(b);
}
